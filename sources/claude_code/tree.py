"""How the records of a Claude Code transcript hang together: repeats, edited prompts, forks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sources.kit.jsonl import Record, string


@dataclass(slots=True)
class Links:
    """The tree of one file's records, by uuid. Parents are missing often, and cycles have been seen."""

    parents: dict[str, str] = field(default_factory=dict)
    _typed: dict[str, str] = field(default_factory=dict)
    _leaf: str = ""

    def add(self, record: Record) -> bool:
        """False for a record whose uuid has been seen: after a compaction some repeat, and the first one holds."""
        uuid = string(record.get("uuid"))
        if not uuid:
            return True
        if uuid in self.parents:
            return False
        self.parents[uuid] = string(record.get("parentUuid")) or string(record.get("logicalParentUuid"))
        if record.get("type") in ("user", "assistant"):
            self._leaf = uuid
        return True

    def typed(self, record: Record) -> None:
        """This record is a prompt of the user."""
        uuid = string(record.get("uuid"))
        self._typed[uuid] = self.parents.get(uuid, "")

    def superseded(self) -> set[str]:
        """The prompts that the user took back and typed anew (same parent), with all that had followed them."""
        live = self._live()
        taken_up = {parent for uuid, parent in self._typed.items() if parent and uuid in live}
        gone = {uuid for uuid, parent in self._typed.items() if parent in taken_up and uuid not in live}
        for uuid, parent in self.parents.items():
            if parent in gone and uuid not in live:
                gone.add(uuid)
        return gone

    def _live(self) -> set[str]:
        live: set[str] = set()
        uuid = self._leaf
        while uuid and uuid not in live:
            live.add(uuid)
            uuid = self.parents.get(uuid, "")
        return live


Stamps = Mapping[str, str]
"""The uuids of a transcript's records in order, each with its time as written."""


def fork_origin(name: str, twins: Mapping[str, Stamps]) -> str | None:
    """Which of its twins a transcript is a copy and continuation of; old clients wrote no pointer.

    All start with the same uuids. The origin is one that went its own way first; of several, the nearest.
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
    """When, and with which record, a transcript left the common road."""
    return next(((time, uuid) for uuid, time in stamps.items() if uuid not in other), None)


def stamps_of(records: Iterable[Record], known: dict[str, str] | None = None) -> dict[str, str]:
    """The uuids of the messages among the records, with their times; strings that are in `known` are shared."""
    shared = {} if known is None else known
    messages = (record for record in records if record.get("type") in ("user", "assistant"))
    stamps = ((string(record.get("uuid")), string(record.get("timestamp"))) for record in messages)
    return {shared.setdefault(uuid, uuid): shared.setdefault(time, time) for uuid, time in stamps if uuid}


@dataclass(slots=True)
class Sidechains:
    """Old clients wrote a sub-agent's records into the file of the session that called it."""

    _agents: dict[str, str] = field(default_factory=dict)

    def agent_of(self, record: Record) -> str:
        """The session id of the sub-agent that a side record belongs to: by its own id, else by its first record."""
        uuid = string(record.get("uuid"))
        above = self._agents.get(string(record.get("parentUuid")))
        agent = string(record.get("agentId")) or above or uuid or "unknown"
        self._agents[uuid] = agent
        return agent
