"""Exports of accounts: conversations as a user sees them."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from registry.domain import Message, Role, Session
from registry.errors import InvalidRequest, StorageError
from sources.base import FoundSession, Skipped
from sources.exports import json_stream as export_json
from sources.exports.reader import AccountExport, exports_in
from tests.sources.exports.export_files import (
    E_MAIL,
    ChatGptChat,
    ClaudeChat,
    an_id,
    as_json,
    chatgpt_chat,
    chatgpt_files,
    claude_chat,
    claude_files,
    content,
    old_claude_chat,
    result,
    use,
    words,
    write_folder,
    write_zip,
)
from tests.sources.reading import texts_of
from tests.sources.untouched import opened_files, state_of

ACCOUNT = Path("the account")


def read_export(path: Path, seen: Mapping[str, str] | None = None) -> tuple[list[FoundSession], list[Skipped]]:
    """Return the sessions of one provider's export, and what was skipped."""
    with ExitStack() as stack:
        [export] = exports_in(path, stack)
        return taken(export, seen or {})


def taken(export: AccountExport, seen: Mapping[str, str]) -> tuple[list[FoundSession], list[Skipped]]:
    found, skipped = list[FoundSession](), list[Skipped]()
    try:
        for each in export.sessions(ACCOUNT, seen):
            found.append(each) if isinstance(each, FoundSession) else skipped.append(each)
    except StorageError as exc:
        skipped.append(Skipped("the export", exc.message))
    return found, skipped


def one(tmp_path: Path, chat: ClaudeChat | ChatGptChat, *beside: bytes) -> Session:
    """Export one conversation, and return its session."""
    make: Callable[..., dict[str, bytes]] = claude_files if isinstance(chat, ClaudeChat) else chatgpt_files
    [found], _ = read_export(write_zip(tmp_path / "one.zip", make(chat)))
    return found.session


def message(session: Session, text: str) -> Message:
    return next(each for each in session.messages if text in each.text)


# Claude.ai


def test_a_claude_chat_is_read_in_order_with_both_answers_between_the_questions(tmp_path: Path) -> None:
    session = one(tmp_path, claude_chat())

    assert texts_of(session) == [
        ("user", "Why does the basket lose its items?"),
        ("system", "[pasted text]\n\nTraceback: basket.py"),
        ("assistant", "It is the cache."),
        ("thinking", "A new list each time."),
        ("assistant", "Let me look it up."),
        ("tool", "web_search python list default\n\nDefaults\nhttps://example.org/d\n…"),
        ("assistant", "It makes a new list each time."),
        ("user", "Write the fix"),
        ("tool", "artifacts create basket.py\n\ndef keep(items): ...\n\nOK"),
        ("assistant", "Here it is."),
    ]
    assert (session.session_id, session.title) == (an_id(1), "Baskets")
    assert [each.text for each in session.messages if each.more.get("superseded")] == ["It is the cache."]
    assert [each.text for each in session.messages if each.more.get("injected")] == [texts_of(session)[1][1]]
    assert session.messages[0].more["attachments"] == ["pasted text", "shot.png"]


def test_a_claude_tool_keeps_its_parameters_result_and_outcome(tmp_path: Path) -> None:
    chat = ClaudeChat()
    chat.asks("Look")
    chat.says("assistant", use("a", {"q": 1}), use("b", {"q": 2}), use("a", {"q": 3}, "id3"), use("c", {"q": 4}))
    chat.says("human", result("a", "first"), result("b", [words("second")], is_error=True), result("x", "third", "id3"))
    tools = [each.more["tool"] for each in one(tmp_path, chat).messages if each.role is Role.TOOL]

    assert [(tool["name"], tool["params"]["q"], tool["result"], tool["status"]) for tool in tools] == [
        ("a", 1, "first", "completed"),
        ("b", 2, "second", "failed"),
        ("a", 3, "third", "completed"),
        ("c", 4, None, "pending"),
    ]


