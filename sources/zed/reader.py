"""Read the threads of Zed's agent panel, in the current format and in that of its first year."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from registry.domain import Role, Session
from sources.base import Paths, Skipped
from sources.clients import ZED
from sources.kit import drafts
from sources.kit.contents import content_text
from sources.kit.files import MAX_DOCUMENT_BYTES, is_there
from sources.kit.loose_json import Record, first_text, items, mapping, objects, read_json, string, text_at, value_at
from sources.kit.reader import DatabaseReader
from sources.kit.sqlite_store import ClientDatabase
from sources.kit.zst import DECOMPRESSION_ERRORS, decompress

_SILENT = ("RedactedThinking", "redacted_thinking")


class Zed(DatabaseReader):
    """Reads the database of threads."""

    name = ZED.source
    needed: ClassVar = {"threads": frozenset(("id", "summary", "updated_at", "data_type", "data"))}

    def find(self, paths: Paths) -> Iterator[Path]:
        for root in paths.named("CTXR_ZED_DIR") or _roots(paths):
            if is_there(database := root / "threads" / "threads.db"):
                yield database

    def rows(self, database: ClientDatabase, seen: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        names = ", ".join(f'"{name}"' for name in database.columns("threads") - {"data"})
        query = f"SELECT {names} FROM threads ORDER BY updated_at DESC"  # noqa: S608 - names of columns
        yield from ((str(row["id"]), str(row["updated_at"]), row) for row in database.records(query))

    def parse(self, database: ClientDatabase, key: str, row: dict[str, Any]) -> Thread:
        stored = database.rows("SELECT data_type, data FROM threads WHERE id = ?", (row["id"],))
        described, why = _described(*stored[0]) if stored else ({}, "deleted while it was read")
        thread = Thread(key, model=text_at(described, "model", "model"), described=described | row)
        if why:
            thread.skips[Skipped("data", why)] += 1
        for message in items(described.get("messages")):
            thread.read(message)
        return thread


def _roots(paths: Paths) -> Iterator[Path]:
    if sys.platform == "darwin":
        yield paths.home / "Library" / "Application Support" / "Zed"
    elif sys.platform == "win32":
        yield paths.folder("LOCALAPPDATA", "AppData", "Local") / "Zed"
    else:
        yield paths.folder("XDG_DATA_HOME", ".local", "share") / "zed"
        yield paths.home.joinpath(".var", "app", "dev.zed.Zed", "data", "zed")


def _described(kind: object, content: object) -> tuple[Record, str]:
    """Return the thread's JSON, or the reason why it cannot be read."""
    raw = content.encode() if isinstance(content, str) else content
    if not isinstance(raw, bytes) or kind not in ("json", "zstd"):
        return {}, f"data of a kind that is unknown to this reader: {kind}"
    try:
        value = read_json(decompress(raw, MAX_DOCUMENT_BYTES) if kind == "zstd" else raw)
    except OSError as exc:
        return {}, exc.strerror or "cannot be decompressed"
    except DECOMPRESSION_ERRORS as exc:
        return {}, f"cannot be decompressed: {exc}"
    return (value, "") if isinstance(value, dict) else ({}, "not a JSON object")


@dataclass(slots=True)
class Thread(drafts.Conversation):
    """Builds a thread from its messages, which have no times. `described`: its document and its row. Pure."""

    described: Record = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the project's folders, in the order in which the user opened them."""
        paths = string(self.described.get("folder_paths")).splitlines()
        order = [int(each) for each in string(self.described.get("folder_paths_order")).split(",") if each.isdecimal()]
        if sorted(order) == list(range(len(paths))):
            paths = [path for _, path in sorted(zip(order, paths, strict=True))]
        self.folders = dict.fromkeys(paths)
        self.folder = next(iter(paths), "")

    def session(self) -> Session:
        given = self.described
        parent = string(given.get("parent_id")) or text_at(given, "subagent_context", "parent_thread_id")
        began = drafts.moment(given.get("created_at")) or given.get("updated_at")
        return self.build(given.get("summary"), given.get("title"), parent=parent, began=began)

    def read(self, message: object) -> None:
        given = mapping(message)
        self.begin(value_at(given, "User", "id"), None)
        if "User" in given:
            self._add_question(mapping(given["User"]))
        elif "Agent" in given:
            self._add_answer(mapping(given["Agent"]))
        elif "role" in given:
            self._add_legacy_message(given)
        elif message != "Resume":
            self.count_unknown("message", "")

    def _add_question(self, message: Record) -> None:
        text, context, attached = "", [], []
        for block in objects(message.get("content")):
            if isinstance(block.get("Text"), str):
                text += block["Text"]
            elif mention := mapping(block.get("Mention")):
                context.append(string(mention.get("content")))
                attached.append(_mention_name(mention.get("uri")))
            elif "Image" in block:
                attached.append("image")
            else:
                self.count_unknown("block", _kind(block))
        self.say(Role.USER, text, attachments=attached)
        self.inject("\n\n".join(filter(None, context)), ":context")
        usage = mapping(self.described.get("request_token_usage"))
        self.count_tokens(len(self.drafts) - 1, usage.get(self.record_id))

    def _add_answer(self, message: Record) -> None:
        results = mapping(message.get("tool_results"))
        for block in objects(message.get("content")):
            if isinstance(block.get("Text"), str):
                self.say(Role.ASSISTANT, block["Text"])
            elif "Thinking" in block:
                self.say(Role.THINKING, text_at(block, "Thinking", "text"))
            elif "ToolUse" in block:
                call = mapping(block["ToolUse"])
                self._call(call, mapping(results.get(string(call.get("id")))))
            elif _kind(block) not in _SILENT:
                self.count_unknown("block", _kind(block))

    def _add_legacy_message(self, message: Record) -> None:
        role = string(message.get("role")).lower()
        speaker = Role.USER if role == "user" else Role.ASSISTANT
        if role == "system":
            return
        for segment in objects(message.get("segments")):
            kind = string(segment.get("type"))
            if kind in ("thinking", "text"):
                self.say(Role.THINKING if kind == "thinking" else speaker, string(segment.get("text")))
            elif kind not in _SILENT:
                self.count_unknown("segment", kind)
        self.say(speaker, string(message.get("text")))
        self.inject(string(message.get("context")))
        results = {string(each.get("tool_use_id")): each for each in objects(message.get("tool_results"))}
        for call in objects(message.get("tool_uses")):
            self._call(call, results.get(string(call.get("id")), {}))

    def _call(self, call: Record, result: Record) -> None:
        draft = self.call(string(call.get("id")), call.get("name"), call.get("input", {}))
        if result:
            draft.set_result(_output(result.get("content")), drafts.result_status(result.get("is_error") is True))


def _kind(block: Record) -> str:
    return next(iter(block), "")


def _mention_name(uri: object) -> str:
    """Return the name of a mention: a file's path, the name of a symbol or thread, or else its kind."""
    if isinstance(uri, str):
        return uri
    for kind, named in mapping(uri).items():
        return first_text(named, "abs_path", "path", "name", "url") or kind
    return "mention"


def _output(content: object) -> str:
    """Return the text of a result: a string, `{"Text": …}`, `{"Image": …}`, or a list of these."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_output, content)))
    given = mapping(content)
    if "Image" in given:
        return "[image]"
    return string(given.get("Text")) if "Text" in given else content_text(content)
