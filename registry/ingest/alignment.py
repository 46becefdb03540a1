"""What laying two conversations beside each other stands on: messages as it looks at them, chains of matches. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from registry.domain import Role

Positions = list[int | None]
"""For each message sent: the position of the stored message it repeats, or None for a new one."""


class Utterance(NamedTuple):
    """A message as recognition looks at it: `digest` of role and words, its client's id, `instant` (ms) if known."""

    role: str
    digest: bytes
    native_id: str | None = None
    instant: int | None = None
    is_long: bool = False
    """So many words that the same ones are hardly chance."""

    @property
    def opens_turn(self) -> bool:
        """A turn is a user's message and what follows until the next one."""
        return self.role == Role.USER


class Chain(NamedTuple):
    """Matches in order: the last one takes `sent` for `stored`, `before` holds the others."""

    score: float
    stored: int
    sent: int
    before: Chain | None
    is_whole: bool = False
    """The first message sent was matched with the first one stored."""

    def pairs(self) -> list[tuple[int, int]]:
        """All matches as (stored, sent), in order."""
        found = []
        link: Chain | None = self
        while link:
            found.append((link.stored, link.sent))
            link = link.before
        return found[::-1]


class BestChains:
    """The best chain that ends before any stored position: a Fenwick tree of maxima. Of equal ones the first stays."""

    def __init__(self, size: int, rank: Callable[[Chain], Any]) -> None:
        self._size = size
        self._rank = rank
        self._tree: dict[int, Chain] = {}

    def add(self, chain: Chain) -> None:
        """Take in a chain."""
        node = chain.stored + 1
        while node <= self._size:
            self._tree[node] = self._better(self._tree.get(node), chain)
            node += node & -node

    def before(self, place: int) -> Chain | None:
        """The best one that ends before this position."""
        best: Chain | None = None
        node = place
        while node > 0:
            if node in self._tree:
                best = self._better(best, self._tree[node])
            node -= node & -node
        return best

    def _better(self, held: Chain | None, other: Chain) -> Chain:
        return other if held is None or self._rank(other) > self._rank(held) else held
