"""Cursor's bubbles become texts, thoughts, tool calls and errors."""

import json
from typing import Any

import pytest

from registry.domain import Message, Role
from sources.cursor.bubbles import messages_of, plain_text
from tests.sources.cursor.cursor_files import SECRET, Json, answered, asked, called, thought


def read(bubble: Json, model: str | None = None) -> list[Message]:
    speaker = Role.USER if bubble["type"] == 1 else Role.ASSISTANT
    return list(messages_of(bubble, {"bubbleId": bubble["bubbleId"]}, speaker, model))


def only(bubble: Json) -> Message:
    [message] = read(bubble)
    return message


def test_a_thinking_bubble_is_a_thought_without_its_signature() -> None:
    message = only(thought("t1", "Look at the clock."))
    assert (message.role, message.text) == (Role.THINKING, "Look at the clock.")
    assert message.more == {"native_id": "t1", "duration_ms": 1234}
    assert SECRET not in repr(message)


def test_tokens_are_stored_with_the_first_message_of_their_bubble_and_zeros_ignored() -> None:
    counts = {"inputTokens": 900, "outputTokens": 40}
    messages = read(answered("a1", "Done.", allThinkingBlocks=[{"thinking": "First."}], tokenCount=counts))
    assert [m.more.get("usage") for m in messages] == [{"input_tokens": 900, "output_tokens": 40}, None]
    assert "usage" not in only(answered("a2", "Done.", tokenCount={"inputTokens": 0, "outputTokens": 0})).more


def test_older_thinking_blocks_are_thoughts_too() -> None:
    bubble = answered("a1", "Done.", allThinkingBlocks=[{"thinking": "First."}, {"text": "Then."}])
    assert [(m.role, m.text, m.more["native_id"]) for m in read(bubble)] == [
        (Role.THINKING, "First.\n\nThen.", "a1:thinking"),
        (Role.ASSISTANT, "Done.", "a1"),
    ]


def test_a_command_has_its_command_line_output_and_outcome() -> None:
    result = {"output": "1 failed\n", "exitCode": 1, "rejected": False}
    message = only(called("t1", "run_terminal_command_v2", {"command": "npm  test"}, result))
    assert message.role is Role.TOOL
    assert message.text == "run_terminal_command npm test\n\n1 failed"
    assert message.more["tool"] == {
        "name": "run_terminal_command_v2",
        "params": {"command": "npm  test"},
        "result": result,
        "status": "failed",
        "id": "call_1\nfc_1",
    }


def test_a_tool_call_has_its_outcome() -> None:
    cases: list[tuple[Json, str, str]] = [
        ({"status": "running"}, "pending", "edit_file a.py"),
        ({"status": "completed"}, "completed", "edit_file a.py"),
        ({"status": "cancelled"}, "rejected", "edit_file a.py"),
        ({"userDecision": "rejected"}, "rejected", "edit_file a.py"),
        (
            {"status": "error", "error": '{"clientVisibleErrorMessage": "No such file"}'},
            "failed",
            "edit_file a.py\n\nNo such file",
        ),
        ({"params": None, "rawArgs": '{"target_file": "b.py"}'}, "completed", "edit_file b.py"),
        ({"params": {"relativeWorkspacePath": "c.py"}}, "completed", "edit_file c.py"),
        ({"params": "{torn", "name": "mcp-github-search"}, "completed", "mcp-github-search {torn"),
    ]
    for fields, status, text in cases:
        message = only(called("t1", "edit_file_v2", {"path": "a.py"}, None, **fields))
        assert (message.more["tool"]["status"], message.text) == (status, text)


def test_a_long_result_is_shortened_in_the_text_only() -> None:
    message = only(called("t1", "read_file_v2", {"path": "a.py"}, {"contents": "x" * 9000 + "the end"}))
    assert len(message.text) < 4100
    assert message.text.endswith("the end")
    assert len(message.more["tool"]["result"]["contents"]) == 9007


def test_an_empty_tool_field_is_no_tool_call() -> None:
    assert only(answered("a1", "Hello.", toolFormerData={"additionalData": {}})).role is Role.ASSISTANT


