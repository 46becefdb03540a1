"""A conversation of Cline's (or Roo Code's) as its model was sent it: messages in Anthropic's form. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string

_USAGE = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_input_tokens",
    "cacheWriteTokens": "cache_creation_input_tokens",
}
_TYPED = re.compile(r"^<(user_input|user_message|task|feedback)\b[^>]*>\s*(.*?)\s*</\1>", re.DOTALL)
_TOLD = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_RESULT = re.compile(r"^\[[\w ]+(?: for .*?)?\] Result:", re.DOTALL)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\)")
_SILENT = frozenset(("redacted_thinking",))


@dataclass(slots=True)
class Dialogue:
    """A conversation in the making: hand it the messages, then take its drafts."""

    folder: str = ""
    unknown: Counter[str] = field(default_factory=Counter)
    found: list[Draft] = field(default_factory=list)
    _calls: dict[str, Draft] = field(default_factory=dict)

    def read(self, message: Record) -> None:
        """Take in one message; what is not understood is counted in `unknown`."""
        role, content = string(message.get("role")), message.get("content")
        if role not in ("user", "assistant"):
            self.unknown[f"message {role or 'without role'}"] += 1
            return
        before = len(self.found)
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else map(mapping, items(content))
        for place, block in enumerate(blocks):
            self._block(message, block, place)
        if role == "assistant":
            _measure(self.found[before:], message)

    def _block(self, message: Record, block: Record, place: int) -> None:
        kind, is_user = string(block.get("type")), message.get("role") == "user"
        if kind == "text" and is_user:
            self._asked(message, string(block.get("text")).strip(), place)
        elif kind == "text":
            self._add(message, Role.ASSISTANT, string(block.get("text")).strip(), place)
        elif kind in ("thinking", "reasoning"):
            words = string(block.get("thinking")) or string(block.get("text"))
            self._add(message, Role.THINKING, words.strip(), place)
        elif kind == "tool_use":
            self._called(message, block, place)
        elif kind == "tool_result":
            self._answered(block)
        elif name := drafts.attachment_name(block):
            self._attached(message, name, place)
        elif kind not in _SILENT:
            self.unknown[f"block {kind or 'without type'}"] += 1

    def _asked(self, message: Record, text: str, place: int) -> None:
        """What was typed stands in a tag; around it, and in messages of their own, the client tells of itself."""
        if not self.folder and (told := _FOLDER.search(text)):
            self.folder = told[1].strip()
        typed = _TYPED.match(text)
        rest = (text[typed.end() :] if typed else text).strip()
        if typed:
            self._add(message, Role.USER, typed[2], place)
        if typed or _TOLD.match(rest) or _RESULT.match(rest):
            self._add(message, Role.SYSTEM, rest, f"{place}:context" if typed else place, injected=True)
        else:
            self._add(message, Role.USER, _TOLD.sub("", rest).strip(), place)

    def _called(self, message: Record, block: Record, place: int) -> None:
        key = string(block.get("id")) or f"{_key(message)}:tool:{place}"
        name, at = string(block.get("name")) or "tool", drafts.moment(message.get("ts"))
        self._calls[key] = drafts.tool_draft(key, name, block.get("input", {}), at, folder=self.folder)
        self.found.append(self._calls[key])

    def _answered(self, block: Record) -> None:
        key = string(block.get("tool_use_id"))
        if key in self._calls:
            outcome = drafts.FAILED if block.get("is_error") is True else drafts.COMPLETED
            drafts.answer(self._calls[key], drafts.readable(block.get("content")), outcome)

    def _attached(self, message: Record, name: str, place: int) -> None:
        last = self.found[-1] if self.found else None
        if last is None or last.role is not Role.USER:
            last = Draft(Role.USER, [], drafts.moment(message.get("ts")), _named(message, place))
            self.found.append(last)
        last.attach(name)

    def _add(self, message: Record, role: Role, text: str, place: int | str, **more: Any) -> None:
        if text:
            at = drafts.moment(message.get("ts"))
            self.found.append(Draft(role, [text], at, {**_named(message, place), **more}))


def _key(message: Record) -> str:
    return string(message.get("id"))


def _named(message: Record, place: int | str) -> dict[str, Any]:
    key = _key(message)
    return {"native_id": key if place == 0 else f"{key}:{place}"} if key else {}


def _measure(own: list[Draft], message: Record) -> None:
    model, metrics = string(mapping(message.get("modelInfo")).get("id")), mapping(message.get("metrics"))
    usage = dict(_counted(metrics))
    for draft in own:
        draft.more |= {"model": model} if model else {}
    for draft in own[:1]:
        draft.more |= {"usage": usage} if usage else {}


def _counted(metrics: Record) -> Iterator[tuple[str, int]]:
    for theirs, ours in _USAGE.items():
        if isinstance(metrics.get(theirs), int):
            yield ours, metrics[theirs]
