"""Build a conversation from the messages of a Cursor agent's prompt, or of its transcript. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from registry.domain import Role
from sources.base import Skipped
from sources.cursor_agent.prompts import attachments_of, folder_of, noted_time, pieces_of
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, object_in, string
from sources.kit.loose_json import inside, number, objects

UNKNOWN_MODEL = "default"
_FAILED = ("error", "failure", "permissionDenied", "timeout")
_SILENT = ("redacted-reasoning", "image", "file", "document")


@dataclass(slots=True)
class Conversation:
    """A conversation being built: `read` the messages in order, each with a unique name, then take `drafts`.

    `folder`: the workspace, by which paths in titles of calls are shortened. `model`: of answers that name none.
    """

    folder: str = ""
    model: str = ""
    unknown: Counter[str] = field(default_factory=Counter)
    drafts: list[Draft] = field(default_factory=list)
    _calls: dict[str, Draft] = field(default_factory=dict)
    _name: str = ""
    _begun: int = 0
    _common: Record = field(default_factory=dict)

    def read(self, name: str, message: Record) -> None:
        """Add one message; what is not understood is counted in `unknown`."""
        self._name, self._begun, own = name, len(self.drafts), cursors_own(message)
        self._common = _known(request_id=string(own.get("requestId")))
        if own.get("isSummary") is True:
            self._summary(message)
        elif handler := _ROLES.get(string(message.get("role"))):
            handler(self, message)
        else:
            kind = string(message.get("role")) or string(message.get("type"))
            self.unknown[f"record {kind or 'without role'}"] += 1

    def add(self, name: str, role: Role, text: str) -> None:
        """Add a message of which only role and text are known."""
        self._name, self._begun, self._common = name, len(self.drafts), {}
        if role is Role.USER:
            self._add_question(text)
        elif role is Role.SYSTEM:
            self._context(text)
        else:
            self._add(role, text)

    def skipped(self) -> tuple[Skipped, ...]:
        """Return what was passed over because it is unknown."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    def _system(self, message: Record) -> None:
        self._context("\n\n".join(drafts.texts_in(message.get("content"))))

    def _summary(self, message: Record) -> None:
        text = "\n\n".join(drafts.texts_in(message.get("content"))) or "Conversation summarised"
        self._context(text)["compaction"] = {}

    def _user(self, message: Record) -> None:
        content = message.get("content")
        for text in drafts.texts_in(content):
            self._add_question(text)
        for block in objects(content):
            kind = string(block.get("type"))
            if name := _name_of(block):
                self._prompt().attach(name)
            elif kind != "text":
                self.unknown[f"part {kind or 'without type'}"] += 1

    def _assistant(self, message: Record) -> None:
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        common = self._common
        for part in map(mapping, parts):
            kind, own = string(part.get("type")), cursors_own(part)
            self._common = common | _known(request_id=string(own.get("requestId")), model=self._model(own, message))
            if handler := _PARTS.get(kind):
                handler(self, part)
            elif kind not in _SILENT:
                self.unknown[f"part {kind or 'without type'}"] += 1
        self._common = common | _known(model=self._model(message))
        for call in objects(message.get("tool_calls")):
            function = mapping(call.get("function"))
            given = string(function.get("arguments"))
            self._add_call(string(call.get("id")), string(function.get("name")), object_in(given) or given)

    def _results(self, message: Record) -> None:
        parts = [part for part in objects(message.get("content")) if part.get("type") == "tool-result"]
        call_id = string(message.get("tool_call_id")) or string(message.get("id"))
        whole = {"toolCallId": call_id, "toolName": message.get("name"), "result": message.get("content")}
        for part in parts or [whole]:
            self._add_result(part, message)

    def _text(self, part: Record) -> None:
        self._add(Role.ASSISTANT, string(part.get("text")))

    def _thinking(self, part: Record) -> None:
        self._add(Role.THINKING, string(part.get("thinking")) or string(part.get("text")))

    def _call(self, part: Record) -> None:
        given: object = next((part[key] for key in ("args", "input") if key in part), {})
        params = object_in(given) or given if isinstance(given, str) else given
        draft = self._add_call(string(part.get("toolCallId")), string(part.get("toolName") or part.get("name")), params)
        if isinstance(result := part.get("result"), str):  # only in a transcript
            drafts.answer(draft, result, drafts.COMPLETED, drafts.shortened(result))

    def _add_call(self, call_id: str, name: str, params: object) -> Draft:
        draft = drafts.tool_draft(self._native_id(), name or "tool", params, None, folder=self.folder)
        draft.more |= self._common
        if call_id:
            draft.more["tool"]["id"] = call_id
            self._calls[call_id] = draft
        self.drafts.append(draft)
        return draft

    def _add_result(self, part: Record, message: Record) -> None:
        """Add the result of a call, or of one that is missing. Ids may contain a newline: compared as they are."""
        call_id = string(part.get("toolCallId"))
        draft = self._calls.get(call_id) or self._add_call(call_id, string(part.get("toolName")), {})
        result, status = outcome(part, message)
        drafts.answer(draft, result, status, drafts.shortened(result))

    def _add_question(self, text: str) -> None:
        attached: list[str] = []
        question: Draft | None = None
        for speaker, piece in pieces_of(text):
            if speaker is Role.SYSTEM:
                self._context(piece)
                attached += attachments_of(piece)
            else:
                question = self._add(speaker, piece)
                question.at = noted_time(text)
        for name in attached:
            if question:
                question.attach(name)

    def _prompt(self) -> Draft:
        """Return the question of the current message, else an empty one for attachments without text."""
        own = (draft for draft in self.drafts[self._begun :] if draft.role is Role.USER)
        return next(own, None) or self._add(Role.USER, "")

    def _context(self, text: str) -> Record:
        self.folder = self.folder or folder_of(text)
        more = self._add(Role.SYSTEM, text).more
        more["injected"] = True
        return more

    def _add(self, role: Role, text: str) -> Draft:
        text = text.strip()
        more = {"native_id": self._native_id(), **self._common}
        draft = Draft(role, [text] if text else [], None, more)
        self.drafts.append(draft)
        return draft

    def _native_id(self) -> str:
        return f"{self._name}:{len(self.drafts) - self._begun}"

    def _model(self, *holders: Record) -> str:
        named = [string(each.get("modelName")) for holder in holders for each in (holder, cursors_own(holder))]
        return next((name for name in (*named, self.model) if name not in ("", UNKNOWN_MODEL)), "")