def test_deeply_nested_parameters_are_cut() -> None:
    deep = "[" * 500 + "]" * 500
    params = only(called("t1", "odd", None, None, params=deep)).more["tool"]["params"]
    assert str(params) == "[" * 20 + "'…'" + "]" * 20


def test_a_failed_request_is_an_error_message() -> None:
    details = {"generationUUID": "g", "error": {"details": {"title": "Out of quota", "detail": "Try later"}}}
    [message] = read(answered("a1", "", errorDetails=details))
    assert (message.role, message.text, message.more["native_id"]) == (Role.ERROR, "Out of quota", "a1:error")


def test_separate_code_blocks_of_older_answers_are_appended() -> None:
    blocks = [
        {"content": "print(1)", "languageId": "python"},
        {"content": "has ``` inside", "languageId": ""},
        {"content": "in the text"},
        {"content": None},
    ]
    message = only(answered("a1", "As I said in the text.", codeBlocks=blocks))
    assert message.text == "As I said in the text.\n\n```python\nprint(1)\n```\n\n````\nhas ``` inside\n````"


def test_attachments_have_names_and_no_content() -> None:
    message = only(
        asked(
            "u1",
            "See these",
            images=[{"data": "iVBORw0", "path": "/tmp/shots/login.png"}, {"data": "iVBORw0"}],
            relevantFiles=["src/auth.py", {"relativeWorkspacePath": "src/clock.py"}],
            attachedFolders=[{"uri": {"path": "/home/me/app/src"}}],
            context={"fileSelections": [{"uri": {"fsPath": "/home/me/app/a.py"}}], "selections": None},
        )
    )
    names = ["login.png", "image", "src/auth.py", "src/clock.py", "/home/me/app/src", "/home/me/app/a.py"]
    assert message.more["attachments"] == names


def test_an_image_without_text_is_a_message() -> None:
    assert only(asked("u1", "", images=[{"path": "login.png"}])).text == "[login.png]"


def test_a_summary_by_cursor_is_not_the_users_message() -> None:
    message = only(answered("s1", "", capabilityType=22, conversationSummary={"summary": "So far: a clock."}))
    assert (message.role, message.text, message.more["injected"]) == (Role.SYSTEM, "So far: a clock.", True)


LEXICAL = {
    "root": {
        "children": [
            {"type": "paragraph", "children": [
                {"type": "text", "text": "Fix "},
                {"type": "mention", "mentionName": "auth.py"},
                {"type": "linebreak"},
                {"type": "text", "text": "now"},
            ]},
            {"type": "list", "children": [{"type": "listitem", "children": [{"type": "text", "text": "one"}]}]},
            {"type": "brand-new", "children": [{"type": "text", "text": "unknown"}]},
        ]
    }
}  # fmt: skip
PROSE_MIRROR = {
    "type": "doc",
    "content": [
        {"type": "paragraph", "content": [
            {"type": "text", "text": "Fix "},
            {"type": "mention", "attrs": {"label": "auth.py"}},
            {"type": "hardBreak"},
            {"type": "text", "text": "now"},
        ]},
        {"type": "paragraph", "content": [{"type": "text", "text": "one"}]},
        {"type": "brand-new", "content": [{"type": "text", "text": "unknown"}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("state", [LEXICAL, PROSE_MIRROR], ids=["Lexical", "ProseMirror"])
def test_text_is_read_from_the_editor_state_if_there_is_none(state: Json) -> None:
    typed = "Fix auth.py\nnow\none\nunknown"
    assert only(asked("u1", "", richText=json.dumps(state))).text == typed
    assert only(asked("u1", " ", richText=state)).text == typed
    assert only(asked("u1", "Plain.", richText=json.dumps(state))).text == "Plain."


def test_a_damaged_editor_state_gives_its_readable_text() -> None:
    cases: list[Any] = [None, "", "{torn", 7, [], {"root": 3}, {"root": {"children": [None, 4, "a"]}}]
    for state in cases:
        assert plain_text(state) in ("", "a")
