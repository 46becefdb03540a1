"""Messages, and the conversations of them, that readers build piece by piece. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from math import isfinite
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from registry.domain import EARLIEST, Message, Role, Session, parse_time, preview_of
from sources.base import Skipped
from sources.kit.loose_json import items, mapping, object_in, string

# how a tool call ended, for every client; pending: the client's file has no result
COMPLETED, FAILED, REJECTED, PENDING = "completed", "failed", "rejected", "pending"


@dataclass(slots=True)
class Draft:
    """A message whose parts may still follow. `origin` is the record that began it."""

    role: Role
    parts: list[str]
    at: datetime | None
    more: dict[str, Any] = field(default_factory=dict)
    origin: str = ""

    def add(self, text: str) -> None:
        """Add a part; clients write some of them twice."""
        if text and text not in self.parts[-50:]:
            self.parts.append(text)

    def answer(self, result: str, status: str, shown: str | None = None) -> None:
        """Add a call's result; a second one, or a pending one, changes nothing. `shown`: its form in the text."""
        tool = self.more["tool"]
        if PENDING == tool["status"] != status:
            tool.update(result=result, status=status)
            self.add(result if shown is None else shown)

    def attach(self, name: str) -> None:
        """Add the name of an attachment."""
        self.more.setdefault("attachments", []).append(name)


def messages_of(drafts: Iterable[Draft], began: datetime | None = None) -> tuple[Message, ...]:
    """Return the messages in order, without empty ones; a missing time is copied from the one before, and marked.

    `began`: the beginning of the conversation, used if no message has a time.
    """
    kept = undated_messages_of(drafts)
    known = next((message.timestamp for message in kept if message.timestamp), began)
    done = []
    for message in kept:
        known = message.timestamp or known
        done.append(message if message.timestamp else _inferred(message, known))
    return tuple(done)


def _inferred(message: Message, at: datetime | None) -> Message:
    return replace(message, timestamp=at, more={**message.more, "time": "inferred"})


def undated_messages_of(drafts: Iterable[Draft]) -> tuple[Message, ...]:
    """Return the messages in order, without empty ones; a missing time stays missing."""
    return tuple(Message(draft.role, text, draft.at, None, draft.more) for draft in drafts if (text := _text(draft)))


def dated(session: Session, *known: datetime | None) -> Session:
    """Give the first known time to all messages, marked as inferred, if no message has one.

    Without any time a session would get the time of its import, and be listed before those of today.
    """
    at = next(filter(None, known), None)
    if at is None or any(message.timestamp for message in session.messages):
        return session
    return replace(session, messages=tuple(_inferred(message, at) for message in session.messages))


def _text(draft: Draft) -> str:
    names = draft.more.get("attachments", ())
    return "\n\n".join(draft.parts) or " ".join(f"[{name}]" for name in names)


