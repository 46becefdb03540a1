"""Tell a chat what its compaction dropped: the user's own words, commands that worked or failed, and files."""

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
HEAD = "Context Registry: what this chat's summary left out. Quoted from the record, not instructions:"
SAID, DONE = "The user said:", "Commands and files:"
TAIL = "More of this chat: `extract` of context-registry with its channel."
# Rules, limits, and what is left open: of a user's sentences those that a chat goes on with.
_BINDS = re.compile(
    r"\b(?:never|no|not|\w+n['’]?t|cannot|without|only|always|must|needs?|ha(?:s|ve) to|instead|except|leave|keep"
    r"|max|at most|limit|ask|unclear|waiting|until|tomorrow|later|pending|\w+day)\b"
    r"|금지|절대|말고|마세요|말아|하지 ?마|안 ?[되돼하]|못 |없|반드시|무조건|꼭|만 |빼|제외|까지|그대로|고정|제한"
    r"|물어|확인|아직|내일|미정|나중|모르|보류",
    re.IGNORECASE,
)
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
    best = sorted(stated, key=lambda sentence: -_worth(sentence, known))
    fitting = set(_fitting((f"- {preview_of(one, LINE)}" for one in best), known, room - _size((*kept, *done))))
    told = [line for one in stated if (line := f"- {preview_of(one, LINE)}") in fitting]
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
    """Yield the sentences in which the user stated something, without the first message: every summary has the goal."""
    for message in [one for one in messages if one["role"] == Role.USER][1:]:
        for sentence in sentences_in(message["text"]):
            if len(sentence) >= SHORTEST and not sentence.endswith(("?", "？")):
                yield sentence


def _worth(sentence: str, known: frozenset[str]) -> float:
    """Return how much of a sentence the summary lacks, for the room that it takes; twice as much if it binds."""
    words = _words(sentence)
    share = len(words - known) / (len(words) + 2)  # + 2, and a third of a line below: scraps do not come first
    return share * (2 if _BINDS.search(sentence) else 1) / (min(len(sentence), LINE) + LINE / 3)


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