def test_no_two_messages_have_the_same_id(tmp_path: Path) -> None:
    chat = ClaudeChat()
    chat.asks("One", uuid="same")
    chat.says("assistant", use("a", {}, "same"), use("a", {}, "same"), use("a", {}, "x" * 5000), uuid="same")
    ids = [each.more["native_id"] for each in one(tmp_path, chat).messages]
    assert len(set(ids)) == len(ids) == 4
    assert max(map(len, ids)) < 100


def test_tool_results_are_not_user_messages(tmp_path: Path) -> None:
    chat = ClaudeChat()
    chat.asks("Look")
    chat.says("human", result("a", "found"), text="This block is not supported on your current device yet.")

    assert texts_of(one(tmp_path, chat)) == [("user", "Look"), ("tool", "a\n\nfound")]


def test_a_claude_chat_from_before_2025_reads_as_a_list(tmp_path: Path) -> None:
    session = one(tmp_path, old_claude_chat())

    assert texts_of(session) == [("user", "안녕, how do I memoize fibonacci?"), ("assistant", "With lru_cache.")]
    assert session.title == "안녕, how do I memoize fibonacci?"


def test_an_unnamed_claude_chat_is_titled_by_its_summary(tmp_path: Path) -> None:
    chat = claude_chat()
    chat.name, chat.more = "", {"summary": "**Basket** bug"}

    assert one(tmp_path, chat).title == "**Basket** bug"


def test_a_claude_chat_saved_by_a_browser_extension_has_model_project_and_branch(tmp_path: Path) -> None:
    chat = claude_chat()
    chat.more = {"model": "claude-sonnet-4-5", "project": {"uuid": an_id(50), "name": "Shop"}}
    chat.more["current_leaf_message_uuid"] = chat.messages[1]["uuid"]
    (tmp_path / "chat.json").write_bytes(as_json(chat.record()))
    [found], _ = read_export(tmp_path)

    session = found.session
    assert (session.project, session.meta["model"]) == ("Shop", "claude-sonnet-4-5")
    assert "superseded" not in message(session, "cache").more
    assert message(session, "Here it is.").more["superseded"]
    assert message(session, "cache").more["model"] == "claude-sonnet-4-5"


def test_an_unknown_block_is_reported_and_its_text_kept(tmp_path: Path) -> None:
    chat = ClaudeChat()
    chat.asks("Look")
    chat.says("assistant", {"type": "hologram", "text": "Behold"}, words("Seen."))
    [found], skipped = read_export(write_zip(tmp_path / "one.zip", claude_files(chat)))

    assert texts_of(found.session)[1:] == [("assistant", "Behold\n\nSeen.")]
    assert skipped == [Skipped("1 x block hologram", "unknown to this reader")]


# ChatGPT


def test_a_chatgpt_chat_is_read_in_order_with_both_answers_between_the_questions(tmp_path: Path) -> None:
    session = one(tmp_path, chatgpt_chat())

    assert texts_of(session) == [
        ("user", "Why does the basket lose its items?"),
        ("assistant", "It is the cache."),
        ("thinking", "Lists\n\nA new one"),
        ("tool", "python\n\nprint([])\n\n[]"),
        ("assistant", "It makes a new list each time."),
        ("user", "Look it up, and write the fix"),
        ("tool", "web lists\n\ntwo pages\n\nDefaults\n\nhttps://example.org/d\n\n…"),
        ("tool", "canmore.create_textdoc basket.py\n\ndef keep(items): ...\n\nCreated"),
        ("assistant", "Here it is."),
    ]
    assert [each.text for each in session.messages if each.more.get("superseded")] == ["It is the cache."]
    assert session.messages[0].more["attachments"] == ["shot.png"]
    assert (session.title, session.meta["model"]) == ("Baskets", "gpt-5")
    assert message(session, "It makes").more["model"] == "gpt-5-thinking"
    assert message(session, "print").more["tool"] == {
        "name": "python",
        "params": {"input": "print([])"},
        "result": "[]",
        "status": "completed",
    }


