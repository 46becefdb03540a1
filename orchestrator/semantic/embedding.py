"""Embedding what is stored: behind a running server, or on demand. Nothing waits for it, and no text is lost to it.

The model is asked outside of any transaction; what it answered is stored in small ones. Stopped anywhere, it goes on
with the messages that still lack a vector.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from orchestrator.semantic.calibration import VERSION, Calibration, calibrate, texts
from orchestrator.semantic.embedders import Embedder, Refused, Unavailable, Vectors
from orchestrator.semantic.meaning import Pause
from registry.domain import new_id, now
from registry.registry import Registry
from registry.search.meaning import pack
from registry.search.vectors import (
    EmbeddingModel,
    Unembedded,
    Vector,
    count_unembedded,
    find_model,
    forget_model,
    forget_other_models,
    keep_model,
    keep_vectors,
    newest_message,
    take_turn,
    unembedded,
)
from registry.storage.database import WriteTransaction

logger = logging.getLogger(__name__)

BATCH = 64
LONGEST_TEXT = 2000
"""So many characters say what a message is about; models of today take them."""
SHORTEST_TEXT = 200
"""A text that is refused is tried shorter, down to this."""
ANSWER_S = 60.0
"""A batch waits no longer for its vectors."""
EVERY_S = 5.0
"""How often a server looks for new messages."""
ALL_EVERY_S = 600.0
"""How often it looks through the old ones for texts that were corrected."""
TURN_S = 2 * ANSWER_S
"""A process that embeds is left alone for so long after it was last heard of."""

Progress = Callable[[int, int], None]
"""Told how many messages are embedded, of how many."""


class Embedding:
    """Embeds the messages of a registry that lack a vector."""

    def __init__(self, registry: Registry, embedder: Embedder, *, is_asked_for: bool = False) -> None:
        """`is_asked_for`: somebody waits for it, so it is its turn at any time."""
        self._registry, self._embedder, self._is_asked_for = registry, embedder, is_asked_for
        self._holder = new_id("exec")

    async def model(self) -> EmbeddingModel:
        """The model as it is known here, measured first where it is not; Unavailable if it does not answer."""
        name = self._embedder.name
        known = await self._registry.read(lambda tx: find_model(tx, name))
        if known and known.calibration == VERSION:
            return known
        return (await self.measured())[0]

    async def measured(self) -> tuple[EmbeddingModel, Calibration]:
        """The model, measured now."""
        vectors = await self._vectors(texts())
        if not all(map(len, vectors)):
            raise Unavailable(f"{self._embedder.name} refuses short texts")
        found = calibrate(vectors)
        kept = (self._embedder.name, len(vectors[0]), VERSION, found.background, found.spread)
        return await self._registry.write(lambda tx: keep_model(tx, *kept)), found

    async def step(self, model: EmbeddingModel, above: int = 0) -> int:
        """Embed the next messages, the newest first; how many they were, 0 if it is another process's turn.

        Raises Unavailable if the model does not answer.
        """
        batch = await self._registry.read(lambda tx: unembedded(tx, model, above, BATCH))
        if not batch or not await self._registry.write(lambda tx: self._take_turn(tx, model)):
            return 0
        given = [one.text.strip()[:LONGEST_TEXT] for one in batch]
        vectors = await self._vectors(given)
        if sum(map(bool, given)) > 1 and not any(map(len, vectors)):
            raise Unavailable(f"{self._embedder.name} refuses every text")
        kept = [_kept(one, vector, model) for one, vector in zip(batch, vectors, strict=True)]
        await self._registry.write(lambda tx: keep_vectors(tx, model, kept))
        return len(kept)

    async def end_turn(self, model: EmbeddingModel) -> None:
        """Let another process go on at once."""
        await self._registry.write(lambda tx: self._take_turn(tx, model, 0.0))

    def _take_turn(self, tx: WriteTransaction, model: EmbeddingModel, for_s: float = TURN_S) -> bool:
        until = now() + timedelta(seconds=for_s)
        return take_turn(tx, model, self._holder, until, even_if_taken=self._is_asked_for)

    async def _vectors(self, given: Sequence[str]) -> list[Sequence[float]]:
        """A vector for each text; an empty one for a text that the model does not take in any length."""
        wanted = [text for text in given if text]
        if not wanted:
            return [()] * len(given)
        try:
            found = iter(await self._answer(wanted))
        except Refused:
            found = iter(await self._piecemeal(wanted))
        return [next(found) if text else () for text in given]

    async def _piecemeal(self, given: Sequence[str]) -> list[Sequence[float]]:
        """One of the texts is too long for the model: look for it."""
        if len(given) > 1:
            middle = len(given) // 2
            return [*await self._vectors(given[:middle]), *await self._vectors(given[middle:])]
        if len(given[0]) <= SHORTEST_TEXT:
            return [()]
        return await self._vectors([given[0][: len(given[0]) // 2]])

    async def _answer(self, given: Sequence[str]) -> Vectors:
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._embedder.embed(given)
        except TimeoutError as exc:
            raise Unavailable(f"{self._embedder.name} did not answer within {ANSWER_S:g} s") from exc


def _kept(one: Unembedded, vector: Sequence[float], model: EmbeddingModel) -> Vector:
    if len(vector) not in (0, model.dimensions):
        given = f"{model.name} answers with {len(vector)} dimensions, its vectors here have {model.dimensions}"
        raise Unavailable(f"{given}: ctxr db embed")
    return Vector(one.number, one.digest, pack(vector) if len(vector) else b"")


async def embed_all(
    registry: Registry, embedder: Embedder, on_progress: Progress, *, everything: bool = False
) -> tuple[int, Calibration]:
    """Embed every message that lacks a vector, or every one; how many they were, and how well the model tells texts.

    The vectors of other models are thrown away at the end. Raises Unavailable if the model does not answer.
    """
    work = Embedding(registry, embedder, is_asked_for=True)
    model, found = await work.measured()
    if everything:  # only now, when the model is known to answer
        await registry.write(lambda tx: forget_model(tx, embedder.name))
        model, found = await work.measured()
    total = await registry.read(lambda tx: count_unembedded(tx, model))
    done = 0
    try:
        while count := await work.step(model):
            done += count
            on_progress(min(done, total), total)
    finally:
        await work.end_turn(model)
    await registry.write(lambda tx: forget_other_models(tx, embedder.name))
    return done, found


async def keep_embedding(registry: Registry, embedder: Embedder) -> None:
    """Embed what comes, for as long as nobody cancels it."""
    work = Embedding(registry, embedder)
    pause, above, all_at = Pause(), 0, 0.0
    clock = asyncio.get_running_loop().time
    while True:
        wait_s = EVERY_S
        try:
            if clock() >= all_at:
                above, all_at = 0, clock() + ALL_EVERY_S
            model, newest = await work.model(), await registry.read(newest_message)
            while await work.step(model, above):
                pause.end()
            if not await registry.read(partial(unembedded, model=model, above=above, limit=1)):
                above = newest
        except Unavailable as exc:
            wait_s = pause.begin()
            logger.warning("Messages are not embedded for %.0f s: %s", wait_s, exc)
        except Exception:  # the server goes on, whatever is wrong here
            wait_s = pause.begin()
            logger.exception("Messages are not embedded for %.0f s", wait_s)
        await asyncio.sleep(wait_s)
