"""What a Gemini CLI chat says, whether kept as one document or as a journal. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.base import Skipped
from sources.gemini.prompts import Prompt, parts_text, prompt_of, thoughts_in
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string

TITLE_WIDTH = 80
_STATUS = {
    **{"success": drafts.COMPLETED, "error": drafts.FAILED, "cancelled": drafts.REJECTED},
    **dict.fromkeys(("pending", "validating", "scheduled", "awaiting_approval", "executing"), drafts.PENDING),
}
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cache_read_input_tokens",
    "thoughts": "reasoning_tokens",
}
_OUTPUTS = ("output", "error", "content")


@dataclass(slots=True)
class Chat:
    """One chat in the making: hand it the records of a journal, or the one document, then ask for the session.

    `agent_of`: for a sub-agent's chat the session it works for. `project`: what the folder tells, if anything.
    """

    session_id: str
    agent_of: str | None = None
    project: str | None = None
    header: Record = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    _messages: dict[str, Record] = field(default_factory=dict)
    _standing: list[str] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)
    _injected: set[str] = field(default_factory=set)

    def read(self, record: Record) -> None:
        """Take in one record; what is not understood is counted in `unknown`."""
        if "$rewindTo" in record:
            self._rewind(string(record["$rewindTo"]))
        elif "$set" in record:
            self._describe(mapping(record["$set"]))
        elif "type" in record:
            self._put(record)
        elif "sessionId" in record or "messages" in record:
            self._describe(record)
        else:
            self.unknown["record without type"] += 1

    def session(self) -> Session:
        """The chat as read so far; messages that were rewound are marked."""
        found = [draft for key in self._messages for draft in self._drafts(key)]
        title_from, title = self._title(found)
        meta = {"title_from": title_from, "relation": "sub-agent" if self.agent_of else None}
        return Session(
            session_id=string(self.header.get("sessionId")) or self.session_id,
            messages=drafts.messages_of(found, drafts.moment(self.header.get("startTime"))),
            title=title,
            project=self.project or drafts.project_of(map(string, items(self.header.get("directories")))),
            parent=self.agent_of,
            meta={key: value for key, value in meta.items() if value},
        )

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    # The journal

    def _describe(self, header: Record) -> None:
        """A list of messages comes after the client has rewritten its history: summed up, large outputs cut.

        So what is known stays as it was first written, and what is new then is the client's own.
        """
        self.header |= {key: value for key, value in header.items() if key != "messages"}
        given = [(mapping(message), string(mapping(message).get("id"))) for message in items(header.get("messages"))]
        is_rewritten = any(key in self._messages for _, key in given if key)
        for message, key in given:
            if is_rewritten and key in self._messages:
                continue
            key = self._put(message)
            if is_rewritten:
                self._injected.add(key)

    def _put(self, message: Record) -> str:
        """The same message is written again when it grows: the last copy counts, at the first place."""
        key = string(message.get("id")) or f"#{len(self._messages)}"
        if key not in self._places:
            self._messages.pop(key, None)  # rewound before, and said again
            self._places[key] = len(self._standing)
            self._standing.append(key)
        self._messages[key] = message
        return key

    def _rewind(self, key: str) -> None:
        """From this message on; one that is not known changes nothing."""
        place = self._places.get(key, len(self._standing))
        for dropped in self._standing[place:]:
            del self._places[dropped]
        del self._standing[place:]

    # Messages

    def _drafts(self, key: str) -> Iterator[Draft]:
        message = self._messages[key]
        handler = _TYPES.get(string(message.get("type")))
        if handler is None:
            self.unknown[f"message {string(message.get('type')) or 'without type'}"] += 1
            return
        for draft in handler(message, self.project or ""):
            if key not in self._places:
                draft.more["superseded"] = True
            if key in self._injected:
                draft.role, draft.more["injected"] = Role.SYSTEM, True
            yield draft

    def _title(self, found: list[Draft]) -> tuple[str, str] | tuple[None, None]:
        """A sub-agent's summary is what it reported, not what it is about."""
        summary = string(self.header.get("summary")).strip()
        if summary and not self.agent_of:
            return "summary", preview_of(summary, 4 * TITLE_WIDTH)
        words = next((draft.parts[0] for draft in found if draft.role is Role.USER and draft.parts), "")
        return ("first words", preview_of(words, TITLE_WIDTH)) if words.strip() else (None, None)


