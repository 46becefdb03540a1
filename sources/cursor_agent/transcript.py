"""The transcripts that Cursor keeps beside its stores, without results and times (formats/cursor-agent.md, 4). Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from registry.domain import Role
from sources.base import Skipped
from sources.cursor_agent.prompts import folder_of, pieces_of, told_at
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, mapping, string
from sources.kit.loose_json import objects

_REDACTED = re.compile(r"\s*\[REDACTED\]\s*\Z|\A\s*\[REDACTED\]\s*")


@dataclass(slots=True)
class Transcript:
    """One conversation in the making: hand it the records in order, then ask for its drafts.

    Messages are named by their place in the file: it only grows.
    """

    drafts: list[Draft] = field(default_factory=list)
    folder: str = ""
    """The workspace, where the client names it."""
    unknown: Counter[str] = field(default_factory=Counter)
    _line: int = 0
    _begun: int = 0

    def read(self, record: Record) -> None:
        """Take in one record; what is not understood is counted in `unknown`."""
        self._line, self._begun = self._line + 1, len(self.drafts)
        kind, role = string(record.get("type")), string(record.get("role"))
        if kind in ("turn_ended", "error"):
            self._ended(record)
        elif role == "user":
            for text in drafts.texts_in(_content(record)):
                self._asked(text)
        elif role == "assistant":
            self._answered(_content(record))
        else:
            self.unknown[f"record {kind or role or 'without type'}"] += 1

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    def _asked(self, text: str) -> None:
        for role, piece in pieces_of(text):
            draft = self._put(role, piece)
            if role is Role.SYSTEM:
                self.folder = self.folder or folder_of(piece)
                draft.more["injected"] = True
            else:
                draft.at = told_at(text)

    def _answered(self, content: object) -> None:
        for text in [content] if isinstance(content, str) else ():
            self._said(Role.ASSISTANT, text)
        for block in objects(content):
            kind = string(block.get("type"))
            if kind == "text":
                self._said(Role.ASSISTANT, string(block.get("text")))
            elif kind == "thinking":
                self._said(Role.THINKING, string(block.get("thinking")) or string(block.get("text")))
            elif kind == "tool_use":
                self._called(string(block.get("name")), block.get("input"), block.get("result"))
            else:
                self.unknown[f"block {kind or 'without type'}"] += 1

    def _said(self, role: Role, text: str) -> None:
        if spoken := _REDACTED.sub("", text).strip():
            self._put(role, spoken)

    def _called(self, name: str, params: object, result: object) -> None:
        draft = drafts.tool_draft(self._native_id(), name or "tool", params, None, folder=self.folder)
        if isinstance(result, str):
            drafts.answer(draft, result, drafts.COMPLETED)
        self.drafts.append(draft)

    def _ended(self, record: Record) -> None:
        error = record.get("error")
        if text := string(error) or string(mapping(error).get("message")):
            self._put(Role.ERROR, text)
        elif record.get("status") in ("error", "aborted"):
            self._put(Role.SYSTEM, f"[Turn ended: {record['status']}]").more["injected"] = True

    def _put(self, role: Role, text: str) -> Draft:
        draft = Draft(role, [text], None, {"native_id": self._native_id()})
        self.drafts.append(draft)
        return draft

    def _native_id(self) -> str:
        return f"transcript:{self._line}:{len(self.drafts) - self._begun}"


def _content(record: Record) -> object:
    return mapping(record.get("message")).get("content", record.get("content"))
