"""Read the transcripts that Cursor writes beside its stores, without results and times. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role
from sources.cursor_agent.messages import Conversation
from sources.kit.jsonl import Record, mapping, string
from sources.kit.loose_json import objects

_REDACTED = re.compile(r"\s*\[REDACTED\]\s*\Z|\A\s*\[REDACTED\]\s*")
_SPEAKERS = {"user": "user", "A": "assistant", "assistant": "assistant"}
_SPEAKER = re.compile(r"(user|A|assistant):\s*")
_MARKER = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*")
_PARAMETER = re.compile(r"\s+([A-Za-z_]\w*):[ \t]?(.*)", re.DOTALL)


def read_line(conversation: Conversation, number: int, record: Record) -> None:
    """Add one record of a transcript to the conversation. Its line names the messages: the file only grows."""
    name = f"transcript:{number}"
    if record.get("type") in ("turn_ended", "error"):
        error = record.get("error")
        if text := string(error) or string(mapping(error).get("message")):
            conversation.add(name, Role.ERROR, text)
        elif record.get("status") in ("error", "aborted"):
            conversation.add(name, Role.SYSTEM, f"[Turn ended: {record['status']}]")
        return
    content = mapping(record.get("message")).get("content", record.get("content"))
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
    shown = [{**block, "text": _REDACTED.sub("", string(block.get("text")))} for block in blocks]
    conversation.read(name, {**record, "content": shown})


# The oldest transcripts, which are plain text


@dataclass(slots=True)
class _Block:
    """One marked part of a message; `head` is the rest of the marker's line."""

    kind: str
    head: str = ""
    lines: list[str] = field(default_factory=list)

    @property
    def body(self) -> str:
        return "".join(self.lines).strip()


def records_of_text(lines: Iterable[str]) -> Iterator[Record]:
    """Convert a text transcript to the records of today's transcripts, one for each change of speaker.

    A message may contain text that looks like a marker; nothing tells them apart.
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
    """Parse `name: value` on indented lines; any other line continues the value before it."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if parameter := _PARAMETER.fullmatch(line):
            name = parameter[1]
            found[name] = [parameter[2]]
        elif name:
            found[name].append(line)
    return {key: "".join(value).strip() for key, value in found.items()}
