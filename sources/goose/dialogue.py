"""A conversation of Goose's: messages whose content is a list of parts. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string

_SILENT = frozenset(
    ("redactedThinking", "toolConfirmationRequest", "frontendToolRequest", "actionRequired", "conversationCompacted")
)
_NOTICES = frozenset(("systemNotification", "contextLengthExceeded", "summarizationRequested"))


@dataclass(slots=True)
class Dialogue:
    """A conversation in the making: hand it the messages, then take its drafts."""

    folder: str = ""
    model: str = ""
    unknown: Counter[str] = field(default_factory=Counter)
    found: list[Draft] = field(default_factory=list)
    _calls: dict[str, Draft] = field(default_factory=dict)

    def read(self, message: Record, key: str | None) -> None:
        """Take in one message: `role`, `content` (its parts), `created`, `metadata`. `key`: its id, if it has one."""
        role = string(message.get("role"))
        if role not in ("user", "assistant"):
            self.unknown[f"message {role or 'without role'}"] += 1
            return
        for place, part in enumerate(map(mapping, items(message.get("content")))):
            self._part(message, part, f"{key}:{place}" if key and place else key or "")

    def _part(self, message: Record, part: Record, key: str) -> None:
        kind = string(part.get("type"))
        if kind == "text":
            self._said(message, string(part.get("text")).strip(), key)
        elif kind in ("thinking", "reasoning"):
            text = string(part.get("thinking")) or string(part.get("text"))
            self._add(message, Role.THINKING, text.strip(), key)
        elif kind == "toolRequest":
            self._called(message, part, key)
        elif kind == "toolResponse":
            self._answered(part)
        elif kind == "image":
            self._add(message, Role.USER, "", key, attachments=[string(part.get("mimeType")) or "image"])
        elif kind in _NOTICES:
            self._add(message, Role.SYSTEM, string(part.get("msg")).strip(), key, injected=True)
        elif kind not in _SILENT:
            self.unknown[f"part {kind or 'without type'}"] += 1

    def _said(self, message: Record, text: str, key: str) -> None:
        """What only the model sees was put there by the client: a summary, or what it tells of the machine."""
        if mapping(message.get("metadata")).get("userVisible") is False:
            self._add(message, Role.SYSTEM, text, key, injected=True)
        else:
            self._add(message, Role.USER if message.get("role") == "user" else Role.ASSISTANT, text, key)

    def _called(self, message: Record, part: Record, key: str) -> None:
        call, call_id = mapping(part.get("toolCall")), string(part.get("id")) or key
        given, at = mapping(call.get("value")) or call, drafts.moment(message.get("created"))
        name = string(given.get("name")) or "tool"
        draft = drafts.tool_draft(call_id, name, given.get("arguments", {}), at, folder=self.folder)
        self._calls[call_id] = draft
        self._with_model(draft)
        if call.get("status") == "error":
            drafts.answer(draft, string(call.get("error")), drafts.FAILED)

    def _answered(self, part: Record) -> None:
        result, key = mapping(part.get("toolResult")), string(part.get("id"))
        if key not in self._calls:
            return
        value = result.get("value")
        failed = result.get("status") == "error" or mapping(value).get("isError") is True
        content = mapping(value).get("content") if isinstance(value, dict) and "content" in value else value
        text = string(result.get("error")) or drafts.readable(content)
        drafts.answer(self._calls[key], text, drafts.FAILED if failed else drafts.COMPLETED)

    def _add(self, message: Record, role: Role, text: str, key: str, **more: Any) -> None:
        if text or "attachments" in more:
            parts, at = [text] if text else [], drafts.moment(message.get("created"))
            draft = Draft(role, parts, at, {**({"native_id": key} if key else {}), **more})
            if role in (Role.ASSISTANT, Role.THINKING):
                self._with_model(draft)
            else:
                self.found.append(draft)

    def _with_model(self, draft: Draft) -> None:
        if self.model:
            draft.more["model"] = self.model
        self.found.append(draft)
