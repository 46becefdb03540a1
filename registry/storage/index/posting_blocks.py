"""The numbers that hold a word, packed in blocks, and what is asked of them as whole numbers of a million bits. Pure.

Python compares such bits, and picks from them, many at a time: that is a tenth of what sets of numbers take.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import chain, compress
from operator import and_, itemgetter
from struct import Struct, pack, unpack

SPAN = 16_384
"""Numbers of a block: as bits they are a fourth of a page."""
WIDTH = SPAN // 8
DENSE = WIDTH // 2
"""From so many numbers on they are written as bits, which are fewer bytes then."""
DENSE_LIST = 64
"""A list that holds one of so many numbers, or more, is kept as bits: they are no more bytes, and soon compared."""

_HEAD = Struct(">ii")


def written(places: Sequence[int]) -> bytes:
    """Places in a block, in order: two bytes for each, or a bit for each that could be there."""
    if len(places) < DENSE:
        return pack(f">{len(places)}H", *places)
    return bits_of(places).to_bytes(WIDTH, "little")


class PackedList:
    """The numbers that hold a word, in no order, or as the bits of one whole number."""

    def __init__(self, numbers: Sequence[int] | None = None, bits: int = 0) -> None:
        self._numbers, self._bits = numbers, bits

    @property
    def is_dense(self) -> bool:
        """Return whether it is kept as bits."""
        return self._numbers is None

    @property
    def size(self) -> int:
        """In memory, in bytes, until more is asked of it."""
        return self._bits.bit_length() // 8 if self._numbers is None else 8 * len(self._numbers)

    @cached_property
    def numbers(self) -> Sequence[int]:
        """As a list."""
        return newest_of(self._bits) if self._numbers is None else self._numbers

    @cached_property
    def members(self) -> frozenset[int]:
        """As a set."""
        return frozenset(self.numbers)

    @cached_property
    def bits(self) -> int:
        """Bit n is set where it holds n."""
        return self._bits if self._numbers is None else bits_of(self._numbers)

    def changed(self, noted: Noted, current: Collection[int]) -> PackedList:
        """A list of its own, of those that are not noted, and these that are."""
        if self._numbers is None:
            bits = self._bits
            return PackedList(bits=bits ^ bits & noted.bits | bits_of(current) if noted.numbers else bits)
        members = noted.numbers
        kept = [one for one in self._numbers if one not in members] if members else self._numbers
        return PackedList([*kept, *current] if current else kept)

    def __len__(self) -> int:
        return self._bits.bit_count() if self._numbers is None else len(self._numbers)


class Noted:
    """The numbers that are not read from lists."""

    def __init__(self, packed: bytes) -> None:
        self.numbers = frozenset(unpack(f">{len(packed) // 8}q", packed))  # of eight bytes each

    @cached_property
    def bits(self) -> int:
        """As the bits of one number."""
        return bits_of(self.numbers)


def read_list(packed: bytes) -> PackedList:
    """The rows of a list, one after the other."""
    rows = list(_rows(packed))
    count = sum(WIDTH * 4 if len(held) == WIDTH else len(held) // 2 for _, held in rows)
    if count * DENSE_LIST <= SPAN * len(rows):
        return PackedList(array("q", chain.from_iterable(_numbers(*row) for row in rows)))
    room = bytearray(WIDTH * (1 + max(block for block, _ in rows)))
    for block, held in rows:
        room[block * WIDTH : (block + 1) * WIDTH] = held if len(held) == WIDTH else _as_bits(held)
    return PackedList(bits=int.from_bytes(room, "little"))


def _rows(packed: bytes) -> Iterable[tuple[int, bytes]]:
    at = 0
    while at < len(packed):
        block, length = _HEAD.unpack_from(packed, at)
        at += _HEAD.size + length
        yield block, packed[at - length : at]


def _numbers(block: int, held: bytes) -> list[int]:
    first = block * SPAN
    if len(held) == WIDTH:
        return [first + place for place in newest_of(int.from_bytes(held, "little"))]
    return [first + place for place in _places(held)]


def _places(held: bytes) -> tuple[int, ...]:
    return unpack(f">{len(held) // 2}H", held)


def _as_bits(held: bytes) -> bytes:
    return bits_of(_places(held)).to_bytes(WIDTH, "little")


def bits_of(numbers: Collection[int]) -> int:
    """Numbers as the bits of one."""
    room = bytearray(1 + max(numbers, default=0) // 8)
    for number in numbers:
        room[number >> 3] |= _MASKS[number & 7]
    return int.from_bytes(room, "little")


_MASKS = [1 << place for place in range(8)]


def newest_of(bits: int, limit: int | None = None, without: Sequence[frozenset[int]] = ()) -> list[int]:
    """Which bits are set, the highest first: all but those in some sets, of many only so many."""
    size = -(-bits.bit_length() // 64)
    words = unpack(f">{size}Q", bits.to_bytes(size * 8, "big"))
    found: list[int] = []
    for at in range(0, size, WORDS):
        some = _bits_set(words[at : at + WORDS], 64 * (size - at))
        found += sorted(set(some).difference(*without), reverse=True) if without else some
        if limit is not None and len(found) >= limit:
            return found[:limit]
    return found


WORDS = WIDTH // 8
"""So many at a time: those behind may not be needed."""


def _bits_set(words: Sequence[int], end: int) -> list[int]:
    """Which bits are set in words of 64, the highest word first, which ends before this bit. Most words are empty."""
    found: list[int] = []
    for first, word in compress(zip(range(end - 64, -1, -64), words, strict=False), words):
        rest = word
        while rest:
            place = rest.bit_length() - 1
            found.append(first + place)
            rest ^= 1 << place
    return found


class Probe:
    """Numbers that are looked for in the bits of other lists."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers

    @cached_property
    def _bytes(self) -> list[int]:
        return [number >> 3 for number in self.numbers]

    @cached_property
    def _masks(self) -> list[int]:
        return [_MASKS[number & 7] for number in self.numbers]

    def within(self, bits: int) -> list[int]:
        """Return the numbers whose bit is set."""
        if len(self.numbers) < 2:  # of one alone `itemgetter` makes no sequence
            return [number for number in self.numbers if bits >> number & 1]
        width = max(max(self._bytes) + 1, (bits.bit_length() + 7) // 8)
        found = itemgetter(*self._bytes)(bits.to_bytes(width, "little"))
        return list(compress(self.numbers, map(and_, found, self._masks)))
