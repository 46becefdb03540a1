"""What a thread of Zed's agent says, in the form of today and in that of its first year. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string

_SILENT = frozenset(("RedactedThinking", "redacted_thinking"))
_USAGE = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(slots=True)
class Thread:
    """A thread in the making: hand it its messages, then take its drafts."""

    described: Record
    folder: str = ""
    unknown: Counter[str] = field(default_factory=Counter)
    found: list[Draft] = field(default_factory=list)

    def read(self, message: object) -> None:
        """Take in one message; what is not understood is counted in `unknown`."""
        given = mapping(message)
        if message == "Resume":
            return
        if "User" in given:
            self._asked(mapping(given["User"]))
        elif "Agent" in given:
            self._answered(mapping(given["Agent"]))
        elif "role" in given:
            self._first_year(given)
        else:
            self.unknown["message of a form"] += 1

    @property
    def model(self) -> str:
        """The thread's model; no message has its own."""
        return string(mapping(self.described.get("model")).get("model"))

    def _asked(self, message: Record) -> None:
        key, texts, told, sent = string(message.get("id")), [], [], []
        for block in map(mapping, items(message.get("content"))):
            if isinstance(block.get("Text"), str):
                texts.append(block["Text"])
            elif mention := mapping(block.get("Mention")):
                told.append(string(mention.get("content")))
                sent.append(_mentioned(mention.get("uri")))
            elif "Image" in block:
                sent.append("image")
            else:
                self.unknown[f"block {_kind(block)}"] += 1
        more: dict[str, Any] = {"native_id": key} if key else {}
        usage = mapping(mapping(self.described.get("request_token_usage")).get(key))
        counted = {name: usage[name] for name in _USAGE if isinstance(usage.get(name), int)}
        attached = {"attachments": sent} if sent else {}
        self.found.append(Draft(Role.USER, _whole("".join(texts)), None, {**more, **attached}))
        self._told("\n\n".join(filter(None, told)), f"{key}:context" if key else "")
        if counted:
            self.found[-1].more["usage"] = counted

    def _answered(self, message: Record) -> None:
        results = mapping(message.get("tool_results"))
        for block in map(mapping, items(message.get("content"))):
            if isinstance(block.get("Text"), str):
                self._said(Role.ASSISTANT, block["Text"])
            elif "Thinking" in block:
                self._said(Role.THINKING, string(mapping(block["Thinking"]).get("text")))
            elif "ToolUse" in block:
                call = mapping(block["ToolUse"])
                self._called(call, mapping(results.get(string(call.get("id")))))
            elif _kind(block) not in _SILENT:
                self.unknown[f"block {_kind(block)}"] += 1

    def _first_year(self, message: Record) -> None:
        role = string(message.get("role")).lower()
        if role == "system":
            return
        for segment in map(mapping, items(message.get("segments"))):
            if segment.get("type") == "thinking":
                self._said(Role.THINKING, string(segment.get("text")))
            elif segment.get("type") == "text":
                self._said(Role.USER if role == "user" else Role.ASSISTANT, string(segment.get("text")))
            elif string(segment.get("type")) not in _SILENT:
                self.unknown[f"segment {string(segment.get('type')) or 'without type'}"] += 1
        if isinstance(message.get("text"), str):
            self._said(Role.USER if role == "user" else Role.ASSISTANT, message["text"])
        self._told(string(message.get("context")), "")
        results = {string(each.get("tool_use_id")): each for each in map(mapping, items(message.get("tool_results")))}
        for call in map(mapping, items(message.get("tool_uses"))):
            self._called(call, results.get(string(call.get("id")), {}))

    def _called(self, call: Record, result: Record) -> None:
        key, name = string(call.get("id")), string(call.get("name")) or "tool"
        draft = drafts.tool_draft(key, name, call.get("input", {}), None, folder=self.folder)
        if result:
            outcome = drafts.FAILED if result.get("is_error") is True else drafts.COMPLETED
            drafts.answer(draft, _output(result.get("content")), outcome)
        self._with_model(draft)

    def _said(self, role: Role, text: str) -> None:
        if text.strip():
            draft = Draft(role, [text.strip()], None)
            if role is Role.USER:
                self.found.append(draft)
            else:
                self._with_model(draft)

    def _told(self, text: str, key: str) -> None:
        if text.strip():
            named = {"native_id": key} if key else {}
            self.found.append(Draft(Role.SYSTEM, [text.strip()], None, {**named, "injected": True}))

    def _with_model(self, draft: Draft) -> None:
        if self.model:
            draft.more["model"] = self.model
        self.found.append(draft)


def _kind(block: Record) -> str:
    return next(iter(block), "without type")


def _whole(text: str) -> list[str]:
    return [text.strip()] if text.strip() else []


def _mentioned(uri: object) -> str:
    """A mention is of a kind and has what tells it: a file's path, a symbol's or a thread's name."""
    if isinstance(uri, str):
        return uri
    for kind, told in mapping(uri).items():
        names = (string(mapping(told).get(key)) for key in ("abs_path", "path", "name", "url"))
        return next(filter(None, names), kind)
    return "mention"


def _output(content: object) -> str:
    """A result is a text, `{"Text": …}` or `{"Image": …}`, or a list of these."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_output, content)))
    given = mapping(content)
    if "Image" in given:
        return "[image]"
    return string(given.get("Text")) if "Text" in given else drafts.readable(content)
