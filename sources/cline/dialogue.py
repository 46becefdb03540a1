"""Parse a conversation of Cline's (or Roo Code's) as the model was sent it: messages in Anthropic's form. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from registry.domain import Role
from sources.kit import drafts
from sources.kit.drafts import Conversation, usage_of
from sources.kit.loose_json import Record, items, mapping, string

_USAGE = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_input_tokens",
    "cacheWriteTokens": "cache_creation_input_tokens",
}
_TYPED = re.compile(r"^<(user_input|user_message|task|feedback)\b[^>]*>\s*(.*?)\s*</\1>", re.DOTALL)
_DETAILS = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_RESULT = re.compile(r"^\[[\w ]+(?: for .*?)?\] Result:", re.DOTALL)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\)")


@dataclass(slots=True)
class ClineDialogue(Conversation):
    """Builds a conversation from its messages."""

    def read(self, message: Record) -> None:
        """Add one message; an unknown one is counted in `unknown`."""
        role, content = string(message.get("role")), message.get("content")
        if role not in ("user", "assistant"):
            self.unknown[f"message {role or 'without role'}"] += 1
            return
        before = len(self.drafts)
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else map(mapping, items(content))
        for place, block in enumerate(blocks):
            self._block(message, block, place)
        if role == "assistant":
            model = string(mapping(message.get("modelInfo")).get("id"))
            self.describe(before, model, usage_of(message.get("metrics"), _USAGE))

    def _block(self, message: Record, block: Record, place: int) -> None:
        kind, is_user = string(block.get("type")), message.get("role") == "user"
        if kind == "text" and is_user:
            self._add_question(message, string(block.get("text")).strip(), place)
        elif kind == "text":
            self._add(message, Role.ASSISTANT, string(block.get("text")).strip(), place)
        elif kind in ("thinking", "reasoning"):
            words = string(block.get("thinking")) or string(block.get("text"))
            self._add(message, Role.THINKING, words.strip(), place)
        elif kind == "tool_use":
            key, at = string(block.get("id")) or f"{string(message.get('id'))}:tool:{place}", message.get("ts")
            self.call(key, string(block.get("name")), block.get("input", {}), drafts.moment(at))
        elif kind == "tool_result":
            outcome = drafts.FAILED if block.get("is_error") is True else drafts.COMPLETED
            self.answer(string(block.get("tool_use_id")), drafts.content_text(block.get("content")), outcome)
        elif name := drafts.attachment_name(block):
            if self.drafts and self.drafts[-1].role is Role.USER:
                self.drafts[-1].attach(name)
            else:
                self._add(message, Role.USER, "", place, attachments=[name])
        elif kind != "redacted_thinking":
            self.unknown[f"block {kind or 'without type'}"] += 1

    def _add_question(self, message: Record, text: str, place: int) -> None:
        """Add the text in the user's tag as typed; around it, and in messages of their own, are the client's notes."""
        if not self.folder and (folder := _FOLDER.search(text)):
            self.folder = folder[1].strip()
        typed = _TYPED.match(text)
        rest = (text[typed.end() :] if typed else text).strip()
        if typed:
            self._add(message, Role.USER, typed[2], place)
        if typed or _DETAILS.match(rest) or _RESULT.match(rest):
            self._add(message, Role.SYSTEM, rest, f"{place}:context" if typed else place, injected=True)
        else:
            self._add(message, Role.USER, _DETAILS.sub("", rest).strip(), place)

    def _add(self, message: Record, role: Role, text: str, place: int | str, **more: Any) -> None:
        key = string(message.get("id"))
        native_id = f"{key}:{place}" if key and place != 0 else key
        self.say(role, text, drafts.moment(message.get("ts")), native_id, **more)
