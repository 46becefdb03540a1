"""Rate how likely a change came about in a conversation: a commit against its messages. Pure."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from orchestrator.answer.standing import touched_files
from registry.domain import is_within
from registry.project import Project

BEFORE, AFTER = timedelta(days=14), timedelta(minutes=5)
"""Time before and after a commit in which its conversation is looked for; clocks may differ by the second."""
_SHORTEST = 8
"""Characters of a line that says something: `}` and `else:` stand everywhere."""
_WORTH = {"lines": 6.0, "files": 3.0, "named": 1.0, "time": 2.0, "project": 1.5}
_HALF_LIFE_H = 12.0
_BY_USER = 0.4
"""Weight of a line that the user put in: it was more often pasted than written there."""
_WRITES = re.compile(r"edit|write|patch|replace|create|insert|apply|save", re.IGNORECASE)
LEAST = 2.0
"""A conversation with less evidence has just been going on at that time."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change: lines, in files below the repository, at a time. `files` of a whole commit weigh as much."""

    at: datetime
    lines: frozenset[str]
    files: frozenset[str]


@dataclass(slots=True)
class Evidence:
    """Evidence for a conversation, and the message that holds most of it."""

    lines: float = 0.0
    files: float = 0.0
    named: float = 0.0
    time: float = 0.0
    project: float = 0.0
    message_id: str = ""
    written: dict[str, float] = field(default_factory=dict)
    """The change's lines that stand there, and what each counts."""
    _best: float = field(default=-1.0)

    def score(self) -> float:
        """The parts by their worth; time and place alone are no evidence."""
        if not (self.lines or self.files or self.named):
            return 0.0
        return sum(worth * float(getattr(self, name)) for name, worth in _WORTH.items())

    def confidence(self) -> str:
        """`high` where its very words were written there, `medium` where its file was changed there."""
        if self.lines >= 0.5 and (self.files or self.time >= 0.25):
            return "high"
        return "medium" if (self.files and self.time >= 0.25) or self.lines >= 0.25 else "low"

    def why(self) -> list[str]:
        """The parts in words, the strongest first."""
        told = {
            "lines": f"{round(100 * self.lines)} % of the lines were written there",
            "files": "its file was changed there",
            "named": "its file was spoken of there",
            "time": "shortly before the commit",
            "project": "in this project",
        }
        there = [name for name in _WORTH if getattr(self, name) >= (0.25 if name == "time" else 0.01)]
        return [told[name] for name in there if not (name == "named" and self.files)]


def significant(lines: Iterable[str]) -> frozenset[str]:
    """Lines as they are compared: without indentation, and only those that say something."""
    found = (" ".join(line.split()) for line in lines)
    return frozenset(line for line in found if len(line) >= _SHORTEST and re.search(r"\w{3}", line))


def evidence_of(change: Change, messages: Sequence[Mapping[str, Any]], top: str, project: str | None) -> Evidence:
    """Return the evidence of one conversation for a change; `weigh_lines` compares the lines of all.

    Each message has `role`, `text`, `time`, and perhaps `tool`.
    """
    found = Evidence(project=_is_same_project(top, project))
    nearest: float | None = None
    for message in messages:
        here = change.lines & significant(line for text in _texts(message) for line in text.splitlines())
        each = _BY_USER if message["role"] == "user" else 1.0
        is_taken = any(_is_same_file(file, name) for file in touched_files(message) for name in change.files)
        is_changed = is_taken and _has_written(message)
        is_named = is_taken or any(name.rpartition("/")[2] in message["text"] for name in change.files)
        strength = 2.0 * each * len(here) + is_changed + 0.3 * is_named
        if not strength:
            continue
        found.written |= {line: max(each, found.written.get(line, 0.0)) for line in here}
        found.files, found.named = max(found.files, float(is_changed)), max(found.named, float(is_named))
        hours = abs((change.at - message["time"]).total_seconds()) / 3600
        nearest = hours if nearest is None else min(nearest, hours)
        if strength >= found._best:
            found._best, found.message_id = strength, message["id"]
    found.time = math.exp(-math.log(2) * nearest / _HALF_LIFE_H) if nearest is not None else 0.0
    return found


def weigh_lines(change: Change, found: Iterable[Evidence]) -> None:
    """Set how much of a change's lines stands in each conversation; a line that stands in many says little."""
    found = list(found)
    holders = Counter(line for one in found for line in one.written)
    rarity = {line: 1 / max(holders[line], 1) for line in change.lines}
    for one in found:
        told = sum(worth * rarity[line] for line, worth in one.written.items())
        one.lines = told / sum(rarity.values()) if rarity else 0.0


def _has_written(message: Mapping[str, Any]) -> bool:
    tool = message["tool"]
    written = (text for text in _strings(tool.get("params")) if "\n" in text)
    return bool(_WRITES.search(str(tool.get("name")))) or any(written)


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield spoken text and a tool's input; its output came about elsewhere."""
    tool = message.get("tool")
    if isinstance(tool, Mapping):
        yield from _strings(tool.get("params"))
    else:
        yield message["text"]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value[:1] in "{[":  # some clients keep a call's arguments as JSON in a text
            try:
                yield from _strings(json.loads(value))
            except (ValueError, RecursionError):
                return
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _is_same_file(path: str, name: str) -> bool:
    """A tool's path, absolute or not, and a file below the repository."""
    path = path.replace("\\", "/")
    return path == name or path.endswith("/" + name) or (name.endswith("/" + path) and "/" in path)


def _is_same_project(top: str, project: str | None) -> float:
    if not project:
        return 0.0
    if is_within(project, top) or is_within(top, project):
        return 1.0
    return 0.5 if Project.from_path(project).name == Project.from_path(top).name else 0.0