def test_code_that_failed_is_a_failed_call(tmp_path: Path) -> None:
    chat = ChatGptChat()
    chat.asks("Run it")
    chat.says("assistant", {"content_type": "code", "text": "1/0"}, recipient="python")
    crash = {"aggregate_result": {"status": "failed_with_in_kernel_exception"}}
    chat.says("tool", {"content_type": "execution_output", "text": "ZeroDivisionError"}, name="python", metadata=crash)

    assert message(one(tmp_path, chat), "1/0").more["tool"]["status"] == "failed"


def test_a_voice_chat_is_read_by_its_transcripts_and_an_image_is_named(tmp_path: Path) -> None:
    chat = ChatGptChat()
    heard = {"content_type": "audio_transcription", "text": "Hello there", "direction": "in"}
    chat.asks(heard, {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_2"})
    chat.says("tool", content({"content_type": "image_asset_pointer", "asset_pointer": "x://3"}), name="dalle.text2im")
    session = one(tmp_path, chat)

    assert texts_of(session) == [("user", "Hello there"), ("tool", "dalle.text2im\n\n[image]")]
    assert session.messages[0].more["attachments"] == ["audio"]


def test_hidden_messages_are_marked_and_memories_omitted(tmp_path: Path) -> None:
    chat = ChatGptChat()
    chat.says("system", {"content_type": "model_editable_context", "model_set_context": "Ann likes tests"})
    chat.asks("Make it red", metadata={"is_visually_hidden_from_conversation": True})
    chat.asks("Hello")
    chat.says("assistant", {"content_type": "system_error", "name": "overload", "text": "Try later"})
    session = one(tmp_path, chat)

    assert texts_of(session) == [
        ("system", "Make it red"),
        ("user", "Hello"),
        ("error", "overload\n\nTry later"),
    ]
    assert session.messages[0].more["injected"]


def test_a_message_without_a_time_has_the_time_of_the_one_before(tmp_path: Path) -> None:
    chat = ChatGptChat()
    asked = chat.asks("One")
    chat.answers("Late", create_time=2_000_000_000)
    chat.answers("No time", after=asked, create_time=None)
    first, _, last = one(tmp_path, chat).messages

    assert (last.text, last.timestamp, last.more["time"]) == ("No time", first.timestamp, "inferred")
    assert "time" not in first.more


def test_an_unnamed_chatgpt_chat_is_titled_by_its_first_words(tmp_path: Path) -> None:
    chat = chatgpt_chat()
    chat.title, chat.more = "New chat", {"update_time": "1777885200.5"}
    assert one(tmp_path, chat).title == "Why does the basket lose its items?"


@pytest.mark.parametrize("leaf", [None, "gone"])
def test_a_tree_without_a_current_node_ends_with_its_newest_leaf(tmp_path: Path, leaf: str | None) -> None:
    chat = chatgpt_chat()
    chat.more = {"current_node": leaf}
    assert message(one(tmp_path, chat), "cache").more["superseded"]


def test_a_cyclic_tree_is_read_once(tmp_path: Path) -> None:
    chat = ChatGptChat()
    first = chat.asks("One")
    chat.nodes[first]["parent"] = chat.answers("Two")
    chat.nodes[chat.asks("Three", after="nowhere")]["children"] = [first]
    assert sorted(texts_of(one(tmp_path, chat))) == [("assistant", "Two"), ("user", "One"), ("user", "Three")]


# Files


@pytest.fixture(params=["claude", "chatgpt"])
def files(request: pytest.FixtureRequest) -> dict[str, bytes]:
    """An export of two conversations, of each provider in turn."""
    if request.param == "claude":
        return claude_files(claude_chat(1), old_claude_chat(2))
    return chatgpt_files(chatgpt_chat(1), chatgpt_chat(2))


def test_a_zip_a_folder_and_a_file_give_the_same_sessions(tmp_path: Path, files: dict[str, bytes]) -> None:
    archive = write_zip(tmp_path / "data.zip", files)
    folder = write_folder(tmp_path / "folder", files)
    alone = write_folder(tmp_path / "alone", {"download": files["conversations.json"]}) / "download"
    of_zips = write_folder(tmp_path / "zips", {"data-1.zip": archive.read_bytes()})

    first, *others = [read_export(path) for path in (archive, folder, alone, of_zips)]
    assert len(first[0]) == 2
    assert others == [first] * 3


def test_shards_are_read_as_one_export(tmp_path: Path) -> None:
    chats = [chatgpt_chat(number) for number in range(1, 8)]
    found, skipped = read_export(write_zip(tmp_path / "shards.zip", chatgpt_files(*chats, shards=3)))
    assert (sorted(each.key for each in found), skipped) == ([an_id(number) for number in range(1, 8)], [])


def test_a_folder_can_contain_exports_of_both_providers(tmp_path: Path) -> None:
    write_zip(tmp_path / "a.zip", claude_files(claude_chat()))
    write_zip(tmp_path / "b.zip", chatgpt_files(chatgpt_chat()))
    with ExitStack() as stack:
        assert [export.name for export in exports_in(tmp_path, stack)] == ["claude", "chatgpt"]


def test_account_data_is_not_read_and_nothing_is_written(tmp_path: Path, files: dict[str, bytes]) -> None:
    folder = write_folder(tmp_path / "folder", files)
    before = state_of(tmp_path)
    with opened_files() as opened:
        found, _ = read_export(folder)
    assert not [name for name in opened if "user" in Path(name).name]
    assert E_MAIL not in repr(found)
    read_export(write_zip(tmp_path / "folder.zip", files))
    (tmp_path / "folder.zip").unlink()
    assert {name: state[2] for name, state in state_of(tmp_path).items()} == {
        name: state[2] for name, state in before.items()
    }


def test_an_unchanged_conversation_is_not_read_again(tmp_path: Path) -> None:
    old, grown = chatgpt_chat(1), chatgpt_chat(2)
    first, _ = read_export(write_zip(tmp_path / "first.zip", chatgpt_files(old, grown)))
    seen = {each.key: each.fingerprint for each in first}
    grown.asks("And then?")
    newer = write_zip(tmp_path / "newer.zip", chatgpt_files(old, grown))

    [found], _ = read_export(newer, seen)
    assert found.key == an_id(2)
    assert read_export(tmp_path / "first.zip", {**seen, found.key: found.fingerprint})[0] == []


# Damage


def test_the_other_shards_are_read_if_one_is_damaged(tmp_path: Path) -> None:
    shards = chatgpt_files(*(chatgpt_chat(number) for number in (1, 2, 3)), shards=3)
    shards["conversations-001.json"] = shards["conversations-001.json"][:200]
    shards["conversations-000.json"] = b"not JSON"
    found, skipped = read_export(write_zip(tmp_path / "x.zip", shards))
    assert [each.key for each in found] == [an_id(3)]
    assert {"conversations-000.json", "conversations-001.json"} == {each.what.partition(",")[0] for each in skipped[:2]}


def test_the_readable_part_of_a_zip_with_flipped_bits_is_read(tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "x.zip", chatgpt_files(*(chatgpt_chat(number) for number in range(1, 60))))
    with zipfile.ZipFile(archive) as read:
        member = read.getinfo("conversations.json")
    data = bytearray(archive.read_bytes())
    at = member.header_offset + member.compress_size * 9 // 10
    data[at : at + 40] = b"\0" * 40
    archive.write_bytes(data)
    found, skipped = read_export(archive)
    assert 1 < len(found) < 59
    assert skipped[-1].why == "Some of the export could not be read."


def test_paths_in_a_zip_cannot_escape_and_control_characters_are_replaced(tmp_path: Path) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    whole = claude_files(claude_chat())["conversations.json"]
    archive = write_zip(
        inside / "x.zip",
        {"../../conversations.json": whole, "/tmp/conversations-\x1b[31m.json": b"[", "a/../b.json": b"1"},
    )
    before = state_of(tmp_path)
    [found], skipped = read_export(archive)
    assert found.key == an_id(1)
    assert [each.what for each in skipped] == ["/tmp/conversations-?[31m.json", "the export"]
    assert state_of(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "data", "recognised"),
    [
        ("users.json", b'[{"email_address": "x"}]', "a file in which no conversation can be read (users.json)"),
        ("x.json", b'{"a": [1]}', "a file in which no conversation can be read (x.json)"),
        ("conversations.json", b"[]", "(conversations.json)"),
        ("x.png", b"\x89PNG", "a file in which no conversation can be read (x.png)"),
        ("saved.json", b'[{"a": [1', "(saved.json: cut off or damaged (at byte"),
    ],
)
def test_a_wrong_file_is_refused_and_identified(tmp_path: Path, name: str, data: bytes, recognised: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InvalidRequest) as told_of:
        read_export(tmp_path / name)
    assert recognised in told_of.value.details
    assert "Expected: the zip from Claude.ai or ChatGPT" in told_of.value.details


@pytest.mark.parametrize(
    ("name", "spoilt", "damage"),
    [
        ("flip.zip", lambda archive, _: archive[:60] + bytes(20) + archive[80:], "decompressing"),
        ("conversations.json", lambda _, chats: chats[:1500], "cut off or damaged (at byte"),
        ("cut.zip", lambda archive, _: archive[:-60], "the zip: cut off or damaged"),
        ("conversations.json", lambda _, chats: b"", "cut off or damaged (at byte 0"),
    ],
)
def test_a_completely_unreadable_export_is_reported_as_damaged(
    tmp_path: Path, name: str, spoilt: Callable[[bytes, bytes], bytes], damage: str
) -> None:
    files = claude_files(claude_chat())
    archive = write_zip(tmp_path / "whole.zip", files).read_bytes()
    (tmp_path / name).write_bytes(spoilt(archive, files["conversations.json"]))
    with pytest.raises(InvalidRequest, match="An export of an account, but damaged") as told_of:
        read_export(tmp_path / name)
    assert "Download it again." in told_of.value.details
    assert damage in told_of.value.details


def test_a_folder_without_an_export_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="Not an export"):
        read_export(tmp_path)
    with pytest.raises(InvalidRequest, match="There is no file or folder"):
        read_export(tmp_path / "missing")


