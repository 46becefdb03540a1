"""Making the packed lists of the commonest words, which PostgreSQL's index is read by (`postgres_index`).

A block is of `SPAN` consecutive numbers: for each packed word a row. It is always made as a whole, out of the index, in
a transaction that takes away the notes of what was changed in it. What is not committed by then has a note that stays,
and a number that is noted is never read from a block: so nobody has to wait for anybody.

Killed at any moment, it goes on where it was. The lists belong to one table: one that was put in its place, also by a
release that does not know of them, has none until they are made for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from registry.errors import StorageError
from registry.storage.database import Database, ReadTransaction, WriteTransaction, insert_records
from registry.storage.index import message_index
from registry.storage.index.engines import index_of
from registry.storage.index.posting_blocks import SPAN, written

logger = logging.getLogger(__name__)

EVERY_S = 60.0
"""A server looks so often whether there is something to pack."""
PACKED = 500
"""Words that about so many entries hold, and more, are packed."""
NOTES = 1_000
"""With more notes than these a block is made anew. One that grows by as many between two looks waits until it is full:
somebody is reading a history in."""
AT_ONCE = 4
"""So many blocks are made anew while somebody waits for it."""
GROWN = 1.25
"""When there are so many times more messages, it is looked which words are common now."""

_LOCK = 0x7061636B
_ALONE = "SELECT pg_try_advisory_xact_lock(%s)"
_WAIT = "SELECT pg_advisory_xact_lock(%s)"
_STATE = "SELECT index_oid = to_regclass('message_index'), newest, next_block FROM message_index_state"
_NEWEST = "SELECT coalesce(max(number), 0) FROM message_index"
_EVENTS = {"insert": "NEW", "delete": "OLD", "update": "NEW", "truncate": ""}
_CLEARED = tuple(
    f"DELETE FROM message_index_{name}"  # noqa: S608, names of ours
    for name in ("state", "token", "block", "noted")
)
_BEGUN = ("INSERT INTO message_index_state (index_oid, newest, next_block) SELECT to_regclass('message_index'), 0, 0",)
_ADD_TOKENS = """
INSERT INTO message_index_token (token, usable) SELECT token, false FROM unnest(CAST(%s AS text[])) AS token
ON CONFLICT DO NOTHING
"""
_ALL_USABLE = "UPDATE message_index_token SET usable = true WHERE NOT usable"
_PASSED = "UPDATE message_index_state SET next_block = %s, newest = %s"
_NOTED = "SELECT number / %s AS block, count(*) FROM message_index_noted GROUP BY 1 ORDER BY 2 DESC, 1"
_NEXT_VERSION = "UPDATE message_index_state SET version = gen_random_uuid()"
_TOKENS = "SELECT token FROM message_index_token"
_HELD = "SELECT token, numbers FROM message_index_block WHERE block = %s"
# Together they are one statement, which sees the notes and the entries as of one moment.
_DONE = "WITH done AS (DELETE FROM message_index_noted WHERE number BETWEEN %(first)s AND %(last)s)"
_ENTRIES = """
SELECT number, array_to_string(tsvector_to_array(tokens), ' ') FROM message_index
WHERE number BETWEEN greatest(%(first)s, 1) AND %(last)s ORDER BY number
"""


async def pack_lists(database: Database, *, everything: bool = False, grown_from: int | None = None) -> None:
    """Bring the packed lists up to date, as far as it is worth it; `everything`: those there are, to the last note.

    `grown_from`: the newest number at the last look, if there was one. StorageError if the registry cannot be written.
    """

    def work(tx: WriteTransaction) -> bool:
        return pack_some(tx, everything=everything, grown_from=grown_from)

    while database.dialect == "postgresql" and await database.write(work, is_awaited=False):
        pass


@asynccontextmanager
async def keeping_packed(database: Database) -> AsyncIterator[None]:
    """Meanwhile the packed lists are kept up to date; SQLite has none."""
    if database.dialect != "postgresql":
        yield
        return
    task = asyncio.create_task(_keep_packed(database))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _keep_packed(database: Database) -> None:
    grown_from = None
    while True:
        grown_from = await look_after(database, grown_from)
        await asyncio.sleep(EVERY_S)


async def look_after(database: Database, grown_from: int | None = None) -> int | None:
    """Bring the packed lists up to date if that can be; the newest number there was, for the next look."""
    try:
        newest = await database.read(lambda tx: int(tx.exec_driver_sql(_NEWEST).scalar_one()))
    except StorageError:  # who reads has told the log
        return None
    try:
        await pack_lists(database, grown_from=grown_from)
    except Exception:  # searches go on without; next time it may be possible
        logger.exception("The lists of common words could not be packed")
        return None
    return newest


def pack_some(tx: WriteTransaction, *, everything: bool = False, grown_from: int | None = None) -> bool:
    """The next step; whether there is another. Where somebody else is at it, there is none; `everything` waits."""
    if everything:
        tx.exec_driver_sql(_WAIT, (_LOCK,))
    elif not tx.exec_driver_sql(_ALONE, (_LOCK,)).scalar():
        return False
    newest = tx.exec_driver_sql(_NEWEST).scalar_one()
    state = tx.exec_driver_sql(_STATE).first()
    if state is None or not state[0]:
        unpack(tx)
        return not everything and _begin(tx, newest)
    _, packed_to, next_block = state
    if not everything:
        if next_block is not None:
            return _pass_on(tx, next_block, newest)
        if newest > GROWN * packed_to and _add_tokens(tx):
            _run(tx, _PASSED, 0, packed_to)
            return True
    noted = tx.exec_driver_sql(_NOTED, (SPAN,)).all()
    if grown_from is not None and newest - grown_from > NOTES:
        noted = [one for one in noted if one[0] < newest // SPAN]
    if sum(count for _, count in noted) > (0 if everything else NOTES):
        _make_block(tx, noted[0][0])
        return True
    return False


async def clear_deleted(database: Database) -> None:
    """Leave nothing of what was deleted in the packed lists: a few blocks are made anew at once; where it was in many,
    all lists go, and a server makes them anew.

    StorageError if the registry cannot be written.
    """
    await database.write(_unpack_scattered)
    await pack_lists(database, everything=True)


def _unpack_scattered(tx: WriteTransaction) -> None:
    tx.exec_driver_sql(_WAIT, (_LOCK,))
    if len(tx.exec_driver_sql(_NOTED, (SPAN,)).all()) > AT_ONCE:
        unpack(tx)


def unpack(tx: WriteTransaction) -> None:
    """Have no packed lists, until they are made anew."""
    for statement in _CLEARED:
        tx.exec_driver_sql(statement)


def watch(tx: WriteTransaction) -> None:
    """Have all changes of the index noted; waits for who is changing it."""
    for event, changed in _EVENTS.items():
        seen = f" REFERENCING {changed} TABLE AS changed" if changed else ""
        tx.exec_driver_sql(
            f"CREATE OR REPLACE TRIGGER note_{event} AFTER {event.upper()} ON message_index{seen}"
            " FOR EACH STATEMENT EXECUTE FUNCTION note_message_index()"
        )


def _begin(tx: WriteTransaction, newest: int) -> bool:
    if newest < message_index.LARGE or not _add_tokens(tx):  # or nothing is known of this table yet
        return False
    watch(tx)
    for statement in _BEGUN:
        tx.exec_driver_sql(statement)
    return True


def _add_tokens(tx: WriteTransaction) -> bool:
    """Return whether there are words that are common now and were not before."""
    common = index_of(tx).sample(tx, min(PACKED, message_index.COMMON))
    return tx.exec_driver_sql(_ADD_TOKENS, (list(common),)).rowcount > 0


def _pass_on(tx: WriteTransaction, block: int, newest: int) -> bool:
    if block <= newest // SPAN:
        _make_block(tx, block)
        _run(tx, _PASSED, block + 1, newest)
        return True
    _run(tx, _ALL_USABLE)
    _run(tx, _PASSED, None, newest)
    return True


def _make_block(tx: WriteTransaction, block: int) -> None:
    lists = _lists_of(tx, block, _DONE + _ENTRIES)
    _run(tx, _NEXT_VERSION)
    _run(tx, "DELETE FROM message_index_block WHERE block = %s", block)
    if lists:
        rows = [{"token": token, "block": block, "numbers": numbers} for token, numbers in lists.items()]
        insert_records(tx, "message_index_block", rows)


def _lists_of(tx: ReadTransaction, block: int, statement: str) -> dict[str, bytes]:
    """By packed word, the places in a block whose entries hold it."""
    places: dict[str, list[int]] = {token: [] for token in tx.exec_driver_sql(_TOKENS).scalars()}
    given = {"first": block * SPAN, "last": block * SPAN + SPAN - 1}
    for number, held in tx.exec_driver_sql(statement, given):
        place = number % SPAN
        for token in held.split(" "):
            if token in places:
                places[token].append(place)
    return {token: written(each) for token, each in places.items() if each}


def wrong_blocks(tx: ReadTransaction) -> int:
    """Return how many blocks are not as the index has them; of one that somebody is changing nothing can be said."""
    state = tx.exec_driver_sql(_STATE).first()
    if state is None or not state[0] or state[2] is not None:
        return 0
    newest = tx.exec_driver_sql(_NEWEST).scalar_one()
    return sum(_is_wrong(tx, block) for block in range(newest // SPAN + 1))


def _is_wrong(tx: ReadTransaction, block: int) -> bool:
    held = {token: bytes(numbers) for token, numbers in tx.exec_driver_sql(_HELD, (block,))}
    if held == _lists_of(tx, block, _ENTRIES):
        return False
    noted = tx.exec_driver_sql(_NOTED, (SPAN,)).all()
    again = {token: bytes(numbers) for token, numbers in tx.exec_driver_sql(_HELD, (block,))}
    return held == again and block not in {row[0] for row in noted}


def _run(tx: WriteTransaction, statement: str, *given: Any) -> None:
    tx.exec_driver_sql(statement, given)
