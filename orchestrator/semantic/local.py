"""A model in this process: loaded at the first need, in a thread, and let go when nobody has asked for a while."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.semantic.embedders import Unavailable, Vectors
from orchestrator.semantic.prefixes import Prefixes, named

if TYPE_CHECKING:
    from orchestrator.semantic.models import Encode

IDLE_S = 600.0
"""A model that nobody asked for so long is let go: every chat window may have one."""
LOWEST_PRIORITY = 19


class LocalModel:
    """A model that `load` brings into this process. `name` and `prefixes` make its vectors what they are."""

    patience_s = 10.0

    def __init__(self, name: str, load: Callable[[], Encode], prefixes: Prefixes = Prefixes(), cost: str = "") -> None:  # noqa: B008, a tuple
        self.name, self.cost = named(name, prefixes), cost
        self._load, self._prefixes = load, prefixes
        self._loading: asyncio.Future[Encode] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._background = ThreadPoolExecutor(1, "embedding", _step_back)

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """In a thread: the loop goes on. A caller who stops waiting does not stop the loading."""
        return await self._encoded(None, self._prefixes.query, texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """In a thread that works when the machine has nothing better to do, where the system knows such threads."""
        return await self._encoded(self._background, self._prefixes.passage, texts)

    async def _encoded(self, executor: Executor | None, prefix: str, texts: Sequence[str]) -> Vectors:
        if self._loading is None or _has_failed(self._loading):
            self._loading = _loaded(self._load, self.name)
        encode = await asyncio.shield(self._loading)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(executor, partial(encode, [prefix + text for text in texts]))
        finally:
            if self._idle:
                self._idle.cancel()
            self._idle = loop.call_later(IDLE_S, self._let_go)

    def _let_go(self) -> None:
        self._loading = None

    async def close(self) -> None:
        """Let the model go; what it is at is not waited for."""
        if self._idle:
            self._idle.cancel()
        self._let_go()
        self._background.shutdown(wait=False, cancel_futures=True)


def _step_back() -> None:
    """Linux has priorities for threads; elsewhere the whole process would have the lowest."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)


def _has_failed(loading: asyncio.Future[Encode]) -> bool:
    return loading.done() and loading.exception() is not None


def _loaded(load: Callable[[], Encode], name: str) -> asyncio.Future[Encode]:
    """The model, as soon as it is there. A program that ends meanwhile does not wait for a long download."""
    loop = asyncio.get_running_loop()
    loading: asyncio.Future[Encode] = loop.create_future()

    def finish(encode: Encode | None, trouble: Exception | None) -> None:
        if trouble:
            loading.set_exception(trouble)
            loading.exception()  # known, also where nobody waits for it any more
        elif encode:
            loading.set_result(encode)

    def work() -> None:
        try:
            outcome: tuple[Encode | None, Exception | None] = load(), None
        except Exception as exc:  # libraries and their downloaders raise what they like
            why = Unavailable(f"the model {name} cannot be loaded: {str(exc) or type(exc).__name__}")
            why.__cause__ = exc
            outcome = None, why
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, *outcome)

    threading.Thread(target=work, name="embedding-model", daemon=True).start()
    return loading
