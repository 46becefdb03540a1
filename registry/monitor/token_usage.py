"""Tokens that the clients say their models took, by day, client, project and model. Deleted messages do not count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, cast, func, select

from registry.monitor.activity import day_of_message, said_within
from registry.storage.database import ReadTransaction
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
    usage = conversation.c.payload["usage"]
    day = day_of_message(tx, utc_offset_minutes).label("day")
    model = conversation.c.payload["model"].as_string().label("model")
    sums = [func.coalesce(func.sum(_number(usage[kind])), 0) for kind in KINDS]
    columns = day, conversation.c.source, channel.c.project_path, model
    query = select(*columns, func.count(), *sums)
    query = query.join_from(conversation, channel, channel.c.number == conversation.c.channel_number)
    query = query.where(*said_within(start, end), usage["output_tokens"].as_string().is_not(None))
    found = tx.execute(query.group_by(*columns))
    return [UsageRow(str(day), source, path, by, Usage(*map(int, counts))) for day, source, path, by, *counts in found]


def _number(value: Any) -> ColumnElement[int]:
    return cast(value.as_string(), BigInteger)


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
