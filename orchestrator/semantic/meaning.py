"""Embed requests within a time limit. If the model fails, the search uses words only."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module

from orchestrator.background import running
from orchestrator.semantic.embedders import Embedder, TextRefused, Unavailable, Vectors, dimension_mismatch
from orchestrator.semantic.models import embedder_for
from registry.errors import RegistryError
from registry.registry import Registry
from registry.search.vectors import EmbeddingModel, find_model
from registry.settings import Settings
from registry.storage.records.executions import Execution
from registry.text.request.query import parse_query

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0  # backoff after a failure; doubled by each further one
MAX_WARM_UP_WAIT_S = 2.0  # seconds that a search waits for a model that is loading


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A request's vector and the model whose vectors it can be compared with; or a note why there is none."""

    model: EmbeddingModel | None = None
    vector: Sequence[float] = ()
    note: str = ""


class Backoff:
    """Exponential backoff for a model that does not answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until, self._next = 0.0, FIRST_PAUSE_S

    @property
    def left_s(self) -> float:
        """Return the seconds until the next attempt."""
        return max(self._until - self._clock(), 0.0)

    def begin(self) -> float:
        """Note a failure, and return the length of the pause in seconds."""
        pause = self._next
        self._until, self._next = self._clock() + pause, min(2 * pause, LONGEST_PAUSE_S)
        return pause

    def end(self) -> None:
        """Note a success."""
        self._until, self._next = 0.0, FIRST_PAUSE_S


class Meaning:
    """The configured embedding model, used by searches and by background embedding."""

    def __init__(self, registry: Registry, embedder: Embedder, clock: Callable[[], float] = time.monotonic) -> None:
        self.registry, self.embedder = registry, embedder
        self._pause = Backoff(clock)
        self._last_error = ""
        self._warm_up_task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    @property
    def is_loading(self) -> bool:
        """Return True while the model is being loaded: a search does not wait long for it."""
        return self._warm_up_task is not None and not self._warm_up_task.done()

    async def embed_query(self, text: str, also: Sequence[str] = ()) -> QueryVector | None:
        """Embed a request and its alternative wordings; None if it has no words. Never raises an error of the model."""
        if not parse_query(text).words:
            return None
        model = await self.registry.read(lambda tx: find_model(tx, self.embedder.name))
        if model is None:
            return QueryVector(
                note=f"nothing is embedded by {self.embedder.name} yet: ctxr db embed, or a running server"
            )
        if self._pause.left_s:
            return QueryVector(note=f"{self._last_error}; not asked again for {self._pause.left_s:.0f} s")
        if self._warm_up_task and not (await asyncio.wait([self._warm_up_task], timeout=MAX_WARM_UP_WAIT_S))[0]:
            return QueryVector(note=f"{self.embedder.name} is being loaded")
        return await self._ask(model, [text, *also])

    async def _ask(self, model: EmbeddingModel, wordings: Sequence[str]) -> QueryVector:
        try:
            async with asyncio.timeout(self.embedder.query_timeout_s):
                vector = _mean_direction(await self.embedder.queries(wordings))
        except TimeoutError:
            return self._note_failure(f"{self.embedder.name} did not answer within {self.embedder.query_timeout_s:g} s")
        except (Unavailable, TextRefused) as exc:
            return self._note_failure(str(exc))
        self._pause.end()
        if len(vector) != model.dimensions:
            return QueryVector(note=dimension_mismatch(self.embedder.name, len(vector), model.dimensions))
        if not any(vector):
            return QueryVector(note=f"{self.embedder.name} knows none of the words")
        return QueryVector(model, vector)

    def _note_failure(self, error: str) -> QueryVector:
        self._last_error = error
        return QueryVector(note=f"{error}; not asked again for {self._pause.begin():.0f} s")

    @asynccontextmanager
    async def embedding(self) -> AsyncIterator[None]:
        """Embed new messages, and load the model ahead of the first search, while the context is open."""
        self._warm_up_task = asyncio.create_task(self._warm_up())
        try:
            async with running(self._embed()):
                yield
        finally:
            self._warm_up_task.cancel()
            await asyncio.wait([self._warm_up_task])

    async def _warm_up(self) -> None:
        """Load the model and the vectors. Errors are left to the first search."""
        with suppress(Unavailable, TextRefused, RegistryError):
            model = await self.registry.read(lambda tx: find_model(tx, self.embedder.name))
            if model:
                await self.embedder.warm_up()
                module = await asyncio.to_thread(import_module, "registry.search.meaning")
                await self.registry.read(lambda tx: module.preload_vectors(tx, model))

    def observe(self, _run: Execution) -> None:
        """Trigger a check for new messages after an operation."""
        self._news.set()

    async def _embed(self) -> None:
        module = await asyncio.to_thread(import_module, "orchestrator.semantic.embedding")  # imports numpy: slow
        await module.keep_embedding(self.registry, self.embedder, self._news)

    async def close(self) -> None:
        await self.embedder.close()


def _mean_direction(vectors: Vectors) -> list[float]:
    scales = [1.0 / (math.hypot(*vector) or 1.0) for vector in vectors]
    return [
        sum(scale * float(number) for scale, number in zip(scales, dimension, strict=True))
        for dimension in zip(*vectors, strict=True)
    ]


def open_meaning(settings: Settings, registry: Registry) -> Meaning | None:
    """Return the configured model; None if it is off."""
    embedder = embedder_for(settings)
    return Meaning(registry, embedder) if embedder else None
