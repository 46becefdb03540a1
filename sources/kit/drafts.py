"""Messages in the making: what readers of several clients gather piece by piece before a message is whole. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from math import isfinite
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from registry.domain import EARLIEST, Message, Role, Session, parse_time
from sources.kit.jsonl import items, mapping, string

COMPLETED, FAILED, REJECTED, PENDING = "completed", "failed", "rejected", "pending"
"""How a tool call ended, for every client. Pending: the client's file knows no result."""

_LAST_PARTS = 50
_MILLISECONDS_FROM = 100_000_000_000  # as seconds that is the year 5138


@dataclass(slots=True)
class Draft:
    """A message whose parts may still come. `origin` is the record that began it."""

    role: Role
    parts: list[str]
    at: datetime | None
    more: dict[str, Any] = field(default_factory=dict)
    origin: str = ""

    def add(self, text: str) -> None:
        """One more part; clients write some of them twice."""
        if text and text not in self.parts[-_LAST_PARTS:]:
            self.parts.append(text)

    def attach(self, name: str) -> None:
        """The name of something that was sent along."""
        self.more.setdefault("attachments", []).append(name)


def messages_of(drafts: Iterable[Draft], began: datetime | None = None) -> tuple[Message, ...]:
    """Whole messages in the same order, empty ones left out; a missing time is the one before it, and marked so.

    `began`: when the conversation did, for those of which no message has a time.
    """
    kept = undated_messages_of(drafts)
    known = next((message.timestamp for message in kept if message.timestamp), began)
    done = []
    for message in kept:
        known = message.timestamp or known
        is_told = message.timestamp is not None
        done.append(
            message if is_told else replace(message, timestamp=known, more={**message.more, "time": "inferred"})
        )
    return tuple(done)


def undated_messages_of(drafts: Iterable[Draft]) -> tuple[Message, ...]:
    """Whole messages in the same order, empty ones left out; where no time is stored it stays missing."""
    return tuple(Message(draft.role, text, draft.at, None, draft.more) for draft in drafts if (text := _text(draft)))


def dated(session: Session, *known: datetime | None) -> Session:
    """The session; where no message has a time, all have the first that is known, and are marked so.

    Without any time a session would have that of its import, and stand before those of today.
    """
    at = next(filter(None, known), None)
    if at is None or any(message.timestamp for message in session.messages):
        return session
    messages = (replace(told, timestamp=at, more={**told.more, "time": "inferred"}) for told in session.messages)
    return replace(session, messages=tuple(messages))


def _text(draft: Draft) -> str:
    names = draft.more.get("attachments", ())
    return "\n\n".join(draft.parts) or " ".join(f"[{name}]" for name in names)


def moment(value: object) -> datetime | None:
    """A client's time: ISO 8601, or a number of seconds or milliseconds since 1970; None if it cannot be one."""
    at = _instant(value)
    return at if at and at >= EARLIEST else None


def _instant(value: object) -> datetime | None:
    try:
        if isinstance(value, str):
            return parse_time(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return parse_time(datetime.fromtimestamp(value / (1000 if value > _MILLISECONDS_FROM else 1), UTC))
    except (ValueError, OverflowError, OSError):
        return None
    return None


# What of its parameters says in a few words what a call does, what says most first.
_SAYING_MOST = (
    *(
        "file_path",
        "filePath",
        "filepath",
        "notebook_path",
        "path",
        "dir_path",
        "command",
        "cmd",
        "pattern",
        "query",
        "url",
    ),
    *("description", "skill"),
)
_LONGEST_TITLE = 200


def call_title(name: str, params: object, folder: str = "") -> str:
    """A call on one line, such as `Read src/a.py`; paths below `folder` (the working folder) are shortened."""
    given = mapping(params)
    most = next((words for key in _SAYING_MOST if (words := _words(given.get(key)))), "")
    line = f"{name} {_below(most, folder)}".strip()
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1] + "…"


def _words(value: object) -> str:
    given = " ".join(filter(None, map(string, value))) if isinstance(value, list) else string(value)
    return " ".join(given[: 4 * _LONGEST_TITLE].split())


def _below(path: str, folder: str) -> str:
    inside = len(folder) > 1 and path.startswith((folder + "/", folder + "\\"))
    return path[len(folder) + 1 :] if inside else path


def tool_draft(
    native_id: str, name: str, params: object, at: datetime | None, *, folder: str = "", origin: str = ""
) -> Draft:
    """A call that has no result yet."""
    tool = {"name": name, "params": shallow(params), "result": None, "status": PENDING}
    return Draft(Role.TOOL, [call_title(name, params, folder)], at, {"native_id": native_id, "tool": tool}, origin)


def answer(draft: Draft, result: str, status: str, shown: str | None = None) -> None:
    """The call's result; a second one for the same call changes nothing. `shown`: what the text has of it."""
    tool = draft.more["tool"]
    if tool["status"] != PENDING:
        return
    tool.update(result=result, status=status)
    draft.add(result if shown is None else shown)


_HEAD, _TAIL = 3000, 1000


def shortened(text: str) -> str:
    """The beginning and the end of a text that is longer than anybody reads in a conversation."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n[…]\n{text[-_TAIL:]}"


def readable(content: object) -> str:
    """The text of a content: a string, a list of blocks, or any other value as JSON; pictures by their kind."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_block_text, content)))
    return "" if content is None else json.dumps(shallow(content), ensure_ascii=False)


def shallow(value: object, depth: int = 20) -> Any:
    """The value without what others fail on: what is nested too deep, and numbers that are no JSON (`1e999`)."""
    if not isinstance(value, dict | list):
        return None if isinstance(value, float) and not isfinite(value) else value
    if depth == 0:
        return "…"
    if isinstance(value, list):
        return [shallow(item, depth - 1) for item in value]
    return {key: shallow(item, depth - 1) for key, item in value.items()}


def _block_text(block: object) -> str:
    given = mapping(block)
    if isinstance(given.get("text"), str):
        return string(given["text"])
    name = attachment_name(given)
    return f"[{name}]" if name else readable(block if isinstance(block, str) else given or None)


_BINARY = ("image", "document", "file")


def attachment_name(block: Mapping[str, Any]) -> str:
    """The name of a picture or document, else its media type; nothing if the block is neither."""
    kind = string(block.get("type")).removeprefix("input_")
    if kind not in _BINARY:
        return ""
    source = mapping(block.get("source"))
    names = (block.get(key) for key in ("title", "filename", "name"))
    return next(filter(None, map(string, chain(names, (source.get("media_type"),)))), kind)


_WORKTREE = re.compile(r"[\\/]\.(?:claude|codex)[\\/]worktrees(?:[\\/].*)?$", re.DOTALL)


def project_of(folders: Iterable[str]) -> str | None:
    """The project of a session: its first working folder; one that a client made for itself counts as its origin."""
    seen = [folder for folder in folders if _is_absolute(folder)]
    own = next((folder for folder in seen if not _WORKTREE.search(folder)), None)
    return own or next((_WORKTREE.sub("", folder) for folder in seen), None) or None


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def texts_in(content: object) -> Iterator[str]:
    """The texts of a content, one for each block that has one."""
    if isinstance(content, str):
        yield content
    for block in items(content):
        if text := string(mapping(block).get("text")):
            yield text
