"""Rate how likely a commit was made in a conversation, by comparing it with the messages. Pure."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from orchestrator.answer.conversation_state import touched_files
from orchestrator.outside.git_history import Commit, significant_lines
from registry.domain import is_within
from registry.project import Project

BEFORE, AFTER = timedelta(days=14), timedelta(minutes=5)
"""Time before and after a commit in which to look for its conversation; clocks may differ."""
_WEIGHTS = {"lines": 6.0, "files": 3.0, "named": 1.0, "time": 2.0, "project": 1.5}
_HALF_LIFE_H = 12.0
_USER_LINE_WEIGHT = 0.4  # weight of a line in a user message, where it was more often pasted than written
_WRITES = re.compile(r"edit|write|patch|replace|create|insert|apply|save", re.IGNORECASE)
MIN_SCORE = 2.0  # a conversation with a lower score only took place at that time


@dataclass(slots=True)
class Evidence:
    """Evidence for a conversation, and the message with most of it."""

    lines: float = 0.0
    files: float = 0.0
    named: float = 0.0
    time: float = 0.0
    project: float = 0.0
    message_id: str = ""
    written: dict[str, float] = field(default_factory=dict)
    """The change's lines in the conversation, and the weight of each."""
    _best: float = field(default=-1.0)

    def score(self) -> float:
        """Return the weighted sum of the parts; 0 with time and project only, which are no evidence."""
        if not (self.lines or self.files or self.named):
            return 0.0
        return sum(worth * float(getattr(self, name)) for name, worth in _WEIGHTS.items())

    def confidence(self) -> str:
        """Return `high` if the lines were written there, `medium` if the file was changed there, else `low`."""
        if self.lines >= 0.5 and (self.files or self.time >= 0.25):
            return "high"
        return "medium" if (self.files and self.time >= 0.25) or self.lines >= 0.25 else "low"

    def why(self) -> list[str]:
        """Return the parts in words, the strongest first."""
        texts = {
            "lines": f"{round(100 * self.lines)} % of the lines were written there",
            "files": "its file was changed there",
            "named": "its file was mentioned there",
            "time": "shortly before the commit",
            "project": "in this project",
        }
        there = [name for name in _WEIGHTS if getattr(self, name) >= (0.25 if name == "time" else 0.01)]
        return [texts[name] for name in there if not (name == "named" and self.files)]


def evidence_of(change: Commit, messages: Sequence[Mapping[str, Any]], top: str, project: str | None) -> Evidence:
    """Return the evidence of one conversation for a change; `weigh_lines` compares the lines of all.

    Each message has `role`, `text`, `time`, and perhaps `tool`.
    """
    found = Evidence(project=_is_same_project(top, project))
    nearest: float | None = None
    for message in messages:
        here = change.lines & significant_lines(line for text in _texts(message) for line in text.splitlines())
        each = _USER_LINE_WEIGHT if message["role"] == "user" else 1.0
        is_taken = any(_is_same_file(file, name) for file in touched_files(message) for name in change.files)
        is_changed = is_taken and _is_write(message)
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


def weigh_lines(change: Commit, found: Iterable[Evidence]) -> None:
    """Set each conversation's share of a change's lines; a line in several conversations counts less."""
    found = list(found)
    holders = Counter(line for one in found for line in one.written)
    rarity = {line: 1 / max(holders[line], 1) for line in change.lines}
    for one in found:
        weight = sum(worth * rarity[line] for line, worth in one.written.items())
        one.lines = weight / sum(rarity.values()) if rarity else 0.0


def _is_write(message: Mapping[str, Any]) -> bool:
    tool = message["tool"]
    written = (text for text in _strings(tool.get("params")) if "\n" in text)
    return bool(_WRITES.search(str(tool.get("name")))) or any(written)


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message's text, or a tool's input but not its output, which was not written there."""
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
    """Compare a tool's path, absolute or relative, with a file relative to the repository."""
    path = path.replace("\\", "/")
    return path == name or path.endswith("/" + name) or (name.endswith("/" + path) and "/" in path)


def _is_same_project(top: str, project: str | None) -> float:
    if not project:
        return 0.0
    if is_within(project, top) or is_within(top, project):
        return 1.0
    return 0.5 if Project.from_path(project).name == Project.from_path(top).name else 0.0
