"""Sum the tokens that clients report for their models, by day, client, project and model, without deleted messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import CTE, BigInteger, ColumnElement, FromClause, String, cast, func, literal, select, union_all

from registry.monitor.activity import day_of_message, said_since
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


Summed = Mapping[str, Sequence[tuple[str | None, Usage]]]
"""By `day`, `source`, `project` (its path) and `model`: each name (None: unknown) with its tokens."""


def usage_by(tx: ReadTransaction, start: datetime | None, utc_offset_minutes: int) -> Summed:
    """Sum the tokens used since an instant (None: all), most output first; days follow the UTC offset."""
    answers = _answers(tx, start, utc_offset_minutes)
    projects = answers.join(channel, channel.c.number == answers.c.channel_number)
    groups: tuple[tuple[str, ColumnElement[str], FromClause], ...] = (
        ("day", cast(answers.c.day, String), answers),
        ("source", answers.c.source, answers),
        ("project", channel.c.project_path, projects),
        ("model", answers.c.model, answers),
    )
    sums = [func.sum(answers.c[kind]) for kind in KINDS]
    queries = (
        select(literal(name).label("by"), column.label("name"), func.count().label("answers"), *sums)
        .select_from(rows)
        .group_by(column)
        for name, column, rows in groups
    )
    found: dict[str, list[tuple[str | None, Usage]]] = {name: [] for name, *_ in groups}
    for by, name, *counts in tx.execute(union_all(*queries)):  # in one statement, that the answers are read once
        found[by].append((name, Usage(*map(int, counts))))
    return {by: sorted(some, key=lambda one: (-one[1].output, str(one[0]))) for by, some in found.items()}


def _answers(tx: ReadTransaction, start: datetime | None, utc_offset_minutes: int) -> CTE:
    tokens = [func.coalesce(cast(_noted(kind), BigInteger), 0).label(kind) for kind in KINDS]
    day = day_of_message(tx, utc_offset_minutes).label("day")
    model = conversation.c.payload["model"].as_string().label("model")
    query = select(day, conversation.c.source, conversation.c.channel_number, model, *tokens)
    return query.where(*said_since(start), _noted("output_tokens").is_not(None)).cte("answers")


def _noted(kind: str) -> ColumnElement[str]:
    told: ColumnElement[str] = conversation.c.payload["usage", kind].as_string()
    return told


def total(rows: Iterable[tuple[str | None, Usage]]) -> Usage:
    """Sum all rows."""
    return Usage(*map(sum, zip(Usage(), *(usage for _, usage in rows), strict=True)))
