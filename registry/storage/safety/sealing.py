"""Running numbers as callers see them: mixed with the registry's key, so that none tells how much others have stored.

What a cursor, an event's id and the place of a feed hold is a row's running number, and only this registry reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

from registry.storage.database import ReadTransaction
from registry.storage.safety.masking import find_key

_HALF = 26
"""Bits. Programs that know only floating point numbers can count to twice as many; no table has that many rows."""
_LOW = (1 << _HALF) - 1
_ROUNDS = range(6)


@dataclass(frozen=True, slots=True)
class Seal:
    """Makes one number of another, and that one of the first again (a Feistel network). 0 stays 0: the beginning."""

    key: bytes

    def close(self, number: int) -> int:
        """The number as callers see it."""
        high, low = number >> _HALF, number & _LOW
        for turn in _ROUNDS:
            high, low = low, high ^ self._mixed(turn, low)
        return number and high << _HALF | low

    def open(self, shown: int) -> int:
        """The number that is shown so."""
        high, low = shown >> _HALF & _LOW, shown & _LOW
        for turn in reversed(_ROUNDS):
            high, low = low ^ self._mixed(turn, high), high
        return shown and high << _HALF | low

    def _mixed(self, turn: int, half: int) -> int:
        digest = blake2b(bytes([turn]) + half.to_bytes(4, "big"), key=self.key, digest_size=4).digest()
        return int.from_bytes(digest, "big") & _LOW


def seal_of(tx: ReadTransaction) -> Seal:
    """The registry's own; one that was never written to has nothing to hide."""
    return Seal(find_key(tx) or b"")
