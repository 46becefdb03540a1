"""What a request means, as a vector: asked of the model in good time, or not at all. A search never fails by it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from orchestrator.background import running
from orchestrator.semantic.embedders import Embedder, TextRefused, Unavailable, Vectors
from orchestrator.semantic.models import embedder_for
from registry.errors import RegistryError
from registry.extras import install_command
from registry.search.vectors import EmbeddingModel, find_model, newest_message
from registry.text.request.query import parse_query

if TYPE_CHECKING:
    from registry.registry import Registry
    from registry.settings import Settings

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0
"""After a failure no search asks for so long; each further failure doubles it."""
WARMING_S = 2.0
"""A search that comes while the model is being loaded waits so long, then goes by words."""
CATCHING_UP_S = 0.3
"""A search that comes when something was just logged waits so long for its vectors."""


@dataclass(frozen=True, slots=True)
class Meant:
    """A request's vector, and the model whose vectors it may be compared with; or a note why there is none."""

    model: EmbeddingModel | None = None
    vector: Sequence[float] = ()
    note: str = ""


class Pause:
    """Keeps us from asking again and again what does not answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until, self._next = 0.0, FIRST_PAUSE_S

    @property
    def left_s(self) -> float:
        """Seconds that nobody should ask; 0 if it may be tried."""
        return max(self._until - self._clock(), 0.0)

    def begin(self) -> float:
        """It has failed; the length of the pause in seconds."""
        pause = self._next
        self._until, self._next = self._clock() + pause, min(2 * pause, LONGEST_PAUSE_S)
        return pause

    def end(self) -> None:
        """It works."""
        self._until, self._next = 0.0, FIRST_PAUSE_S


class Beat:
    """Between the task that embeds and the searches that wait until it has looked for what is new."""

    def __init__(self) -> None:
        self.embedded_to = 0
        """The newest message up to which all are embedded; 0 as long as there are older ones that are not."""
        self._wanted = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []

    async def caught_up(self, newest: int) -> None:
        """The few messages up to that one are embedded, or the time for it is over."""
        # more than 64 are a history being read: no search waits for it
        if 0 < newest - self.embedded_to <= 64 and self.embedded_to:
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(done)
            self._wanted.set()
            await asyncio.wait([done], timeout=CATCHING_UP_S)

    def begin(self) -> list[asyncio.Future[None]]:
        """It is looked for what is new: for those who wait now."""
        self._wanted.clear()
        waiting, self._waiting = self._waiting, []
        return waiting

    async def rest(self, for_s: float) -> None:
        """Until somebody waits, or so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(for_s):
                await self._wanted.wait()


class Meaning:
    """The configured model, as searches use it."""

    def __init__(self, registry: Registry, embedder: Embedder, clock: Callable[[], float] = time.monotonic) -> None:
        self.registry, self.embedder = registry, embedder
        self._pause = Pause(clock)
        self._why = ""
        self._warming: asyncio.Task[None] | None = None
        self.beat: Beat | None = None

    async def of(self, text: str, also: Sequence[str] = ()) -> Meant | None:
        """Embed a request and its other wordings; None if it has no subject.

        Never raises for the model's sake.
        """
        if not parse_query(text).words:
            return None
        if not find_spec("numpy"):
            return Meant(note=f"numpy is not installed: {install_command('meaning')}")
        model = await self.registry.read(lambda tx: find_model(tx, self.embedder.name))
        if model is None:
            return Meant(note=f"nothing is embedded by {self.embedder.name} yet: ctxr db embed, or a running server")
        if self._pause.left_s:
            return Meant(note=f"{self._why}; not asked again for {self._pause.left_s:.0f} s")
        if self._warming and not (await asyncio.wait([self._warming], timeout=WARMING_S))[0]:
            return Meant(note=f"{self.embedder.name} is being loaded")
        if self.beat:
            await self.beat.caught_up(await self.registry.read(newest_message))
        return await self._ask(model, [text, *also])

    async def _ask(self, model: EmbeddingModel, wordings: Sequence[str]) -> Meant:
        try:
            async with asyncio.timeout(self.embedder.patience_s):
                vector = _together(await self.embedder.queries(wordings))
        except TimeoutError:
            return self._failed(f"{self.embedder.name} did not answer within {self.embedder.patience_s:g} s")
        except (Unavailable, TextRefused) as exc:
            return self._failed(str(exc))
        self._pause.end()
        if len(vector) != model.dimensions:
            given = f"{self.embedder.name} answers with {len(vector)} dimensions, its vectors here have"
            return Meant(note=f"{given} {model.dimensions}: ctxr db embed")
        if not any(vector):
            return Meant(note=f"{self.embedder.name} knows none of the words")
        return Meant(model, vector)

    def _failed(self, why: str) -> Meant:
        self._why = why
        return Meant(note=f"{why}; not asked again for {self._pause.begin():.0f} s")

    @asynccontextmanager
    async def embedding(self) -> AsyncIterator[None]:
        """Meanwhile messages that lack a vector are embedded, and searches need not load the model first."""
        if not find_spec("numpy"):
            yield
            return
        self._warming, self.beat = asyncio.create_task(self._warm_up()), Beat()
        try:
            async with running(self._embed(self.beat)):
                yield
        finally:
            self.beat = None
            self._warming.cancel()
            await asyncio.wait([self._warming])

    async def _warm_up(self) -> None:
        """Have the model and the vectors at hand. What goes wrong here goes wrong for the first search, and is told."""
        with suppress(Unavailable, TextRefused, RegistryError):
            model = await self.registry.read(lambda tx: find_model(tx, self.embedder.name))
            if model:
                await self.embedder.warm_up()
                module = await asyncio.to_thread(import_module, "registry.search.meaning")
                await self.registry.read(lambda tx: module.hold_vectors(tx, model))

    async def _embed(self, beat: Beat) -> None:
        module = await asyncio.to_thread(
            import_module, "orchestrator.semantic.embedding"
        )  # with numpy, which takes a moment
        await module.keep_embedding(self.registry, self.embedder, beat)

    async def close(self) -> None:
        """Let go of the model."""
        await self.embedder.close()


def _together(vectors: Vectors) -> list[float]:
    """The question's direction, and half of each other wording's."""
    shares = [1.0 / (math.hypot(*vector) or 1.0) for place, vector in enumerate(vectors)]
    return [
        sum(share * float(one) for share, one in zip(shares, numbers, strict=True))
        for numbers in zip(*vectors, strict=True)
    ]


def open_meaning(settings: Settings, registry: Registry) -> Meaning | None:
    """The meaning that the settings ask for; None where they ask for none, or what it needs is not installed."""
    embedder = embedder_for(settings)
    return Meaning(registry, embedder) if embedder else None