def _asked(message: Record, _folder: str) -> Iterator[Draft]:
    prompt = prompt_of(message)
    if prompt.typed or prompt.attachments:
        yield _draft(message, Role.USER, prompt.typed, **_attached(prompt))
    if prompt.context:
        apart = ":context" if prompt.typed else ""
        yield _draft(message, Role.SYSTEM, prompt.context, apart, injected=True)


def _attached(prompt: Prompt) -> dict[str, Any]:
    return {"attachments": list(prompt.attachments)} if prompt.attachments else {}


def _answered(message: Record, folder: str) -> Iterator[Draft]:
    model = {"model": string(message["model"])} if string(message.get("model")) else {}
    found = list(_answer_parts(message, folder))
    for draft in found:
        draft.more |= model
    tokens = mapping(message.get("tokens"))
    usage = {ours: tokens[theirs] for theirs, ours in _USAGE.items() if isinstance(tokens.get(theirs), int)}
    if found and usage:
        found[0].more["usage"] = usage
    yield from found


def _answer_parts(message: Record, folder: str) -> Iterator[Draft]:
    if thoughts := thoughts_in(message):
        first = mapping(next(iter(items(message.get("thoughts"))), None))
        draft = _draft(message, Role.THINKING, thoughts, ":thinking")
        draft.at = drafts.moment(first.get("timestamp")) or draft.at
        yield draft
    if said := parts_text(message.get("content")).strip():
        yield _draft(message, Role.ASSISTANT, said)
    for place, call in enumerate(map(mapping, items(message.get("toolCalls")))):
        yield _tool(message, call, place, folder)


def _tool(message: Record, call: Record, place: int, folder: str) -> Draft:
    native_id = string(call.get("id")) or f"{string(message.get('id'))}:tool:{place}"
    at = drafts.moment(call.get("timestamp")) or drafts.moment(message.get("timestamp"))
    draft = drafts.tool_draft(native_id, string(call.get("name")) or "tool", call.get("args", {}), at, folder=folder)
    result, status = _result(call), _STATUS.get(string(call.get("status")))
    if result and status is None:
        status = drafts.COMPLETED
    if status and status != drafts.PENDING:
        drafts.answer(draft, result, status)
    return draft


def _result(call: Record) -> str:
    """What the model was told; where nothing is kept of that, what the user was shown."""
    told = filter(None, (_response(mapping(part)) for part in items(call.get("result"))))
    return "\n".join(told) or _shown(call.get("resultDisplay"))


def _response(part: Record) -> str:
    if "functionResponse" not in part:
        return parts_text([part])
    response = mapping(mapping(part["functionResponse"]).get("response"))
    given = next((response[key] for key in _OUTPUTS if response.get(key)), response or None)
    return drafts.readable(given)


def _shown(display: object) -> str:
    """Text, a change of a file, or lines of coloured text."""
    if isinstance(display, list):
        return "\n".join("".join(_words(span) for span in items(line)).rstrip() for line in display)
    told = mapping(display)
    return string(told.get("fileDiff")) or string(told.get("summary")) or drafts.readable(display)


def _words(span: object) -> str:
    return string(mapping(span).get("text"))


def _notice(message: Record, _folder: str) -> Iterator[Draft]:
    yield _draft(message, Role.SYSTEM, parts_text(message.get("content")).strip(), injected=True)


def _failure(message: Record, _folder: str) -> Iterator[Draft]:
    yield _draft(message, Role.ERROR, parts_text(message.get("content")).strip())


def _draft(message: Record, role: Role, text: str, apart: str = "", **more: Any) -> Draft:
    native_id = string(message.get("id"))
    named = {"native_id": native_id + apart} if native_id else {}
    return Draft(role, [text] if text else [], drafts.moment(message.get("timestamp")), {**named, **more})


_TYPES: dict[str, Callable[[Record, str], Iterator[Draft]]] = {
    "user": _asked,
    "gemini": _answered,
    "info": _notice,
    "warning": _notice,
    "error": _failure,
}
