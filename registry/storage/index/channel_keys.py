"""The channel in the tables that name a message: filled in where it is missing, repaired where it is wrong.

The program writes it with each row, and triggers keep it when a message goes to another channel.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Column, ColumnElement, Table, func, select, text, update

from registry.storage.database import Database, ReadTransaction, WriteTransaction
from registry.storage.tables import conversation, message_alias, message_vector, remote_message

BATCH = 2_000
"""Messages whose rows are made good in one transaction."""

NAMING: dict[Table, Column[int]] = {
    message_alias: message_alias.c.number,
    remote_message: remote_message.c.number,
    message_vector: message_vector.c.message_number,
}
"""Each table with its column that names the message."""


async def complete_channels(database: Database) -> int:
    """Make the channel good wherever it is not the message's, a few messages at a time; how many rows had another.

    What was done stays done when it is stopped. StorageError if the registry cannot be written.
    """
    done = last = 0
    while numbers := await database.read(lambda tx, behind=last: _next_wrong(tx, behind)):  # type: ignore[misc]
        done += await database.write(lambda tx, some=tuple(numbers): _make_good(tx, some))  # type: ignore[misc]
        last = numbers[-1]
    return done


def wrong_channels(tx: ReadTransaction) -> Iterator[tuple[str, int]]:
    """The tables in which rows name another channel than their message's, and how many do; none is no wrong one."""
    for table in NAMING:
        is_wrong = table.c.channel_number.is_not(None) & _is_other(table)
        if count := tx.execute(select(func.count()).select_from(table).where(is_wrong)).scalar_one():
            yield table.name, count
    if tx.dialect.name == "postgresql":
        query = text(_WRONG_ENTRIES)
        if count := tx.execute(query).scalar_one():
            yield "message_index", count


_WRONG_ENTRIES = """
SELECT count(*) FROM message_index AS held LEFT JOIN conversation USING (number)
WHERE held.number <> 0 AND held.channel_number <> CASE WHEN held.number < 0 THEN -held.number
    ELSE conversation.channel_number END
"""


def _is_other(table: Table) -> ColumnElement[bool]:
    return table.c.channel_number.is_distinct_from(_of_message(table))


def _of_message(table: Table) -> ColumnElement[int]:
    return select(conversation.c.channel_number).where(conversation.c.number == NAMING[table]).scalar_subquery()


def _next_wrong(tx: ReadTransaction, behind: int) -> list[int]:
    """The next messages of which a row names another channel, in order."""
    found = [
        tx.execute(
            select(naming).where(naming > behind, _is_other(table)).distinct().order_by(naming).limit(BATCH)
        ).scalars()
        for table, naming in NAMING.items()
    ]
    return sorted({number for numbers in found for number in numbers})[:BATCH]


def _make_good(tx: WriteTransaction, numbers: tuple[int, ...]) -> int:
    return sum(
        tx.execute(
            update(table)
            .where(naming.between(numbers[0], numbers[-1]), _is_other(table))
            .values(channel_number=_of_message(table))
        ).rowcount
        for table, naming in NAMING.items()
    )
