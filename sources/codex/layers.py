"""One conversation, no doubles: Codex writes the same words up to three times. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from registry.domain import Role
from sources.codex.tools import RUNNERS
from sources.kit.drafts import Draft
from sources.kit.jsonl import string


class Layer(IntEnum):
    """Where a text stands; the same one may stand in all three. The first that a file has is the one that counts."""

    ITEM = 0
    EVENT = 1
    RESPONSE = 2
    ALONE = 3


class Entry(NamedTuple):
    """A message with the layer and the turn it was found in."""

    draft: Draft
    layer: Layer
    turn: str


class Kept(NamedTuple):
    """An entry that counts, and its position among all."""

    position: int
    entry: Entry


def told_once(entries: Sequence[Entry]) -> list[Kept]:
    """The entries that count: of what is said and of what is thought the first layer that the file has, and for a
    call the one that tells what really ran."""
    grouped = [(_group(entry), entry) for entry in entries]
    best: dict[str, Layer] = {}
    for group, entry in grouped:
        best[group] = min(best.get(group, Layer.ALONE), entry.layer)
    described = [entry for group, entry in grouped if group == "tool" and entry.layer < Layer.RESPONSE]
    turns, calls = {entry.turn for entry in described}, {_call_id(entry) for entry in described}
    return [
        Kept(position, entry)
        for position, (group, entry) in enumerate(grouped)
        if (_counts(entry, turns, calls) if group == "tool" else entry.layer == best[group])
    ]


def mark_rolled_back(kept: Sequence[Kept], rollbacks: Iterable[tuple[int, int]]) -> None:
    """Marks the messages of turns that the user took back. A rollback: its position, and how many turns."""
    following, standing = deque(kept), list[Entry]()
    for end, turns in rollbacks:
        while following and following[0].position < end:
            standing.append(following.popleft().entry)
        while turns > 0 and standing:
            draft = standing.pop().draft
            draft.more["superseded"] = True
            turns -= draft.role is Role.USER


def _group(entry: Entry) -> str:
    if entry.layer is Layer.ALONE:
        return "alone"
    return _GROUPS.get(entry.draft.role, "said")


_GROUPS = {Role.TOOL: "tool", Role.THINKING: "thought"}


def _counts(entry: Entry, described_turns: Collection[str], described_calls: Collection[str]) -> bool:
    """A call that the model asked for is left out where events or items tell what ran."""
    if entry.layer < Layer.RESPONSE:
        return True
    is_runner = entry.draft.more["tool"]["name"] in RUNNERS
    return _call_id(entry) not in described_calls and not (is_runner and entry.turn in described_turns)


def _call_id(entry: Entry) -> str:
    return string(entry.draft.more.get("native_id"))
