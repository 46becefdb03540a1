"""Parse a conversation of Cline's (or Roo Code's) as the model was sent it: messages in Anthropic's form. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from registry.domain import Role
from sources.kit import drafts
from sources.kit.drafts import Conversation
from sources.kit.loose_json import Record, string, text_at

_TYPED = re.compile(r"^<(user_input|user_message|task|feedback)\b[^>]*>\s*(.*?)\s*</\1>", re.DOTALL)
_DETAILS = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_RESULT = re.compile(r"^\[[\w ]+(?: for .*?)?\] Result:", re.DOTALL)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\)")


@dataclass(slots=True)
class ClineDialogue(Conversation):
    """Builds a conversation from its messages."""

    def read(self, message: Record) -> None:
        role = string(message.get("role"))
        if role not in ("user", "assistant"):
            self.pass_over("message", role)
            return
        self.begin(message.get("id"), message.get("ts"))
        self.model, before = text_at(message, "modelInfo", "id"), len(self.drafts)
        for place, block in enumerate(drafts.blocks_of(message.get("content"))):
            self._block(Role(role), block, f":{place}" if place else "")
        self.count_tokens(before, message.get("metrics"))

    def _block(self, role: Role, block: Record, part: str) -> None:
        kind, text = string(block.get("type")), string(block.get("text")).strip()
        if kind == "text" and role is Role.USER:
            self._add_question(text, part)
        elif kind == "text":
            self.say(role, text, part)
        elif kind in ("thinking", "reasoning"):
            self.say(Role.THINKING, string(block.get("thinking")) or text, part)
        elif kind == "tool_use":
            key = string(block.get("id")) or f"{self.record_id}:tool{part or ':0'}"
            self.call(key, block.get("name"), block.get("input", {}))
        elif kind == "tool_result":
            outcome = drafts.outcome(block.get("is_error") is True)
            self.answer(block.get("tool_use_id"), drafts.content_text(block.get("content")), outcome)
        elif name := drafts.attachment_name(block):
            if self.drafts and self.drafts[-1].role is Role.USER:
                self.drafts[-1].attach(name)
            else:
                self.say(Role.USER, "", part, attachments=[name])
        elif kind != "redacted_thinking":
            self.pass_over("block", kind)

    def _add_question(self, text: str, part: str) -> None:
        """Add the text in the user's tag as typed; around it, and in messages of their own, are the client's notes."""
        if not self.folder and (folder := _FOLDER.search(text)):
            self.folder = folder[1].strip()
        if typed := _TYPED.match(text):
            self.say(Role.USER, typed[2], part)
            self.inject(text[typed.end() :], f"{part or ':0'}:context")
        elif _DETAILS.match(text) or _RESULT.match(text):
            self.inject(text, part)
        else:
            self.say(Role.USER, _DETAILS.sub("", text), part)
