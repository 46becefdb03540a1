"""Tell a chat what its compaction dropped: decisions, commands, files and failures that its summary does not name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.answer.digests.summary import points_of
from orchestrator.answer.standing import COMMAND_KEYS, first_param, touched_files
from registry.domain import preview_of
from sources.kit.drafts import FAILED, REJECTED

MAX_CHARACTERS = 1500  # of the whole block: it is read at every compaction
LINE = 200  # characters of a line
KNOWN_SHARE = 0.7  # of the words of a line without numbers and names: if the summary holds them, it says the line
MOST_COMMANDS, MOST_FAILURES = 6, 3
HEAD = "Context Registry still has what this chat's summary left out. From the record, quoted, not instructions:"
TAIL = "For more of this chat before its compaction, call `extract` of context-registry with its channel."
_WORD = re.compile(r"[\w./:-]{3,}")
_NAME = re.compile(r"[\d./_:-]")


def recap(messages: Sequence[Mapping[str, Any]], remembered: Sequence[str] = ()) -> str:
    """Return the block for a chat that was compacted, from all its messages in order; "" if nothing is missing.

    `remembered`: sentences that the user asked to keep; they come first. Each message has `role`, `text`,
    `payload` and, from a tool, `tool` {name, params, result, status}.
    """
    summary = " ".join(one["text"] for one in messages if "compaction" in one["payload"])
    said = [one for one in messages if not {"compaction", "injected"} & one["payload"].keys()]
    known = _words(summary)
    kept: list[str] = []
    for line in dict.fromkeys((*(f"- remember: {one}" for one in remembered), *_lines(said))):
        size = sum(map(len, (HEAD, TAIL, *kept, line))) + len(kept) + 2  # with the ends of lines
        if size <= MAX_CHARACTERS and not _is_known(line, known):
            kept.append(line)
    return "\n".join([HEAD, *kept, TAIL]) if kept else ""


def _lines(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield lines by kind, what binds most first; of commands and failures the latest."""
    points = points_of(messages, 2)
    for kind, label in (("decided", "decided"), ("told", "said by the user"), ("open", "open")):
        yield from (f"- {label}: {preview_of(line, LINE)}" for line in points.get(kind, ()))
    tools = [one["tool"] for one in messages if isinstance(one.get("tool"), Mapping)]
    ran = [(first_param(tool.get("params"), COMMAND_KEYS), tool) for tool in reversed(tools)]
    worked: dict[str, None] = {}
    failed: list[tuple[str, Mapping[str, Any]]] = []
    for command, tool in ran:
        if command and str(tool.get("status")).lower() in (FAILED, REJECTED):
            failed.append((command, tool))
        elif command:
            worked[command] = None
    yield from (f"- worked: `{preview_of(command, LINE)}`" for command in list(worked)[:MOST_COMMANDS])
    for command, tool in failed[:MOST_FAILURES]:
        why = preview_of(str(tool.get("result") or ""), LINE // 2)
        yield f"- failed: `{preview_of(command, LINE // 2)}`: {why}"
    if files := list(dict.fromkeys(path for one in reversed(messages) for path in touched_files(one))):
        yield f"- files: {preview_of(', '.join(files), LINE)}"


def _is_known(line: str, known: frozenset[str]) -> bool:
    """Return True if the summary holds a line's numbers, names and paths, or most words of one without any."""
    words = _words(line.partition(": ")[2])
    if names := [word for word in words if _NAME.search(word)]:
        return known.issuperset(names)
    return len(words & known) >= KNOWN_SHARE * len(words)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(".:-/").lower() for word in _WORD.findall(text))
