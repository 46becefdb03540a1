"""The transcripts that Cursor keeps beside its stores, without results and times. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role
from sources.base import Skipped
from sources.cursor_agent.prompts import folder_of, pieces_of, told_at
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, mapping, string
from sources.kit.loose_json import objects

_REDACTED = re.compile(r"\s*\[REDACTED\]\s*\Z|\A\s*\[REDACTED\]\s*")
_SPEAKERS = {"user": "user", "A": "assistant", "assistant": "assistant"}
_SPEAKER = re.compile(r"(user|A|assistant):\s*")
_MARKER = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*")
_PARAMETER = re.compile(r"\s+([A-Za-z_]\w*):[ \t]?(.*)", re.DOTALL)


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


# The oldest transcripts, which are plain text


@dataclass(slots=True)
class _Block:
    """One marked part of what somebody said; `head` stands on the line of the marker."""

    kind: str
    head: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def body(self) -> str:
        return "".join(self.lines).strip()


def records_of_text(lines: Iterable[str]) -> Iterator[Record]:
    """The records that a transcript of today would have for it: one for each time somebody speaks.

    A part ends where the next begins. What somebody said may look like a beginning; nothing tells them apart.
    """
    speaker, blocks = "", [_Block("")]
    for line in lines:
        spoken = _SPEAKER.fullmatch(line)
        marker = _MARKER.match(line) if speaker == "assistant" else None
        if spoken:
            yield from _record(speaker, blocks)
            speaker, blocks = _SPEAKERS[spoken[1]], [_Block("")]
        elif marker:
            blocks.append(_Block(marker[1], line[marker.end() :].strip()))
        else:
            blocks[-1].lines.append(line)
    yield from _record(speaker, blocks)


def _record(speaker: str, blocks: list[_Block]) -> Iterator[Record]:
    content: list[Record] = []
    waiting: dict[str, list[Record]] = {}
    for block in blocks:
        if block.kind == "Tool result":
            content += [] if waiting.get(block.head) else [_call(block.head, {})]
            call = waiting[block.head].pop() if waiting.get(block.head) else content[-1]
            call["result"] = block.body
            continue
        part = _part(block)
        content.append(part)
        if block.kind == "Tool call":
            waiting.setdefault(block.head, []).append(part)
    if speaker:
        yield {"role": speaker, "message": {"content": content}}


def _part(block: _Block) -> Record:
    if block.kind == "Tool call":
        return _call(block.head, _parameters(block.lines))
    if block.kind == "Thinking":
        return {"type": "thinking", "thinking": f"{block.head}\n{block.body}".strip()}
    return {"type": "text", "text": block.body}


def _call(name: str, params: dict[str, Any]) -> Record:
    return {"type": "tool_use", "name": name, "input": params}


def _parameters(lines: list[str]) -> dict[str, str]:
    """`name: value` on indented lines; a line that is none continues the value before it."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if parameter := _PARAMETER.fullmatch(line):
            name = parameter[1]
            found[name] = [parameter[2]]
        elif name:
            found[name].append(line)
    return {key: "".join(value).strip() for key, value in found.items()}
