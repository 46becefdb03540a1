"""Tokens that the clients say their models took, by day, client, project and model. Deleted messages do not count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BigInteger, ColumnElement, cast, func, select

from registry.monitor.activity import day_of_message, said_within
from registry.storage.database import ReadTransaction, in_parts
from registry.storage.tables import channel, conversation

KINDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class Usage(NamedTuple):
    """Tokens of some answers: read, written, read from a cache and put into one."""

    answers: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    into_cache: int = 0

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(*map(sum, zip(self, other, strict=True)))


class UsageRow(NamedTuple):
    """The tokens of a day, client, project (its path) and model; None: not known."""

    day: str
    source: str
    project: str | None
    model: str | None
    usage: Usage


def usage_rows(tx: ReadTransaction, start: datetime, end: datetime | None, utc_offset_minutes: int) -> list[UsageRow]:
    """What was used in a period; the days are those of a clock so far from UTC."""
    day = day_of_message(tx, utc_offset_minutes).label("day")
    model = conversation.c.payload["model"].as_string().label("model")
    sums = [func.coalesce(func.sum(cast(_noted(kind), BigInteger)), 0) for kind in KINDS]
    # By channel, not by its project's path: a number is sorted sooner, and no message is joined.
    columns = day, conversation.c.source, conversation.c.channel_number, model
    query = select(*columns, func.count(), *sums)
    query = query.where(*said_within(start, end), _noted("output_tokens").is_not(None)).group_by(*columns)
    found = tx.execute(query).all()
    paths = _project_paths(tx, list({number for _, _, number, *_ in found}))
    return [
        UsageRow(str(day), source, paths.get(number), by, Usage(*map(int, counts)))
        for day, source, number, by, *counts in found
    ]


def _project_paths(tx: ReadTransaction, numbers: Sequence[int]) -> dict[int, str | None]:
    """Of these channels, by number."""
    columns = select(channel.c.number, channel.c.project_path)
    return {
        number: path
        for some in in_parts(numbers, 10_000)
        for number, path in tx.execute(columns.where(channel.c.number.in_(some)))
    }


def _noted(kind: str) -> ColumnElement[str]:
    return conversation.c.payload["usage", kind].as_string()


def total(rows: Iterable[UsageRow]) -> Usage:
    """All of them together."""
    summed = Usage()
    for row in rows:
        summed = summed.plus(row.usage)
    return summed


def by(rows: Iterable[UsageRow], key: Callable[[UsageRow], str | None]) -> Sequence[tuple[str | None, Usage]]:
    """Summed up by something, the most output first."""
    groups: dict[str | None, Usage] = defaultdict(Usage)
    for row in rows:
        groups[key(row)] = groups[key(row)].plus(row.usage)
    return sorted(groups.items(), key=lambda one: (-one[1].output, str(one[0])))
