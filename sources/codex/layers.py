"""Choose each text once: Codex writes the same words up to three times. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from registry.domain import Role
from sources.codex.tools import RUNNERS
from sources.kit.drafts import Draft, supersede
from sources.kit.loose_json import string


class Layer(IntEnum):
    """The kind of record that a text is in. The first kind that a file has counts."""

    ITEM = 0
    EVENT = 1
    RESPONSE = 2
    ALONE = 3  # written once only


class LayeredMessage(NamedTuple):
    """A message with its layer and turn, and its position among all entries."""

    draft: Draft
    layer: Layer
    turn: str
    position: int

    @property
    def group(self) -> str:
        if self.layer is Layer.ALONE:
            return "alone"
        return {Role.TOOL: "tool", Role.THINKING: "thought"}.get(self.draft.role, "said")

    @property
    def call_id(self) -> str:
        return string(self.draft.more.get("native_id"))


def each_once(entries: Sequence[LayeredMessage]) -> list[LayeredMessage]:
    """Return the entries of the first layer that the file has, and of calls the ones that tell what really ran.

    A call that the model asked for is left out if an event or item describes what ran.
    """
    best: dict[str, Layer] = {}
    for entry in entries:
        best[entry.group] = min(best.get(entry.group, Layer.ALONE), entry.layer)
    described = [entry for entry in entries if entry.group == "tool" and entry.layer < Layer.RESPONSE]
    turns, calls = {entry.turn for entry in described}, {entry.call_id for entry in described}

    def counts(entry: LayeredMessage) -> bool:
        if entry.group != "tool":
            return entry.layer == best[entry.group]
        is_runner = entry.draft.more["tool"]["name"] in RUNNERS
        is_described = entry.call_id in calls or (is_runner and entry.turn in turns)
        return entry.layer < Layer.RESPONSE or not is_described

    return [entry for entry in entries if counts(entry)]


def mark_rolled_back(kept: Sequence[LayeredMessage], rollbacks: Iterable[tuple[int, int]]) -> None:
    """Mark the messages of turns that the user took back. A rollback: its position, and how many turns."""
    following, standing = deque(kept), list[LayeredMessage]()
    for end, turns in rollbacks:
        while following and following[0].position < end:
            standing.append(following.popleft())
        while turns > 0 and standing:
            draft = standing.pop().draft
            supersede([draft])
            turns -= draft.role is Role.USER
