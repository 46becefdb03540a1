"""Adding up what every message gains from the terms it holds, without walking lists that cannot matter. Pure.

A sum carries two things in one number, so that a posting costs one addition: the weights in its upper part, and
in its lower `len(terms)` bits which of the terms they come from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest

LookUp = Callable[[str, Sequence[str]], Collection[int]]
"""The messages that hold a token; where others are given too, only those that hold one of these as well."""


def sum_masses(terms: Sequence[tuple[str, int]], look_up: LookUp, most: int | None) -> dict[int, int]:
    """By number of message, its sum over the terms (token, weight) it holds; rarest terms first.

    The `most` heaviest are complete and exact, None means all. As soon as a message that holds only terms to
    come cannot be among them, those terms are looked up only where another one was found (MaxScore).
    """
    bits = len(terms)
    sums: dict[int, int] = {}
    seen: list[str] = []
    to_come = sum(weight for _, weight in terms)
    is_closed = False
    for place, (token, weight) in enumerate(terms):
        gain = weight << bits | 1 << place
        holders = look_up(token, seen if is_closed else ())
        if not sums:
            sums = dict.fromkeys(holders, gain)
        else:
            for number in holders:
                sums[number] = sums.get(number, 0) + gain
        to_come -= weight
        if not is_closed:
            seen.append(token)
            is_closed = most is not None and len(sums) >= most and _lightest(sums, most, bits) > to_come
    return sums


def heaviest(sums: Mapping[int, int], most: int | None, bits: int) -> list[int]:
    """The numbers of the heaviest messages, at most `most`, heaviest and newest first."""
    if most is None:
        return [-number for _, number in sorted((-(total >> bits), -number) for number, total in sums.items())]
    least = _lightest(sums, most, bits)
    lower, upper = least << bits, (least + 1) << bits
    heavier = [(total >> bits, number) for number, total in sums.items() if total >= upper]
    as_heavy = (number for number, total in sums.items() if lower <= total < upper)
    newest = nlargest(most - len(heavier), as_heavy)
    return [number for _, number in sorted(heavier, reverse=True)] + newest


def _lightest(sums: Mapping[int, int], most: int, bits: int) -> int:
    """The mass of the last of the `most` heaviest messages; of the very last if there are fewer.

    Messages are many and their sums few, one for each set of terms.
    """
    room = most
    counted = Counter(sums.values())
    for total in sorted(counted, reverse=True):
        room -= counted[total]
        if room <= 0:
            return total >> bits
    return min(counted, default=0) >> bits