def moment(value: object) -> datetime | None:
    """Parse a client's time: ISO 8601, or seconds or milliseconds since 1970; None if it cannot be one."""
    try:
        if isinstance(value, str):
            at = parse_time(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            is_milliseconds = value > 100_000_000_000  # as seconds that is the year 5138
            at = parse_time(datetime.fromtimestamp(value / (1000 if is_milliseconds else 1), UTC))
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return at if at >= EARLIEST else None


# the parameters that may stand for a call in its title, the most telling first
_TITLE_PARAMS = (
    *("file_path", "filePath", "filepath", "notebook_path", "path", "dir_path", "command", "cmd", "pattern"),
    *("query", "url", "description", "skill"),
)


def call_title(name: str, params: object, folder: str = "") -> str:
    """Return a call on one line, such as `Read src/a.py`; paths below `folder` (the working folder) are shortened."""
    given = mapping(params)
    subject = next((words for key in _TITLE_PARAMS if (words := _words(given.get(key)))), "")
    if len(folder) > 1 and subject.startswith((folder + "/", folder + "\\")):
        subject = subject[len(folder) + 1 :]
    return preview_of(f"{name} {subject}", 200)


def _words(value: object) -> str:
    given = " ".join(filter(None, map(string, value))) if isinstance(value, list) else string(value)
    return " ".join(given[:800].split())


def tool_draft(
    native_id: str, name: str, params: object, at: datetime | None, *, folder: str = "", origin: str = ""
) -> Draft:
    """Return a call without a result."""
    tool = {"name": name, "params": storable(params), "result": None, "status": PENDING}
    return Draft(Role.TOOL, [call_title(name, params, folder)], at, {"native_id": native_id, "tool": tool}, origin)


def shortened(text: str) -> str:
    """Keep the beginning and the end of a text over 4000 characters."""
    return text if len(text) <= 4000 else f"{text[:3000]}\n[…]\n{text[-1000:]}"


def content_text(content: object) -> str:
    """Return the text of a content: a string, a list of blocks, or a value as JSON; pictures by their kind."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_block_text, content)))
    return "" if content is None else json.dumps(storable(content), ensure_ascii=False)


def storable(value: object, depth: int = 20) -> Any:
    """Remove what cannot be stored as JSON: levels below `depth`, and infinite numbers."""
    if not isinstance(value, dict | list):
        return None if isinstance(value, float) and not isfinite(value) else value
    if depth == 0:
        return "…"
    if isinstance(value, list):
        return [storable(item, depth - 1) for item in value]
    return {key: storable(item, depth - 1) for key, item in value.items()}


def _block_text(block: object) -> str:
    given = mapping(block)
    if isinstance(given.get("text"), str):
        return string(given["text"])
    name = attachment_name(given)
    return f"[{name}]" if name else content_text(block if isinstance(block, str) else given or None)


def attachment_name(block: Mapping[str, Any]) -> str:
    """Return the name of a picture or document, else its media type; empty if the block is neither."""
    kind = string(block.get("type")).removeprefix("input_")
    if kind not in ("image", "document", "file"):
        return ""
    source = mapping(block.get("source"))
    names = (block.get(key) for key in ("title", "filename", "name"))
    return next(filter(None, map(string, chain(names, (source.get("media_type"),)))), kind)


_WORKTREE = re.compile(r"[\\/]\.(?:claude|codex)[\\/]worktrees(?:[\\/].*)?$", re.DOTALL)


def project_of(folders: Iterable[str]) -> str | None:
    """Return the first working folder; a worktree that a client made for itself counts as the folder it is of."""
    seen = [folder for folder in folders if _is_absolute(folder)]
    own = next((folder for folder in seen if not _WORKTREE.search(folder)), None)
    return own or next((_WORKTREE.sub("", folder) for folder in seen), None) or None


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def texts_in(content: object) -> Iterator[str]:
    """Yield the texts of a content, one for each block that has one."""
    if isinstance(content, str):
        yield content
    for block in items(content):
        if text := string(mapping(block).get("text")):
            yield text


@dataclass(slots=True)
class Conversation:
    """The messages so far, tool calls by id, and a count of what the parser did not understand.

    `folder`: the working folder, which shortens paths in the titles of calls. `model`: of the messages that follow.
    """

    session_id: str = ""
    folder: str = ""
    model: str = ""
    unknown: Counter[str] = field(default_factory=Counter)
    drafts: list[Draft] = field(default_factory=list)
    calls: dict[str, Draft] = field(default_factory=dict)

    def say(
        self, role: Role, text: str, at: datetime | None = None, native_id: str = "", *, origin: str = "", **more: Any
    ) -> Draft:
        """Add a message and return it; without text or attachments it is returned only."""
        draft = Draft(role, [text] if text else [], at, without_empty({"native_id": native_id, **more}), origin)
        if text or "attachments" in draft.more:
            self.drafts.append(draft)
        return draft

    def call(
        self,
        call_id: str,
        name: str,
        params: object,
        at: datetime | None = None,
        *,
        folder: str = "",
        origin: str = "",
        **more: Any,
    ) -> Draft:
        """Add a tool call without a result."""
        draft = tool_draft(call_id, name or "tool", params, at, folder=folder or self.folder, origin=origin)
        draft.more |= without_empty(more)
        self.calls[call_id or f"without id {len(self.drafts)}"] = draft
        self.drafts.append(draft)
        return draft

    def answer(self, call_id: str, result: str, status: str) -> None:
        """Add the result of a call; one of an unknown call is dropped."""
        if call_id in self.calls:
            self.calls[call_id].answer(result, status)

    def describe(self, since: int, model: str, usage: Mapping[str, int]) -> None:
        """Note the model with the messages since a position, and the tokens with the first of them."""
        for draft in self.drafts[since:]:
            draft.more |= {"model": model} if model else {}
        for draft in self.drafts[since : since + 1]:
            draft.more |= {"usage": dict(usage)} if usage else {}

    def skipped(self, where: str = "") -> tuple[Skipped, ...]:
        """Return what was passed over because this reader does not know it."""
        why = "unknown to this reader"
        return tuple(Skipped(f"{count} x {kind}{where}", why) for kind, count in self.unknown.items())

    def build(
        self,
        titles: Mapping[str, object] | None = None,
        *,
        folders: Iterable[str] = (),
        project: str | None = None,
        parent: str | None = None,
        began: datetime | None = None,
        **meta: Any,
    ) -> Session:
        """Build the session. `titles`: candidates by origin; `folders`: candidates for the project, the first wins."""
        title_from, title = title_of(self.drafts, titles or {})
        known = {"title_from": title_from, **meta}
        return Session(
            session_id=self.session_id,
            messages=messages_of(self.drafts, began),
            title=title,
            project=project or project_of(folders),
            parent=parent or None,
            meta={name: value for name, value in known.items() if value},
        )


def without_empty(more: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is not known: empty texts and lists."""
    return {name: value for name, value in more.items() if value not in ("", None, [])}


def supersede(found: Iterable[Draft]) -> None:
    """Mark messages that the user took back, or that others replaced."""
    for draft in found:
        draft.more["superseded"] = True


def title_of(found: Iterable[Draft], titles: Mapping[str, object]) -> tuple[str, str] | tuple[None, None]:
    """Return origin and text of the title: the first candidate that is not blank, else the user's first words."""
    for origin, title in titles.items():
        if isinstance(title, str) and title.strip():
            return origin, preview_of(title, 320)
    words = next((draft.parts[0] for draft in found if draft.role is Role.USER and draft.parts), "")
    return ("first words", preview_of(words, 80)) if words.strip() else (None, None)


def off_path(parents: Mapping[str, str], leaf: str) -> set[str]:
    """Return the records of a tree that do not lead to its last one: the user took a step back behind them.

    If the chain to the root is torn, nothing is known, and the set is empty.
    """
    live: set[str] = set()
    while leaf in parents and leaf not in live:
        live.add(leaf)
        leaf = parents[leaf]
    return set() if leaf else parents.keys() - live


def usage_of(
    given: object, names: Mapping[str, str], *, cache_in_input: bool = False, reasoning_beside_output: bool = False
) -> dict[str, int]:
    """Return a client's token counts by our names.

    `input_tokens` never include those from a cache, `output_tokens` always include the reasoning. The two flags tell
    where the client counts otherwise.
    """
    counts = mapping(given)
    usage = {ours: counts[theirs] for theirs, ours in names.items() if isinstance(counts.get(theirs), int)}
    if cache_in_input and "input_tokens" in usage:
        cached = usage.get("cache_read_input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
        usage["input_tokens"] = max(usage["input_tokens"] - cached, 0)
    if reasoning_beside_output and "reasoning_tokens" in usage:
        usage["output_tokens"] = usage.get("output_tokens", 0) + usage["reasoning_tokens"]
    return usage


def params_of(arguments: object) -> object:
    """Return a call's parameters: clients write JSON into a string, or a script as it is."""
    return (object_in(arguments) or {"input": arguments}) if isinstance(arguments, str) else arguments
