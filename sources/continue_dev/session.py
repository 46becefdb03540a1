"""What a session of Continue says: one document, its history as the model was sent it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.base import Skipped
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, object_in, string
from sources.kit.workspace_files import path_of

TITLE_WIDTH = 80
_UNNAMED = ("", "New Session", "Untitled Session")
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "thinking": Role.THINKING, "system": Role.SYSTEM}
_STATUS = {
    "done": drafts.COMPLETED,
    "errored": drafts.FAILED,
    "canceled": drafts.REJECTED,
    **dict.fromkeys(("generating", "generated", "calling"), drafts.PENDING),
}
_USAGE = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}


@dataclass(slots=True)
class Talk:
    """A session in the making: hand it the items of its history, then ask for the session."""

    described: Record
    session_id: str
    unknown: Counter[str] = field(default_factory=Counter)
    _drafts: list[Draft] = field(default_factory=list)
    _calls: dict[str, Draft] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder that was open."""
        return path_of(self.described.get("workspaceDirectory"))

    def read(self, item: Record) -> None:
        """Take in one item of the history; what is not understood is counted in `unknown`."""
        message = mapping(item.get("message"))
        role = string(message.get("role"))
        if role == "tool":
            self._answer(string(message.get("toolCallId")), drafts.readable(message.get("content")), "done")
        elif role in _ROLES:
            self._said(_ROLES[role], message, item)
        else:
            self.unknown[f"message {role or 'without role'}"] += 1

    def session(self) -> Session:
        """The session as read so far."""
        title_from, title = self._title()
        return Session(
            session_id=string(self.described.get("sessionId")) or self.session_id,
            messages=drafts.messages_of(self._drafts),
            title=title,
            project=drafts.project_of([self.folder]),
            meta={"title_from": title_from} if title_from else {},
        )

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    def _title(self) -> tuple[str, str] | tuple[None, None]:
        named = string(self.described.get("title")).strip()
        if named not in _UNNAMED:
            return "name", preview_of(named, 4 * TITLE_WIDTH)
        words = next((draft.parts[0] for draft in self._drafts if draft.role is Role.USER and draft.parts), "")
        return ("first words", preview_of(words, TITLE_WIDTH)) if words.strip() else (None, None)

    def _said(self, role: Role, message: Record, item: Record) -> None:
        before, at = len(self._drafts), _began(item)
        thoughts = string(mapping(item.get("reasoning")).get("text")).strip()
        self._add(Role.THINKING, thoughts, at)
        self._add(role, _text(message.get("content")), at, **_beside(role, message))
        for shown in map(mapping, items(item.get("contextItems"))):
            name = string(shown.get("name")) or "context"
            self._add(Role.SYSTEM, f"{name}\n{string(shown.get('content'))}".strip(), at, injected=True)
        for call in map(mapping, items(message.get("toolCalls"))):
            self._called(call, at)
        for state in map(mapping, items(item.get("toolCallStates"))):
            self._called(mapping(state.get("toolCall")), at)
            output = "\n".join(string(mapping(part).get("content")) for part in items(state.get("output")))
            self._answer(string(state.get("toolCallId")), output, string(state.get("status")))
        self._count(before, mapping(message.get("usage")))

    def _count(self, before: int, usage: Record) -> None:
        own = self._drafts[before:]
        counted = {ours: usage[theirs] for theirs, ours in _USAGE.items() if isinstance(usage.get(theirs), int)}
        for draft in own[:1]:
            draft.more |= {"usage": counted} if counted else {}
        if model := string(usage.get("model")):
            for draft in own:
                draft.more["model"] = model

    def _called(self, call: Record, at: Any) -> None:
        key, function = string(call.get("id")), mapping(call.get("function"))
        if not key or key in self._calls:
            return
        written = string(function.get("arguments"))
        params: object = object_in(written) if written else {}
        name = string(function.get("name")) or "tool"
        self._calls[key] = drafts.tool_draft(key, name, written if params is None else params, at, folder=self.folder)
        self._drafts.append(self._calls[key])

    def _answer(self, key: str, result: str, status: str) -> None:
        outcome = _STATUS.get(status, drafts.COMPLETED if result else drafts.PENDING)
        if key in self._calls and outcome != drafts.PENDING:
            drafts.answer(self._calls[key], result, outcome)

    def _add(self, role: Role, text: str, at: Any, **more: Any) -> None:
        if text or more.get("attachments"):
            self._drafts.append(Draft(role, [text] if text else [], at, more))


def _began(item: Record) -> Any:
    return drafts.moment(mapping(item.get("reasoning")).get("startAt"))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content.strip()
    return "\n".join(string(mapping(part).get("text")) for part in items(content) if mapping(part).get("text")).strip()


def _beside(role: Role, message: Record) -> dict[str, Any]:
    if role is Role.SYSTEM:
        return {"injected": True}
    pictures = list(_pictures(message.get("content")))
    return {"attachments": pictures} if pictures else {}


def _pictures(content: object) -> Iterator[str]:
    for part in map(mapping, items(content)):
        if string(part.get("type")) == "imageUrl":
            yield "image"
