"""A model in this process: loaded at the first need, in a thread, and let go when nobody has asked for a while."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

from orchestrator.semantic.embedders import Unavailable, Vectors

IDLE_S = 600.0
"""A model that nobody asked for so long is let go: every chat window may have one."""


Encode = Callable[[Sequence[str]], Any]
"""Texts to their vectors (any rows of numbers)."""


class Loaded(NamedTuple):
    """A model in memory: what takes what is asked, and what was said."""

    queries: Encode
    passages: Encode


class LocalModel:
    """A model that `load` brings into this process."""

    patience_s = 10.0
    answer_s: float | None = None

    def __init__(self, name: str, load: Callable[[], Loaded], cost: str = "") -> None:
        self.name, self.cost = name, cost
        self._load = load
        self._loading: asyncio.Future[Loaded] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._background = ThreadPoolExecutor(1, "embedding", _step_back)

    async def warm_up(self) -> None:
        """Load the model, and use it once: what it reads from its file comes with the first text."""
        await self.queries(["ready"])

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """In a thread: the loop goes on. A caller who stops waiting does not stop the loading."""
        return await self._in_thread(None, (await self._loaded()).queries, texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """In a thread that works when the machine has nothing better to do, where the system knows such threads.

        A few at a time: a program that ends waits for what is begun.
        """
        encode, found = (await self._loaded()).passages, list[Sequence[float]]()
        for some in _portions(texts):
            found.extend(await self._in_thread(self._background, encode, some))
        return found

    async def _loaded(self) -> Loaded:
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._load))
        try:
            return await asyncio.shield(self._loading)
        except Exception as exc:  # libraries raise what they like
            self._loading = None
            raise Unavailable(f"the model {self.name} cannot be loaded: {str(exc) or type(exc).__name__}") from exc

    async def _in_thread(self, executor: Executor | None, encode: Encode, texts: Sequence[str]) -> Vectors:
        loop = asyncio.get_running_loop()
        try:
            vectors: Vectors = await loop.run_in_executor(executor, encode, texts)
            return vectors
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


def _portions(texts: Sequence[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    for text in texts:
        portion.append(text)
        if sum(map(len, portion)) >= 3_000:  # about a second of work
            yield portion
            portion = []
    if portion:
        yield portion


def _step_back() -> None:
    """Linux has priorities for threads; elsewhere the whole process would have the lowest."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
