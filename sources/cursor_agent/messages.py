"""A conversation out of the messages that the model of a Cursor agent saw. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from registry.domain import Role
from sources.base import Skipped
from sources.cursor_agent.prompts import attachments_of, folder_of, pieces_of, told_at
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, object_in, string
from sources.kit.loose_json import inside, number, objects

UNKNOWN_MODEL = "default"
_LONGEST_ADDRESS = 2000
_MOST_PATHS = 50
_FAILED = ("error", "failure", "permissionDenied", "timeout")
_SILENT = ("redacted-reasoning", "image", "file", "document")


@dataclass(slots=True)
class Talk:
    """One conversation in the making: hand it the messages in order, each with a name of its own, then ask.

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
        """Take in one message; what is not understood is counted in `unknown`."""
        self._name, self._begun, own = name, len(self.drafts), cursors_own(message)
        self._common = _known(request_id=string(own.get("requestId")))
        if own.get("isSummary") is True:
            self._summary(message)
        elif handler := _ROLES.get(string(message.get("role"))):
            handler(self, message)
        else:
            kind = string(message.get("role")) or string(message.get("type"))
            self.unknown[f"record {kind or 'without role'}"] += 1

    def said(self, name: str, role: Role, text: str) -> None:
        """Take in what is known only as words."""
        self._name, self._begun, self._common = name, len(self.drafts), {}
        if role is Role.USER:
            self._asked(text)
        elif role is Role.SYSTEM:
            self._context(text)
        else:
            self._put(role, text)

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    # Roles

    def _system(self, message: Record) -> None:
        self._context("\n\n".join(drafts.texts_in(message.get("content"))))

    def _summary(self, message: Record) -> None:
        text = "\n\n".join(drafts.texts_in(message.get("content"))) or "Conversation summarised"
        self._context(text)["compaction"] = {}

    def _user(self, message: Record) -> None:
        content = message.get("content")
        for text in drafts.texts_in(content):
            self._asked(text)
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
            self._called(string(call.get("id")), string(function.get("name")), object_in(given) or given)

    def _results(self, message: Record) -> None:
        parts = [part for part in objects(message.get("content")) if part.get("type") == "tool-result"]
        call_id = string(message.get("tool_call_id")) or string(message.get("id"))
        whole = {"toolCallId": call_id, "toolName": message.get("name"), "result": message.get("content")}
        for part in parts or [whole]:
            self._answered(part, message)

    # Parts

    def _text(self, part: Record) -> None:
        self._put(Role.ASSISTANT, string(part.get("text")))

    def _thought(self, part: Record) -> None:
        self._put(Role.THINKING, string(part.get("thinking")) or string(part.get("text")))

    def _call(self, part: Record) -> None:
        given: object = next((part[key] for key in ("args", "input") if key in part), {})
        params = object_in(given) or given if isinstance(given, str) else given
        draft = self._called(string(part.get("toolCallId")), string(part.get("toolName") or part.get("name")), params)
        if result := string(part.get("result")):  # only in a transcript
            drafts.answer(draft, result, drafts.COMPLETED, drafts.shortened(result))

    def _called(self, call_id: str, name: str, params: object) -> Draft:
        draft = drafts.tool_draft(self._native_id(), name or "tool", params, None, folder=self.folder)
        draft.more |= self._common
        if call_id:
            draft.more["tool"]["id"] = call_id
            self._calls[call_id] = draft
        self.drafts.append(draft)
        return draft

    def _answered(self, part: Record, message: Record) -> None:
        """The result of a call; one whose call is not there is kept all the same. Ids are compared as they are."""
        call_id = string(part.get("toolCallId"))
        draft = self._calls.get(call_id) or self._called(call_id, string(part.get("toolName")), {})
        result, status = outcome(part, message)
        drafts.answer(draft, result, status, drafts.shortened(result))

    # Drafts

    def _asked(self, text: str) -> None:
        attached: list[str] = []
        asked: Draft | None = None
        for speaker, piece in pieces_of(text):
            if speaker is Role.SYSTEM:
                self._context(piece)
                attached += attachments_of(piece)
            else:
                asked = self._put(speaker, piece)
                asked.at = told_at(text)
        for name in attached:
            if asked:
                asked.attach(name)

    def _prompt(self) -> Draft:
        """The question of the message that is being read, else an empty one for what was sent without words."""
        own = (draft for draft in self.drafts[self._begun :] if draft.role is Role.USER)
        return next(own, None) or self._put(Role.USER, "")

    def _context(self, text: str) -> Record:
        self.folder = self.folder or folder_of(text)
        more = self._put(Role.SYSTEM, text).more
        more["injected"] = True
        return more

    def _put(self, role: Role, text: str) -> Draft:
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
    """The name of a picture or file that was sent along: its own, that of its address, its media type."""
    if part.get("type") not in ("image", "file", "document"):
        return ""
    address = next(filter(None, (string(part.get(key)) for key in ("image", "url", "path"))), "")
    last = "" if address.startswith("data:") else re.split(r"[/\\]", address[:_LONGEST_ADDRESS])[-1]
    media_type = string(part.get("mediaType")) or string(part.get("mimeType"))
    return string(part.get("filename")) or last or media_type or drafts.attachment_name(part)


def cursors_own(holder: Record) -> Record:
    """What Cursor noted beside a message or a part of one."""
    return mapping(inside(holder, "providerOptions", "cursor"))


def paths_in(calls: Iterable[Draft]) -> list[str]:
    """Some of the paths that calls name: one of the folders above them is the workspace."""
    params = (mapping(mapping(call.more.get("tool")).get("params")) for call in calls)
    named = (string(value) for given in params for key, value in given.items() if key == "cwd" or "path" in key.lower())
    return list(islice(filter(None, named), _MOST_PATHS))


def outcome(part: Record, message: Record) -> tuple[str, str]:
    """Result and status of a call: the result that the model saw, and how the client saw it end."""
    told = _told(part) or _told(message)
    result = drafts.readable(part.get("result")) or drafts.readable(part.get("experimental_content"))
    return result or string(told.get("diffString")), _status(part, told)


def _told(holder: Record) -> Record:
    """`highLevelToolCallResult`, whose shape changed: the cases stand in it, or in its `output`."""
    told = mapping(cursors_own(holder).get("highLevelToolCallResult"))
    return {**told, **mapping(told.get("output"))}


def _status(part: Record, told: Record) -> str:
    if told.get("rejected"):
        return drafts.REJECTED
    code = next((code for key in ("exitCode", "exit_code") for code in _numbers(told, key)), None)
    is_failed = part.get("isError") is True or told.get("isError") is True or bool(code)
    return drafts.FAILED if is_failed or any(told.get(key) for key in _FAILED) else drafts.COMPLETED


def _numbers(told: Record, key: str) -> list[float]:
    found = (number(holder.get(key)) for holder in (told, mapping(told.get("success")), mapping(told.get("failure"))))
    return [value for value in found if value is not None]


_ROLES: dict[str, Callable[[Talk, Record], None]] = {
    "system": Talk._system,
    "user": Talk._user,
    "assistant": Talk._assistant,
    "tool": Talk._results,
}
_PARTS: dict[str, Callable[[Talk, Record], object]] = {
    "text": Talk._text,
    "reasoning": Talk._thought,
    "thinking": Talk._thought,
    "tool-call": Talk._call,
    "tool_use": Talk._call,
}
