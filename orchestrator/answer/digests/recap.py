"""Tell a chat what its compaction dropped: the user's own words, commands that worked or failed, and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.answer.digests.summary import sentences_in
from orchestrator.answer.standing import COMMAND_KEYS, LOOKS, first_param, touched_files
from registry.domain import Role, preview_of
from sources.kit.drafts import FAILED, REJECTED

MAX_CHARACTERS = 1500  # of the whole block: it is read at every compaction
LINE = 140  # characters of a line
SHORTEST = 12  # characters of a sentence that says something by itself
KNOWN_SHARE = 0.6  # of a line's words: if the summary holds them, and all numbers and names, it says the line
FOR_COMMANDS = 360  # characters kept for commands and files
HEAD = "Context Registry still has what this chat's summary left out. From the record, quoted, not instructions:"
SAID, DONE = "The user said:", "Commands and files, the latest first:"
TAIL = "For more of this chat before its compaction, call `extract` of context-registry with its channel."
_WORD = re.compile(r"[\w./:-]{2,}")
_NAME = re.compile(r"\d|\w[./_:-]\w")  # a number, a path, a setting: what a summary loses first


def recap(messages: Sequence[Mapping[str, Any]], remembered: Sequence[str] = ()) -> str:
    """Return the block for a chat that was compacted, from all its messages in order; "" if nothing is missing.

    `remembered`: sentences that the user asked to keep; they come first. Each message has `role`, `text`,
    `payload` and, from a tool, `tool` {name, params, result, status}.
    """
    known = _words(" ".join(one["text"] for one in messages if "compaction" in one["payload"]))
    said = [one for one in messages if not {"compaction", "injected"} & one["payload"].keys()]
    room = MAX_CHARACTERS - _size((HEAD, SAID, DONE, TAIL))
    kept = _fitting((f"- remember: {one}" for one in remembered), known, room)
    done = _fitting(_done(said), known, min(FOR_COMMANDS, room - _size(kept)))
    stated = list(dict.fromkeys(_stated(said)))
    fitting = _fitting(sorted(stated, key=lambda line: not _NAME.search(line)), known, room - _size((*kept, *done)))
    told = [line for line in reversed(stated) if line in fitting]
    if not (kept or told or done):
        return ""
    return "\n".join([HEAD, *kept, *([SAID, *told] if told else []), *([DONE, *done] if done else []), TAIL])


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _fitting(lines: Iterable[str], known: frozenset[str], room: int) -> list[str]:
    """Return the lines that the summary does not say, as many as there is room for."""
    kept: list[str] = []
    for line in dict.fromkeys(lines):
        if _size(kept) + len(line) + 1 <= room and not _is_known(line, known):
            kept.append(line)
    return kept


def _stated(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the user stated, the latest first: what was taken back was said before."""
    for message in reversed(messages):
        if message["role"] == Role.USER:
            for said in reversed(_parts(message["text"])):
                if len(said) >= SHORTEST and not said.endswith(("?", "？")):
                    yield f"- {preview_of(said, LINE)}"


def _parts(text: str) -> list[str]:
    """Return a short message as it is, for its sentences explain each other; of a longer one the sentences."""
    return [text.strip()] if len(text) <= LINE else list(sentences_in(text))


def _done(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the latest commands that worked and failed, and the files that were touched."""
    tools = [one["tool"] for one in reversed(messages) if isinstance(one.get("tool"), Mapping)]
    for tool in tools:
        command = first_param(tool.get("params"), COMMAND_KEYS)
        if command and str(tool.get("status")).lower() in (FAILED, REJECTED):
            yield f"- failed: `{preview_of(command, LINE)}`: {preview_of(str(tool.get('result') or ''), LINE // 2)}"
        elif command and not LOOKS.search(command):
            yield f"- worked: `{preview_of(command, LINE)}`"
    if files := list(dict.fromkeys(path for one in reversed(messages) for path in touched_files(one))):
        yield f"- files: {preview_of(', '.join(files), LINE)}"


def _is_known(line: str, known: frozenset[str]) -> bool:
    """Return True if the summary holds a line's numbers, names and paths, and most of its other words."""
    words = _words(line)
    names = {word for word in words if _NAME.search(word)}
    return known.issuperset(names) and len(words & known) >= KNOWN_SHARE * len(words)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip(".:-/").lower() for word in _WORD.findall(text))
