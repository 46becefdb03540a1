"""Arbitrary and extreme exports are read or skipped, in time and without a crash."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.domain import Role, Session, storable
from registry.errors import RegistryError
from sources.base import Skipped
from sources.exports.chatgpt import CHATGPT_EXPORT, without_marks
from sources.exports.claude import CLAUDE_EXPORT
from sources.exports.json_stream import Utf8Source, records_in
from sources.exports.provider import Provider, is_known, walk
from sources.exports.reader import exports_in, parts_of
from sources.kit.loose_json import Record
from tests.sources.anything import ANYTHING, change, or_anything
from tests.sources.exports.export_files import chatgpt_chat, chatgpt_files, claude_chat, claude_files, old_claude_chat

IDS = st.sampled_from(["a", "b", "c", "d", ""])


def lists(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return or_anything(st.lists(or_anything(strategy), max_size=5))


BLOCK = st.fixed_dictionaries(
    {"type": or_anything(st.sampled_from(["text", "thinking", "tool_use", "tool_result", "voice_note", "flag"]))},
    optional={
        "text": or_anything(st.just("Hi")),
        "thinking": or_anything(st.just("Hm")),
        "summaries": lists(st.just({"summary": "Short"})),
        "id": or_anything(IDS),
        "tool_use_id": or_anything(IDS),
        "name": or_anything(IDS),
        "input": or_anything(st.just({"title": "x", "content": "y"})),
        "content": lists(st.just({"type": "knowledge", "title": "t", "url": "u", "text": "x"})),
        "is_error": ANYTHING,
        "citations": lists(st.just({"url": "u"})),
    },
)
CLAUDE = st.fixed_dictionaries(
    {
        "chat_messages": lists(
            st.fixed_dictionaries(
                {"sender": or_anything(st.sampled_from(["human", "assistant"]))},
                optional={
                    "uuid": or_anything(IDS),
                    "parent_message_uuid": or_anything(IDS),
                    "text": or_anything(st.just("Hi")),
                    "content": lists(BLOCK),
                    "created_at": or_anything(st.just("2026-05-04T09:00:00Z")),
                    "attachments": lists(st.just({"file_name": "", "extracted_content": "x"})),
                    "files": lists(st.just({"file_name": "y"})),
                },
            )
        )
    },
    optional={key: ANYTHING for key in ("uuid", "name", "summary", "project", "project_uuid", "updated_at", "model")},
)
CONTENT = st.fixed_dictionaries(
    {
        "content_type": or_anything(
            st.sampled_from(
                [
                    *("text", "multimodal_text", "code", "thoughts", "execution_output", "tether_quote"),
                    *("system_error", "user_editable_context", "model_editable_context", "reasoning_recap", "new"),
                ]
            )
        )
    },
    optional={
        "parts": lists(st.sampled_from(["Hi", {"content_type": "image_asset_pointer", "asset_pointer": "x://a"}])),
        "text": or_anything(st.sampled_from(['{"a": 1}', "[1]", "{", '{"a":' * 5000])),
        "thoughts": lists(st.just({"summary": "s", "content": "c"})),
        "language": ANYTHING,
        "result": ANYTHING,
        "content": ANYTHING,
    },
)
NODE = st.fixed_dictionaries(
    {
        "message": or_anything(
            st.fixed_dictionaries(
                {"author": or_anything(st.fixed_dictionaries({"role": st.sampled_from(list(Role)), "name": ANYTHING}))},
                optional={
                    "content": or_anything(CONTENT),
                    "recipient": or_anything(st.sampled_from(["all", "python"])),
                    "create_time": or_anything(st.floats(0, 1e12)),
                    "weight": ANYTHING,
                    "metadata": or_anything(
                        st.fixed_dictionaries(
                            {},
                            optional={
                                "attachments": lists(st.just({"id": "a", "name": "x"})),
                                "aggregate_result": ANYTHING,
                                "content_references": ANYTHING,
                                "model_slug": ANYTHING,
                            },
                        )
                    ),
                },
            )
        )
    },
    optional={"parent": or_anything(IDS), "children": ANYTHING},
)
CHATGPT = st.fixed_dictionaries(
    {"mapping": or_anything(st.dictionaries(IDS, or_anything(NODE), max_size=5))},
    optional={
        **{key: ANYTHING for key in ("id", "conversation_id", "title", "update_time", "default_model_slug")},
        "current_node": or_anything(IDS),
        "gizmo_id": or_anything(st.just("g-p-1")),
    },
)


def check(session: Session) -> None:
    for message in session.messages:
        assert message.role in Role
        assert str(message.more["native_id"]).isprintable()
        assert message.text
        json.dumps(storable(message.more), allow_nan=False)
    assert session.title is None or session.title.strip()
    assert session.project is None or session.project
    json.dumps(storable(session.meta), allow_nan=False)


def read(provider: Provider, record: Record) -> None:
    skips = Counter[Skipped]()
    check(provider.read(record, skips))
    provider.identity(record)
    if provider.is_conversation(record):
        fingerprint = provider.version(record)
        assert is_known(fingerprint, fingerprint)
        assert not is_known(None, fingerprint)


def version(day: int, messages: int, name: str) -> str:
    record = {"updated_at": f"2026-02-0{day}T00:00:00Z", "chat_messages": [{}] * messages, "name": name}
    return CLAUDE_EXPORT.version(record)


@pytest.mark.parametrize(("messages", "is_old_news"), [(1, True), (2, True), (3, False)])
def test_an_older_export_is_new_only_with_more_messages(messages: int, is_old_news: bool) -> None:
    assert is_known(version(2, 2, "a title"), version(1, messages, "another")) is is_old_news


def test_a_newer_export_with_as_many_messages_is_new() -> None:
    assert not is_known(version(2, 2, "a title"), version(3, 2, "another"))


@given(CLAUDE)
def test_any_claude_conversation_is_parsed(record: Record) -> None:
    read(CLAUDE_EXPORT, record)


@given(CHATGPT)
def test_any_chatgpt_conversation_is_parsed(record: Record) -> None:
    read(CHATGPT_EXPORT, record)


REAL = [(CLAUDE_EXPORT, claude_chat()), (CLAUDE_EXPORT, old_claude_chat()), (CHATGPT_EXPORT, chatgpt_chat())]


@pytest.mark.parametrize(("provider", "chat"), REAL, ids=["claude", "old claude", "chatgpt"])
@given(st.data())
def test_a_real_conversation_with_any_value_changed_is_still_read(
    provider: Provider, chat: Any, data: st.DataObject
) -> None:
    record = copy.deepcopy(chat.record())
    for _ in range(data.draw(st.integers(1, 4))):
        change(data, record)
    read(provider, record)


@given(st.binary() | st.lists(st.sampled_from([*b'[]{}",:1ntx \xff'])).map(bytes))
def test_any_bytes_give_objects_or_errors(data: bytes) -> None:
    for record in records_in(Utf8Source(io.BytesIO(data))):
        assert isinstance(record, dict | str)


@given(ANYTHING)
def test_any_json_is_parsed_like_the_json_module(value: Any) -> None:
    given = [value] if isinstance(value, dict) else value if isinstance(value, list) else [value]
    try:
        data = json.dumps(value, allow_nan=False).encode()
    except ValueError:
        return
    read = [record for record in records_in(Utf8Source(io.BytesIO(data))) if isinstance(record, dict)]
    if all(abs(number) < 2**63 for number in numbers(value)):
        assert read == [record for record in given if isinstance(record, dict)]


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict | list):
        held = value.values() if isinstance(value, dict) else value
        return [number for inner in held for number in numbers(inner)]
    return [value] if isinstance(value, int | float) else []


@pytest.mark.parametrize("chats", [[claude_chat(), old_claude_chat()], [chatgpt_chat(1), chatgpt_chat(2)]])
@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_zip_with_any_bytes_changed_or_cut_is_read_or_refused(
    tmp_path: Path, chats: list[Any], data: st.DataObject
) -> None:
    held = io.BytesIO()
    files = claude_files(*chats) if hasattr(chats[0], "messages") else chatgpt_files(*chats)
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    whole = bytearray(held.getvalue())
    for _ in range(data.draw(st.integers(0, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "x.zip"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)) | st.just(len(whole)))])
    with suppress(RegistryError), ExitStack() as stack:
        for export in exports_in(path, stack):
            list(export.sessions(path, {}))


@given(st.dictionaries(IDS, IDS, max_size=5), IDS)
def test_every_node_of_any_tree_is_read_once(given: dict[str, str], leaf: str) -> None:
    parents = {name: parent for name, parent in given.items() if name}
    names = [name for name, _ in walk(parents, dict.fromkeys(parents), leaf)]
    assert sorted(names) == sorted(parents)


@given(st.text(alphabet='ab\ue200\ue201\ue202【】†1:["]') | st.text())
def test_citation_marks_are_removed_from_any_text(text: str) -> None:
    assert "\ue200" not in without_marks(text)


def test_large_conversations_of_any_form_are_parsed_fast() -> None:
    many = 2_500
    chain = {str(n): {"parent": str(n - 1), "message": None} for n in range(many)}
    fan = {str(n): {"parent": "0", "message": {"author": {"role": "user"}}} for n in range(many)}
    for tree in (chain, fan):
        CHATGPT_EXPORT.read({"mapping": tree, "current_node": str(many - 1)}, Counter[Skipped]())
    calls = [{"type": "tool_use", "name": "a"}, {"type": "text", "text": "x"}] * many
    results = [{"type": "tool_result", "name": "b", "content": "y"}] * (2 * many)
    same = [{"type": "tool_result", "tool_use_id": "1", "content": "y"}] * many
    message = {"sender": "assistant", "content": [*calls, *results, {"type": "tool_use", "id": "1"}, *same]}
    session = CLAUDE_EXPORT.read({"chat_messages": [message]}, Counter[Skipped]())
    assert len(session.messages) > many
    without_marks("【1†" * many + "\ue200" * many)


def test_a_folder_of_other_files_is_scanned(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.json").mkdir()
    with ExitStack() as stack:
        assert [type(part).__name__ for part in parts_of(tmp_path, stack)] == ["Skipped"]
