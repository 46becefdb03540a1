"""Which backups of a series stay: the newer the denser. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from itertools import islice

Age = Callable[[datetime], object]

KEPT: tuple[tuple[int, Age], ...] = (
    (7, lambda at: at.date()),
    (4, lambda at: tuple(at.isocalendar())[:2]),
    (12, lambda at: (at.year, at.month)),
)
"""The last of each of so many days, weeks and months in which there is one."""


def kept(made: Collection[datetime]) -> set[datetime]:
    """The moments whose backups stay; the newest one always does."""
    newest_first = sorted(made, reverse=True)
    stay: set[datetime] = set()
    for count, age in KEPT:
        last_of = {age(at): at for at in reversed(newest_first)}
        stay.update(islice(sorted(last_of.values(), reverse=True), count))
    return stay