def _known(**given: str) -> Record:
    return {name: value for name, value in given.items() if value}


def _name_of(part: Record) -> str:
    """Return the name of an attachment: its own, the end of its address, or its media type."""
    if part.get("type") not in ("image", "file", "document"):
        return ""
    address = next(filter(None, (string(part.get(key)) for key in ("image", "url", "path"))), "")
    last = "" if address.startswith("data:") else re.split(r"[/\\]", address)[-1][:200]
    media_type = string(part.get("mediaType")) or string(part.get("mimeType"))
    return string(part.get("filename")) or last or media_type or drafts.attachment_name(part)


def cursors_own(holder: Record) -> Record:
    """Return what Cursor noted with a message or a part of one."""
    return mapping(inside(holder, "providerOptions", "cursor"))


def paths_in(calls: Iterable[Draft]) -> list[str]:
    """Return paths that calls name: one of their parents is the workspace."""
    params = (mapping(mapping(call.more.get("tool")).get("params")) for call in calls)
    named = (string(value) for given in params for key, value in given.items() if key == "cwd" or "path" in key.lower())
    return list(islice(filter(None, named), 50))


def outcome(part: Record, message: Record) -> tuple[str, str]:
    """Return a call's result as the model saw it, and its status as the client noted it."""
    noted = _noted_outcome(part) or _noted_outcome(message)
    result = drafts.readable(part.get("result")) or drafts.readable(part.get("experimental_content"))
    return result or string(noted.get("diffString")), _status(part, noted)


def _noted_outcome(holder: Record) -> Record:
    """Return `highLevelToolCallResult`, with the cases at its top: newer builds have them in its `output`."""
    noted = mapping(cursors_own(holder).get("highLevelToolCallResult"))
    return {**noted, **mapping(noted.get("output"))}


def _status(part: Record, noted: Record) -> str:
    if noted.get("rejected"):
        return drafts.REJECTED
    code = next((code for key in ("exitCode", "exit_code") for code in _numbers(noted, key)), None)
    is_failed = part.get("isError") is True or noted.get("isError") is True or bool(code)
    return drafts.FAILED if is_failed or any(noted.get(key) for key in _FAILED) else drafts.COMPLETED


def _numbers(noted: Record, key: str) -> list[float]:
    found = (
        number(holder.get(key)) for holder in (noted, mapping(noted.get("success")), mapping(noted.get("failure")))
    )
    return [value for value in found if value is not None]


_ROLES: dict[str, Callable[[Conversation, Record], None]] = {
    "system": Conversation._system,
    "user": Conversation._user,
    "assistant": Conversation._assistant,
    "tool": Conversation._results,
}
_PARTS: dict[str, Callable[[Conversation, Record], object]] = {
    "text": Conversation._text,
    "reasoning": Conversation._thinking,
    "thinking": Conversation._thinking,
    "tool-call": Conversation._call,
    "tool_use": Conversation._call,
}
