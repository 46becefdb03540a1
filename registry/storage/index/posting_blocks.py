"""The numbers that hold a word, packed in blocks, and what is asked of them as whole numbers of a million bits. Pure.

Python compares such bits, and picks from them, many at a time: that is a tenth of what sets of numbers take.
"""

from __future__ import annotations

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
DENSE_LIST = 16
"""A list that holds one of so many numbers, or more, is kept as bits."""

_HEAD = Struct(">ii")


def written(places: Sequence[int]) -> bytes:
    """Places in a block, in order: two bytes for each, or a bit for each that could be there."""
    if len(places) < DENSE:
        return pack(f">{len(places)}H", *places)
    return bits_of(places).to_bytes(WIDTH, "little")


class PackedList:
    """The numbers that hold a word, in no order, or as the bits of one whole number."""

    def __init__(self, numbers: list[int] | None = None, bits: int = 0) -> None:
        self._numbers, self._bits = numbers, bits

    @property
    def is_dense(self) -> bool:
        """Whether it is kept as bits."""
        return self._numbers is None

    @cached_property
    def numbers(self) -> list[int]:
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

    def __len__(self) -> int:
        return self._bits.bit_count() if self._numbers is None else len(self._numbers)


def read_list(packed: bytes, noted: Collection[int], current: Collection[int]) -> PackedList:
    """Of the rows of a list, one after the other, those numbers that are not noted, and these that are."""
    rows = list(_rows(packed))
    count = sum(WIDTH * 4 if len(held) == WIDTH else len(held) // 2 for _, held in rows)
    if count * DENSE_LIST <= SPAN * len(rows):
        found = list(chain.from_iterable(_numbers(*row) for row in rows))
        return PackedList([*(found if not noted else [one for one in found if one not in noted]), *current])
    room = bytearray(WIDTH * (1 + max(block for block, _ in rows)))
    for block, held in rows:
        room[block * WIDTH : (block + 1) * WIDTH] = held if len(held) == WIDTH else _as_bits(held)
    bits = int.from_bytes(room, "little")
    return PackedList(bits=(bits & ~bits_of(noted) | bits_of(current)) if noted else bits)


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


def numbers_in(packed: bytes) -> tuple[int, ...]:
    """Numbers of eight bytes each, one after the other."""
    return unpack(f">{len(packed) // 8}q", packed)


def newest_of(bits: int, limit: int | None = None, without: Sequence[frozenset[int]] = ()) -> list[int]:
    """Which bits are set, the highest first: all but those in some sets, of many only so many."""
    held = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    found: list[int] = []
    for at in range((len(held) - 1) // WIDTH * WIDTH, -1, -WIDTH):
        if part := int.from_bytes(held[at : at + WIDTH], "little"):
            digits = f"{part:b}"
            highest = at * 8 + len(digits) - 1
            some = compress(range(highest, -1, -1), digits.encode().translate(_AS_BYTES))
            found += sorted(set(some).difference(*without), reverse=True) if without else some
        if limit is not None and len(found) >= limit:
            return found[:limit]
    return found


_AS_BYTES = bytes.maketrans(b"01", b"\0\1")


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
        """Those whose bit is set."""
        if len(self.numbers) < 2:  # of one alone `itemgetter` makes no sequence
            return [number for number in self.numbers if bits >> number & 1]
        width = max(max(self._bytes) + 1, (bits.bit_length() + 7) // 8)
        found = itemgetter(*self._bytes)(bits.to_bytes(width, "little"))
        return list(compress(self.numbers, map(and_, found, self._masks)))
