"""Run an embedding model in this process; load it in a thread on first use, and unload it when idle."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

from orchestrator.semantic.embedders import Unavailable, Vectors

IDLE_S = 600.0  # seconds until an unused model is unloaded: it takes 130 MB

Encode = Callable[[Sequence[str]], Any]  # returns a row of numbers for each text


class Loaded(NamedTuple):
    """A loaded model: its encoder of questions, and that of messages."""

    queries: Encode
    passages: Encode


class LocalModel:
    """An embedding model that `load` loads."""

    query_timeout_s = 10.0
    batch_timeout_s: float | None = None

    def __init__(self, name: str, load: Callable[[], Loaded]) -> None:
        self.name, self._load = name, load
        self._loading: asyncio.Future[Loaded] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._background = ThreadPoolExecutor(1, "embedding", _lower_priority)

    async def warm_up(self) -> None:
        """Load the model, and embed one text, since parts of the file are read then."""
        await self.queries(["ready"])

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """Embed in a thread. If the caller is cancelled, loading continues."""
        return await self._in_thread(None, (await self._loaded()).queries, texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Embed in a thread of low priority, if the system supports that."""
        return await self._in_thread(self._background, (await self._loaded()).passages, texts)

    async def _loaded(self) -> Loaded:
        if self._loading is None:
            self._loading = asyncio.ensure_future(asyncio.to_thread(self._load))
        try:
            return await asyncio.shield(self._loading)
        except Exception as exc:  # libraries raise any type
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
            self._idle = loop.call_later(IDLE_S, self._unload)

    def _unload(self) -> None:
        self._loading = None

    async def close(self) -> None:
        if self._idle:
            self._idle.cancel()
        self._unload()
        self._background.shutdown(wait=False, cancel_futures=True)


def _lower_priority() -> None:
    """Lower the thread's priority on Linux; other systems would lower the whole process's."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