# Sizes


def bomb(path: Path, pieces: Iterator[bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("conversations.json", "w") as member:
        for piece in pieces:
            member.write(piece)
    return path


def test_too_large_and_too_deep_values_are_skipped_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_json, "MAX_VALUES", 5000)
    deep = b'{"mapping": ' + b"[" * 500 + b"]" * 500 + b"}"
    wide = b'{"mapping": {}, "x": [' + b"[]," * 3_000 + b"[]]}"
    first, last = (as_json(chatgpt_chat(number).record()) for number in (1, 2))
    (tmp_path / "conversations.json").write_bytes(b"[" + b",".join([first, deep, wide, last]) + b"]")
    found, skipped = read_export(tmp_path)
    assert [each.key for each in found] == [an_id(1), an_id(2)]
    assert [each.why for each in skipped[:2]] == ["nested deeper than 100", "larger than 64 MB or 5000 values"]
    assert skipped[0].what == "conversations.json, conversation 2"


@pytest.mark.slow
@pytest.mark.parametrize(("begin", "filler"), [(b"", b"   "), (b'"', b"xxx"), (b"", b"[[],")])
def test_a_zip_bomb_takes_neither_memory_nor_time(
    tmp_path: Path, begin: bytes, filler: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_json, "MAX_BYTES", 2**18)
    monkeypatch.setattr(export_json, "MAX_VALUES", 12_500)
    first = as_json([chatgpt_chat(1).record()])[:-1] + b","
    archive = bomb(tmp_path / "x.zip", iter([first, b'{"mapping":' + begin, *[filler * 12_500] * 25]))
    tracemalloc.start()
    found, skipped = read_export(archive)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [each.key for each in found] == [an_id(1)]
    assert "twice as large" in skipped[0].why
    assert peak < 15 * 2**20


def test_a_zip_in_a_zip_is_reported_and_not_read(tmp_path: Path) -> None:
    inner = write_zip(tmp_path / "x.zip", claude_files(claude_chat())).read_bytes()
    with pytest.raises(InvalidRequest) as told_of:
        read_export(write_zip(tmp_path / "outer.zip", {"data/x.zip": inner}))
    assert "data/x.zip: a zip in a zip; unpack the outer one first" in told_of.value.details


def test_an_encrypted_zip_is_reported(tmp_path: Path) -> None:
    data = bytearray(write_zip(tmp_path / "x.zip", claude_files(claude_chat())).read_bytes())
    for sign, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        place = data.find(sign)
        while place >= 0:
            data[place + at] |= 1
            place = data.find(sign, place + 4)
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(InvalidRequest, match="damaged or encrypted") as told_of:
        read_export(tmp_path / "x.zip")
    assert "conversations.json: encrypted; unpack it first" in told_of.value.details


def test_invalid_utf_8_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    data = json.dumps([claude_chat().record()], ensure_ascii=False).encode().replace(b"cache", b"\xff\xfecache")
    (tmp_path / "conversations.json").write_bytes(b"\xef\xbb\xbf" + data)
    [found], skipped = read_export(tmp_path)
    assert message(found.session, "��cache").more["superseded"]
    assert skipped == []


def test_reading_can_be_interrupted(tmp_path: Path) -> None:
    chats: list[Any] = [chatgpt_chat(number) for number in range(200)]
    with ExitStack() as stack:
        [export] = exports_in(write_zip(tmp_path / "x.zip", chatgpt_files(*chats)), stack)
        export.stop()
        assert taken(export, {})[0] == []


# Gemini


GEMINI = "https://gemini.google.com/app/aaaaaaaaaaaaaaaa"


def activity(title: str, minute: int, html: str = "", link: str = "", **more: Any) -> dict[str, Any]:
    """Return an activity of the Gemini app in the format of Google's export."""
    about = {"header": "Gemini Apps", "products": ["Gemini Apps"], "details": [{"url": link}] if link else []}
    answer = [{"html": html}] if html else []
    return {**about, "title": title, "time": f"2026-03-04T05:{minute:02}:00.000Z", "safeHtmlItem": answer, **more}


def test_gemini_prompts_are_grouped_by_conversation_oldest_first(tmp_path: Path) -> None:
    answer = "<h3>Lists</h3><p>It makes a <b>new</b> list:</p><ul><li>one</li><li>two</li></ul><pre>a\n  b</pre>"
    activities = [
        activity("Prompted And since when?", 9, "<p>Since then.</p>", GEMINI),
        activity("Prompted Something else", 8, "<p>Fine.</p>"),
        activity("Gave feedback: Good response", 7),
        activity("Prompted Why is it empty? 안녕", 5, answer, GEMINI, attachedFiles=["basket.py"]),
    ]
    file = tmp_path / "Takeout" / "My Activity" / "Gemini Apps" / "MyActivity.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(as_json(activities))
    with ExitStack() as stack:
        [export] = exports_in(tmp_path, stack)
        everything = list(export.sessions(Path("gemini"), {}))
        first, second = (each for each in everything if isinstance(each, FoundSession))
        again = list(export.sessions(Path("gemini"), {each.key: each.fingerprint for each in (first, second)}))
    assert export.name == "gemini"
    assert [(message.role.value, message.text) for message in first.session.messages] == [
        ("user", "Why is it empty? 안녕"),
        ("assistant", "Lists\n\nIt makes a new list:\n\n- one\n- two\n\n```\na\n  b\n```"),
        ("user", "And since when?"),
        ("assistant", "Since then."),
    ]
    assert first.session.messages[0].more["attachments"] == ["basket.py"]
    assert (first.session.session_id, first.session.title) == ("a" * 16, "Why is it empty? 안녕")
    assert [message.text for message in second.session.messages] == ["Something else", "Fine."]
    skipped = [Skipped("1 x a conversation", "not a conversation of this provider")]
    assert everything == [first, second, *skipped]
    assert again == skipped
