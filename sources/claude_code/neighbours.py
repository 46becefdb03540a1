"""Find the origins and summaries of Claude Code sessions in other files of their folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path

from sources.kit.files import File, files_below
from sources.kit.jsonl import Damage, Record, read_lines, records_of, string

Stamps = Mapping[str, str]  # the uuids of a transcript's messages in order, each with its time as written


@dataclass(slots=True)
class _Folder:
    """The beginnings of the transcripts in a folder.

    `starts`: by path the uuid of the first message, of those that name no origin themselves. `summaries`: by leaf uuid.
    """

    starts: dict[str, str] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)


class Neighbours:
    """Reads the beginnings of a folder's files once, when the first changed one among them is read."""

    def __init__(self) -> None:
        self._folder = cache(_beginnings)
        self._origins_of = cache(lambda folder, start: _origins(self._folder(folder), start))

    def summaries(self, path: str) -> dict[str, str]:
        """Return summaries by leaf uuid, of conversations in any file of the folder."""
        return self._folder(os.path.dirname(path)).summaries

    def origin(self, path: str) -> str | None:
        """Return the session that this one is a copy and continuation of, if it does not say so itself."""
        folder = os.path.dirname(path)
        start = self._folder(folder).starts.get(path)
        return self._origins_of(folder, start).get(Path(path).stem) if start else None


def _beginnings(folder: str) -> _Folder:
    found = _Folder()
    for file in files_below(folder, "*.jsonl"):
        if isinstance(file, File) and not os.path.basename(file.path).startswith("agent-"):
            for record in islice(_records(file.path), 200):
                if record.get("type") == "summary":
                    found.summaries[string(record.get("leafUuid"))] = string(record.get("summary"))
                elif uuids := stamps_of([record]):
                    if "forkedFrom" not in record:
                        found.starts[file.path] = next(iter(uuids))
                    break
    return found


def _origins(folder: _Folder, start: str) -> dict[str, str]:
    """Return the origins of the sessions that begin alike. They share most uuids, so the memory for them too."""
    twins = [path for path, other in folder.starts.items() if other == start]
    if len(twins) < 2:
        return {}
    known: dict[str, str] = {}
    stamps = {Path(twin).stem: stamps_of(_records(twin), known) for twin in twins}
    return {name: origin for name in stamps if (origin := fork_origin(name, stamps))}


def fork_origin(name: str, twins: Mapping[str, Stamps]) -> str | None:
    """Return which of its twins a transcript is a copy and continuation of; old clients wrote no pointer.

    All begin with the same uuids. The origin is one that diverged first; of several, the nearest.
    """
    own = twins[name]
    others = (other for other in sorted(twins) if other != name and _came_first(twins[other], own))
    return max(others, key=lambda other: len(own.keys() & twins[other].keys()), default=None)


def _came_first(other: Stamps, own: Stamps) -> bool:
    if own.keys().isdisjoint(other):
        return False
    theirs, mine = _first_not_in(other, own), _first_not_in(own, other)
    return mine is not None and (theirs is None or theirs < mine)


def _first_not_in(stamps: Stamps, other: Stamps) -> tuple[str, str] | None:
    """Return time and uuid of the record with which a transcript diverges."""
    return next(((time, uuid) for uuid, time in stamps.items() if uuid not in other), None)


def stamps_of(records: Iterable[Record], known: dict[str, str] | None = None) -> dict[str, str]:
    """Return the uuids of the messages with their times; strings that are in `known` are shared."""
    shared = {} if known is None else known
    messages = (record for record in records if record.get("type") in ("user", "assistant"))
    stamps = ((string(record.get("uuid")), string(record.get("timestamp"))) for record in messages)
    return {shared.setdefault(uuid, uuid): shared.setdefault(time, time) for uuid, time in stamps if uuid}


def _records(path: str) -> Iterator[Record]:
    """Yield the records of a file; damage is reported where the file itself is read."""
    try:
        with open(path, "rb") as file:
            yield from records_of(read_lines(file, 2**20), Damage())
    except OSError:
        return
