"""Waiting for what is stored, by whichever process: told by PostgreSQL at once, else by looking every now and then.

A process that somebody listens to has one connection of its own that hears the database. Whether it
does is tried, never assumed: behind a pooler that hands each transaction another session nothing comes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import WeakKeyDictionary

from sqlalchemy import Engine

from registry.storage.connections import CONNECT_TIMEOUT_S, LIVELY
from registry.storage.database import Database

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Session = AsyncConnection[tuple[object, ...]]

logger = logging.getLogger(__name__)

POLL_S = 0.4
"""Who is not told looks this often: it works across processes, and nobody sees the difference."""
NET_S = 5.0
"""Who is told looks this often all the same."""
BUSY_S = 2.0
"""So long after news the look is as often as without: of two that store at the same moment only one may have told."""
GATHERING_S = 0.2
"""What is told within this time is one piece of news."""
PROOF_S = 2.0
"""What is told comes within this time, or not at all."""
BEAT_S = 30.0
"""A silent connection is tried this often."""
RETRY_S = 30.0
"""A new one is tried this often where none is to be had, or where it hears nothing."""


class Arrivals:
    """The arrivals of one registry in one process, while somebody waits for them."""

    def __init__(self) -> None:
        self.at = float("-inf")
        """When something was stored last, as far as was told, by the monotonic clock."""
        self._is_told = False
        self._waiting: set[asyncio.Event] = set()
        self._hearing: asyncio.Task[None] | None = None

    @contextmanager
    def awaited(self, registry: Database) -> Iterator[Waiting]:
        """Register a waiter."""
        waiting = Waiting(self)
        self._waiting.add(waiting.called)
        if not (registry.is_embedded or self._is_hearing):
            self._hearing = asyncio.create_task(self._hear(registry.engine))
        try:
            yield waiting
        finally:
            self._waiting.remove(waiting.called)
            if self._hearing and not self._waiting:
                self._hearing.cancel()
                self._hearing, self._is_told = None, False

    @property
    def _is_hearing(self) -> bool:
        return self._hearing is not None and not self._hearing.done()

    @property
    def interval_s(self) -> float:
        """Return how long to wait for a call before looking without one."""
        is_quiet = time.monotonic() - self.at > BUSY_S
        return NET_S if self._is_told and self._is_hearing and is_quiet else POLL_S

    def _call(self) -> None:
        self.at = time.monotonic()
        for called in self._waiting:
            called.set()

    async def _hear(self, engine: Engine) -> None:
        """Hear the database, over and over: what is lost is found by looking meanwhile."""
        from psycopg import Error

        while True:
            try:
                await self._hear_once(engine)
            except (Error, OSError) as exc:
                logger.info("Not told of what is stored, so looking for it: %s", str(exc).strip())
            if self._is_told:  # it was: a new connection is worth a try at once
                self._is_told = False
                self._call()
            else:
                await asyncio.sleep(RETRY_S)

    async def _hear_once(self, engine: Engine) -> None:
        """Hear it until the connection is lost; end where nothing can be heard."""
        async with _session(engine) as session:
            if not await _is_heard(session, engine):
                logger.info("Nothing of what is stored is heard, as behind a pooler, so looking for it.")
                await session.execute("UNLISTEN *")
                return
            self._is_told = True
            self._call()  # from now on nothing is missed; before, something may have been
            while True:
                if [note async for note in session.notifies(timeout=BEAT_S, stop_after=1) if not note.payload]:
                    self._call()
                    await asyncio.sleep(GATHERING_S)
                else:
                    await session.execute("SELECT 1")


class Waiting:
    """A waiter for what is stored."""

    def __init__(self, arrivals: Arrivals) -> None:
        self.called = asyncio.Event()
        self._arrivals = arrivals

    async def wait(self, at_most_s: float | None = None) -> None:
        """Until something may have been stored."""
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s or self._arrivals.interval_s):
                await self.called.wait()
        self.called.clear()


_ARRIVALS: WeakKeyDictionary[Engine, Arrivals] = WeakKeyDictionary()


def arrivals_of(registry: Database) -> Arrivals:
    """Return the arrivals of a registry, shared by all who see it, whatever their tokens."""
    return _ARRIVALS.setdefault(registry.engine, Arrivals())


@asynccontextmanager
async def _session(engine: Engine) -> AsyncIterator[Session]:
    """A connection of the kind that the engine makes, and none of those that it hands out."""
    from psycopg import AsyncConnection

    where, how = engine.dialect.create_connect_args(engine.url)
    given = {**LIVELY, **how, "connect_timeout": CONNECT_TIMEOUT_S, "autocommit": True, "prepare_threshold": None}
    session = await AsyncConnection.connect(*where, **given)
    try:
        yield session
    finally:
        await session.close()


async def _is_heard(session: Session, engine: Engine) -> bool:
    """Return whether what another connection says comes through while this one stands idle.

    A pooler that lends a session for each transaction would pass on what is said meanwhile, and nothing that is said
    when the transaction has ended. It is no connection of the engine's: who has gone would have left it there.
    """
    await session.execute("LISTEN ctxr")
    proof = uuid4().hex
    async with _session(engine) as another:
        await another.execute("SELECT pg_notify('ctxr', %s)", (proof,))
    heard = session.notifies(timeout=PROOF_S)
    async for note in heard:
        if note.payload == proof:
            await heard.aclose()
            return True
    return False
