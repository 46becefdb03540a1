"""The k messages with the largest sums of term weights, without walking lists that cannot matter (MaxScore). Pure.

A sum carries two things in one number, so that a posting costs one addition: the weights in its upper part, and
in its lower `len(terms)` bits which of the terms they come from.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations

LookUp = Callable[[str, Sequence[str]], Collection[int]]
"""The messages that hold a token; where others are given too, only those that hold one of these as well."""

Newest = Callable[[Sequence[str], Sequence[str], int], Collection[int]]
"""Of the messages that hold all of the first tokens and none of the second, so many of the newest."""


def sum_weights(
    terms: Sequence[tuple[str, int]],
    look_up: LookUp,
    k: int | None,
    common: int = 0,
    newest: Newest | None = None,
) -> dict[int, int]:
    """By number of message, its sum over the terms (token, weight) it holds; rarest terms first.

    The `k` largest are complete and exact, None means all. As soon as a message that holds only terms to
    come cannot be among them, those terms are looked up only where another one was found (MaxScore). With `newest`
    the last `common` terms always are; the messages that hold nothing else are asked of it.
    """
    bits = len(terms)
    first_common = bits - common if newest and k else bits
    sums: dict[int, int] = {}
    seen: list[str] = []
    passed, to_come = 0, sum(weight for _, weight in terms)
    is_closed = False
    for place, (token, weight) in enumerate(terms):
        is_common = place >= first_common
        if not is_common or seen:
            _add(sums, look_up(token, seen if is_closed or is_common else ()), weight << bits | 1 << place)
        if not is_common and not is_closed:
            seen.append(token)
            passed, to_come = passed + weight, to_come - weight
            if k is not None and len(sums) >= k and passed > to_come:  # no sum is larger than what has passed
                is_closed = _kth_largest(sums, k, bits) > to_come
    if newest and k and not is_closed:
        _add_common(sums, terms, first_common, k, newest)
    return sums


def _add(sums: dict[int, int], holders: Collection[int], gain: int) -> None:
    if not sums:
        sums.update(dict.fromkeys(holders, gain))
        return
    for number in holders:
        sums[number] = sums.get(number, 0) + gain


def _add_common(sums: dict[int, int], terms: Sequence[tuple[str, int]], first: int, k: int, newest: Newest) -> None:
    """The messages that hold only terms from `first` on, one set of terms after the other while they can matter.

    All messages of a set weigh the same, so its newest are its best.
    """
    bits = len(terms)
    counts = Counter(total >> bits for total in sums.values())
    for gain, held in _sets(terms, first):
        if sum(count for weight, count in counts.items() if weight > gain >> bits) >= k:
            return
        numbers = newest(held, [token for token, _ in terms if token not in held], k)
        sums.update(dict.fromkeys(numbers, gain))
        counts[gain >> bits] += len(numbers)


def _sets(terms: Sequence[tuple[str, int]], first: int) -> Iterator[tuple[int, list[str]]]:
    """Every set of the terms from `first` on, with what a message gains by holding just these, largest first."""
    bits = len(terms)
    places = range(first, bits)
    chosen = [some for size in range(1, len(places) + 1) for some in combinations(places, size)]
    gains = {some: sum(terms[at][1] << bits | 1 << at for at in some) for some in chosen}
    for some in sorted(chosen, key=gains.__getitem__, reverse=True):
        yield gains[some], [terms[at][0] for at in some]


def best_first(sums: Mapping[int, int], bits: int) -> Iterator[int]:
    """The numbers of the messages, those with the largest sums first, of equal ones the newest.

    Messages are many and their weights few: only those that are asked for are put in order.
    """
    alike: dict[int, list[int]] = defaultdict(list)
    for number, total in sums.items():
        alike[total >> bits].append(number)
    for weight in sorted(alike, reverse=True):
        yield from sorted(alike[weight], reverse=True)


def _kth_largest(sums: Mapping[int, int], k: int, bits: int) -> int:
    """The weight of the last of the `k` messages with the largest; of the very last if there are fewer.

    Messages are many and their sums few, one for each set of terms.
    """
    room = k
    counted = Counter(sums.values())
    for total in sorted(counted, reverse=True):
        room -= counted[total]
        if room <= 0:
            return total >> bits
    return min(counted, default=0) >> bits
