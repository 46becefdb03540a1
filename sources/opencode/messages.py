"""What an OpenCode session says, whichever way it is kept. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.base import Skipped
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string
from sources.kit.loose_json import inside, number

TITLE_WIDTH = 80
_DEFAULT_TITLE = re.compile(r"(?:New|Child) session - \d{4}-")
_IGNORED = ("patch", "snapshot", "step-start", "step-finish", "agent")
_REJECTION = ("The user rejected permission", "The user dismissed")
_ABORTED = "MessageAbortedError"
_USAGE = {
    ("input",): "input_tokens",
    ("output",): "output_tokens",
    ("reasoning",): "reasoning_tokens",
    ("cache", "read"): "cache_read_input_tokens",
    ("cache", "write"): "cache_creation_input_tokens",
}


@dataclass(slots=True)
class Dialogue:
    """One session in the making: hand it the messages in order, each with its parts, then ask for the session.

    `described`: the session's own record, by the names that its JSON form has.
    """

    described: Record
    unknown: Counter[str] = field(default_factory=Counter)
    _drafts: list[Draft] = field(default_factory=list)
    _is_reverted: bool = False

    def read(self, message: Record, parts: Iterable[Record]) -> None:
        """Take in one message; what is not understood is counted in `unknown`."""
        known = _Message(message, folder=string(self.described.get("directory")))
        handlers = _ROLES.get(string(message.get("role")))
        if handlers is None:
            self.unknown[f"message {string(message.get('role')) or 'without role'}"] += 1
            return
        self._is_reverted |= self._reverts("messageID", message) and not string(self._revert.get("partID"))
        before = len(self._drafts)
        for part in parts:
            self._is_reverted |= self._reverts("partID", part)
            self._part(known, handlers, part)
        self._add(known, known.closing())
        known.finish(self._drafts[before:])

    def session(self) -> Session:
        """The conversation as read so far; what was reverted is marked."""
        title_from, title = self._title()
        parent = string(self.described.get("parentID")) or None
        archived = drafts.moment(inside(self.described, "time", "archived"))
        meta = {
            "title_from": title_from,
            "relation": "sub-agent" if parent else None,
            "version": string(self.described.get("version")),
            "archived": bool(archived),
        }
        return Session(
            session_id=string(self.described.get("id")),
            messages=drafts.messages_of(self._drafts, drafts.moment(inside(self.described, "time", "created"))),
            title=title,
            project=drafts.project_of([string(self.described.get("directory"))]),
            parent=parent,
            meta={key: value for key, value in meta.items() if value},
        )

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    def _title(self) -> tuple[str, str] | tuple[None, None]:
        title = string(self.described.get("title")).strip()
        if title and not _DEFAULT_TITLE.match(title):
            return "title", preview_of(title, 4 * TITLE_WIDTH)
        words = next((draft.parts[0] for draft in self._drafts if draft.role is Role.USER and draft.parts), "")
        return ("first words", preview_of(words, TITLE_WIDTH)) if words else (None, None)

    @property
    def _revert(self) -> Record:
        return mapping(self.described.get("revert"))

    def _reverts(self, key: str, given: Record) -> bool:
        point = string(self._revert.get(key))
        return bool(point) and given.get("id") == point

    def _part(self, message: _Message, handlers: _Handlers, part: Record) -> None:
        kind = string(part.get("type"))
        if handler := handlers.get(kind):
            self._add(message, handler(message, part))
        elif kind not in _IGNORED:
            self.unknown[f"part {kind or 'without type'}"] += 1

    def _add(self, message: _Message, found: Iterable[Draft]) -> None:
        for draft in found:
            message.put_in_order(draft)
            if self._is_reverted:
                draft.more["superseded"] = True
            self._drafts.append(draft)


_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*\s(?:[^"\\]|\\.)*)"', re.DOTALL)


def _unquoted(prompt: str) -> str:
    """What was said to `opencode run`, which keeps words with spaces in quotes."""
    quoted = _QUOTED.fullmatch(prompt)
    return quoted[1].replace('\\"', '"') if quoted else prompt


@dataclass(slots=True)
class _Message:
    """One message while its parts come. Those that the user typed are one text; an answer is told part by part."""

    given: Record
    folder: str = ""
    _typed: Draft | None = None
    _latest: datetime | None = None

    @property
    def message_id(self) -> str:
        return string(self.given.get("id"))

    def put_in_order(self, draft: Draft) -> None:
        """Parts have an order of their own, which their times must not contradict."""
        latest = self._latest or self.time()
        if latest and (draft.at is None or draft.at < latest):
            draft.at = latest
            draft.more["time"] = "inferred"
        self._latest = draft.at

    def closing(self) -> Iterator[Draft]:
        """What the message says apart from its parts: how it failed."""
        error = mapping(self.given.get("error"))
        if not error:
            return
        told = string(inside(error, "data", "message")) or string(error.get("message")) or string(error.get("name"))
        is_abort = error.get("name") == _ABORTED
        text = f"[Turn aborted: {told}]" if is_abort else told or "error"
        more = {"native_id": f"{self.message_id}:error", **({"injected": True} if is_abort else {})}
        yield Draft(Role.SYSTEM if is_abort else Role.ERROR, [text], self.time("completed") or self.time(), more)

    def finish(self, found: list[Draft]) -> None:
        """What holds for the whole message: the model, the tokens, that it is a summary."""
        if self.given.get("role") != "assistant":
            return
        model = string(self.given.get("modelID"))
        for draft in found:
            if model:
                draft.more["model"] = model
            if self.given.get("summary") is True and draft.role is Role.ASSISTANT:
                draft.role = Role.SYSTEM
                draft.more |= {"injected": True, "compaction": {}}
        counts = {name: inside(self.given.get("tokens"), *path) for path, name in _USAGE.items()}
        usage = {name: count for name, count in counts.items() if isinstance(count, int) and count}
        if found and usage:
            found[0].more["usage"] = usage

    def time(self, name: str = "created") -> datetime | None:
        """One of the message's own times."""
        return drafts.moment(inside(self.given, "time", name))

    def typed(self, part: Record) -> Iterator[Draft]:
        """What the user typed; what the client put beside it is kept apart."""
        text = string(part.get("text")).strip()
        if part.get("synthetic") or part.get("ignored"):
            yield self._draft(part, Role.SYSTEM, text, injected=True)
        elif text:
            yield from self._prompt(_unquoted(text))

    def attached(self, part: Record) -> Iterator[Draft]:
        """A file that the user sent along."""
        yield from self._prompt("")
        if self._typed:
            self._typed.attach(_file_name(part))

    def called(self, part: Record) -> Iterator[Draft]:
        """A command that starts a sub-agent: what was typed is not kept, what it expands to is."""
        command, description = string(part.get("command")), string(part.get("description"))
        yield from self._prompt(f"/{command}" if command else description or f"@{string(part.get('agent'))}")
        yield self._draft(part, Role.SYSTEM, string(part.get("prompt")).strip(), injected=True)

    def said(self, part: Record) -> Iterator[Draft]:
        """Text of an answer."""
        is_apart = part.get("synthetic") or part.get("ignored")
        role, more = (Role.SYSTEM, {"injected": True}) if is_apart else (Role.ASSISTANT, {})
        yield self._draft(part, role, string(part.get("text")).strip(), **more)

    def thought(self, part: Record) -> Iterator[Draft]:
        """A thought; some providers keep them to themselves."""
        yield self._draft(part, Role.THINKING, string(part.get("text")).strip())

    def made(self, part: Record) -> Iterator[Draft]:
        """A file that an answer holds."""
        yield self._draft(part, Role.ASSISTANT, "", attachments=[_file_name(part)])

    def ran(self, part: Record) -> Iterator[Draft]:
        """A tool call with its result."""
        state = mapping(part.get("state"))
        at = drafts.moment(inside(state, "time", "start")) or self._time_of(part)
        name = string(part.get("tool")) or "tool"
        draft = drafts.tool_draft(string(part.get("id")), name, state.get("input", {}), at, folder=self.folder)
        status, told = _outcome(name, state)
        if status != drafts.PENDING:
            drafts.answer(draft, told, status)
        if agent := string(inside(state, "metadata", "sessionId")):
            draft.more["tool"]["agent"] = agent
        for attachment in map(mapping, items(state.get("attachments"))):
            draft.attach(_file_name(attachment))
        yield draft

    def tried_again(self, part: Record) -> Iterator[Draft]:
        """The provider failed, and was asked once more."""
        error = mapping(part.get("error"))
        told = string(error.get("message")) or string(inside(error, "data", "message")) or "error"
        yield self._draft(part, Role.ERROR, told)

    def compacted(self, part: Record) -> Iterator[Draft]:
        """The history up to here was summed up."""
        yield self._draft(part, Role.SYSTEM, "Conversation compacted", injected=True, compaction={})

    def _prompt(self, text: str) -> Iterator[Draft]:
        if self._typed is None:
            named = {"native_id": self.message_id} if self.message_id else {}
            self._typed = Draft(Role.USER, [], self.time(), dict(named))
            yield self._typed
        if text:
            self._typed.parts.append(text)

    def _draft(self, part: Record, role: Role, text: str, **more: Any) -> Draft:
        native_id = string(part.get("id"))
        named = {"native_id": native_id} if native_id else {}
        return Draft(role, [text] if text else [], self._time_of(part), {**named, **more})

    def _time_of(self, part: Record) -> datetime | None:
        return drafts.moment(inside(part, "time", "start") or inside(part, "time", "created"))


