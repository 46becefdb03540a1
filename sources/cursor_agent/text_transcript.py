"""Read the oldest transcripts of Cursor's agent, which are plain text. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from sources.kit.loose_json import Record

_SPEAKERS = {"user": "user", "A": "assistant", "assistant": "assistant"}
_SPEAKER = re.compile(r"(user|A|assistant):\s*")
_MARKER = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*")
_PARAMETER = re.compile(r"\s+([A-Za-z_]\w*):[ \t]?(.*)", re.DOTALL)

_Block = tuple[str, str, list[str]]  # the kind of a marked part, the rest of the marker's line, the lines below


def records_of_text(lines: Iterable[str]) -> Iterator[Record]:
    """Convert a text transcript to the records of today's transcripts, one for each change of speaker.

    A message may contain text that looks like a marker; nothing tells them apart.
    """
    speaker, blocks = "", list[_Block]([("", "", [])])
    for line in lines:
        spoken = _SPEAKER.fullmatch(line)
        marker = _MARKER.match(line) if speaker == "assistant" else None
        if spoken:
            yield from _record(speaker, blocks)
            speaker, blocks = _SPEAKERS[spoken[1]], [("", "", [])]
        elif marker:
            blocks.append((marker[1], line[marker.end() :].strip(), []))
        else:
            blocks[-1][2].append(line)
    yield from _record(speaker, blocks)


def _record(speaker: str, blocks: list[_Block]) -> Iterator[Record]:
    content: list[Record] = []
    without_result: dict[str, list[Record]] = defaultdict(list)
    for kind, head, lines in blocks:
        body = "".join(lines).strip()
        if kind == "Tool call":
            content.append({"type": "tool_use", "name": head, "input": _parameters(lines)})
            without_result[head].append(content[-1])
        elif kind == "Tool result" and without_result[head]:
            without_result[head].pop()["result"] = body
        elif kind == "Tool result":
            content.append({"type": "tool_use", "name": head, "input": {}, "result": body})
        elif kind == "Thinking":
            content.append({"type": "thinking", "text": f"{head}\n{body}"})
        else:
            content.append({"type": "text", "text": body})
    if speaker:
        yield {"role": speaker, "message": {"content": content}}


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