def _outcome(name: str, state: Record) -> tuple[str, str]:
    """Status and result; a command that failed is completed for the client."""
    status = string(state.get("status"))
    if status == "error":
        told = drafts.readable(state.get("error"))
        return (drafts.REJECTED if told.startswith(_REJECTION) else drafts.FAILED), told
    if status != "completed":
        return drafts.PENDING, ""
    has_failed = name == "invalid" or bool(number(inside(state, "metadata", "exit")))
    return (drafts.FAILED if has_failed else drafts.COMPLETED), drafts.readable(state.get("output"))


def _file_name(part: Record) -> str:
    """The name of a file; never what it holds, which may be in its address."""
    url = string(part.get("url"))
    address = "" if url.startswith("data:") else url
    return string(part.get("filename")) or address or string(part.get("mime")) or "file"


_Handlers = dict[str, Callable[[_Message, Record], Iterator[Draft]]]
_COMMON: _Handlers = {"compaction": _Message.compacted, "retry": _Message.tried_again}
_ROLES: dict[str, _Handlers] = {
    "user": {"text": _Message.typed, "file": _Message.attached, "subtask": _Message.called, **_COMMON},
    "assistant": {
        **{"text": _Message.said, "reasoning": _Message.thought, "tool": _Message.ran, "file": _Message.made},
        **{"subtask": _Message.called},
        **_COMMON,
    },
}
