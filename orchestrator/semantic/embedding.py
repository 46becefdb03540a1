"""Embed stored messages: in the background of a server, or on demand.

The model is called outside of transactions; its vectors are stored in small ones. After an interruption it continues
with the messages that still lack a vector.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from importlib.resources import files
from math import inf
from statistics import fmean, pstdev

from orchestrator.semantic.embedders import Embedder, TextRefused, Unavailable, Vectors, dimension_mismatch
from orchestrator.semantic.meaning import Backoff
from registry.domain import new_id, now
from registry.errors import RegistryError
from registry.registry import Registry
from registry.search.meaning import pack, similarity
from registry.search.vectors import (
    EmbeddingModel,
    Vector,
    claim_embedding,
    count_unembedded,
    delete_other_models,
    find_model,
    list_unembedded,
    newest_message_number,
    save_model,
    save_vectors,
)
from registry.storage.conversations.messages import MessageRow
from registry.storage.database import WriteTransaction

logger = logging.getLogger(__name__)

READ_AHEAD = 64  # messages read at once
INTERVAL_S = 1.0  # seconds between two checks for new messages while operations run

Progress = Callable[[int, int], None]  # called with the number of embedded messages, and the number of all


class Embedding:
    """Embeds the messages of a registry that lack a vector."""

    def __init__(self, registry: Registry, embedder: Embedder, *, is_on_demand: bool = False) -> None:
        """`is_on_demand`: do not wait for another process that embeds."""
        self._registry, self._embedder, self._is_on_demand = registry, embedder, is_on_demand
        self._holder = new_id("exec")

    async def model(self) -> EmbeddingModel:
        """Return the model's record; measure the model if there is none. Raises Unavailable."""
        name = self._embedder.name
        known = await self._registry.read(lambda tx: find_model(tx, name))
        if known and known.calibration == CALIBRATION_VERSION:
            return known
        return await self.measure()

    async def measure(self) -> EmbeddingModel:
        """Measure the model, and store and return its record."""
        requests, messages = calibration_texts()
        queries, vectors = await self._with_timeout(self._embedder.queries, requests), await self._vectors(messages)
        if not all(map(len, vectors)):
            raise Unavailable(f"{self._embedder.name} refuses short texts")
        record = (self._embedder.name, len(vectors[0]), CALIBRATION_VERSION, *background_similarity(queries, vectors))
        return await self._registry.write(lambda tx: save_model(tx, *record))

    async def step(self, model: EmbeddingModel, above: int = 0) -> int:
        """Embed the next messages, newest first, and return how many; 0 while another process embeds.

        Raises Unavailable.
        """
        found = await self._registry.read(lambda tx: list_unembedded(tx, model, above, READ_AHEAD))
        if not found or not await self._registry.write(lambda tx: self._take_turn(tx, model)):
            return 0
        batch = self._first_batch(found)
        passage_texts = [text for _, parts in batch for text in parts]
        vectors = iter(await self._vectors(passage_texts))
        vectors_to_save = [_vector_for(one, [next(vectors) for _ in parts], model) for one, parts in batch]
        await self._registry.write(lambda tx: save_vectors(tx, model, vectors_to_save))
        return len(vectors_to_save)

    def _first_batch(self, found: Sequence[MessageRow]) -> list[tuple[MessageRow, list[str]]]:
        """Return as many messages as fit into one request, at least one, each with its passages."""
        batch: list[tuple[MessageRow, list[str]]] = []
        room = 8_000  # characters of the passages embedded at once
        for one in found:
            parts = [f"{one.title}\n{part}" if one.title else part for part in passages(one.text)]
            room -= sum(map(len, parts))
            if batch and room < 0:
                break
            batch.append((one, parts))
        return batch

    async def end_turn(self, model: EmbeddingModel) -> None:
        """Release the claim, so that another process can embed."""
        await self._registry.write(lambda tx: self._take_turn(tx, model, 0.0))

    def _take_turn(self, tx: WriteTransaction, model: EmbeddingModel, for_s: float = 120.0) -> bool:
        """Claim the embedding for this process for some seconds; False if another process has it."""
        until = now() + timedelta(seconds=for_s)
        return claim_embedding(tx, model, self._holder, until, even_if_taken=self._is_on_demand)

    async def _vectors(self, given: Sequence[str]) -> list[Sequence[float]]:
        """Return a vector for each text; an empty one if the model refuses the text or times out."""
        if not given:
            return []
        try:
            return list(await self._with_timeout(self._embedder.passages, given))
        except TextRefused:
            is_too_long = len(given[0]) > 200
        except Unavailable:
            await self._check_answers()
            is_too_long = False
        if len(given) > 1:
            middle = len(given) // 2
            return [*await self._vectors(given[:middle]), *await self._vectors(given[middle:])]
        if is_too_long:
            return await self._vectors([given[0][: len(given[0]) // 2]])
        await self._check_answers()
        return [()]

    async def _check_answers(self) -> None:
        """Raise Unavailable if the model cannot embed a single word."""
        try:
            await self._with_timeout(self._embedder.passages, ["hello"], at_most_s=10.0)
        except TextRefused as exc:
            raise Unavailable(f"{self._embedder.name} refuses every text") from exc

    async def _with_timeout(
        self, embed: Callable[[Sequence[str]], Awaitable[Vectors]], given: Sequence[str], at_most_s: float = inf
    ) -> Vectors:
        if self._embedder.batch_timeout_s is None:
            return await embed(given)
        limit = min(self._embedder.batch_timeout_s, at_most_s)
        try:
            async with asyncio.timeout(limit):
                return await embed(given)
        except TimeoutError as exc:
            raise Unavailable(f"{self._embedder.name} did not answer within {limit:g} s") from exc


def _vector_for(one: MessageRow, vectors: Sequence[Sequence[float]], model: EmbeddingModel) -> Vector:
    for vector in vectors:
        if len(vector) not in (0, model.dimensions):
            raise Unavailable(dimension_mismatch(model.name, len(vector), model.dimensions))
    return Vector(one.number, bytes(one.digest), b"".join(pack(vector) for vector in vectors if len(vector)))


async def embed_all(registry: Registry, embedder: Embedder, on_progress: Progress) -> int:
    """Embed every message that lacks a vector, and return their number.

    The vectors of other models are deleted at the end. Raises Unavailable.
    """
    work = Embedding(registry, embedder, is_on_demand=True)
    model = await work.measure()
    total = await registry.read(lambda tx: count_unembedded(tx, model))
    done = 0
    try:
        while count := await work.step(model):
            done += count
            on_progress(min(done, total), total)
    finally:
        await work.end_turn(model)
    await registry.write(lambda tx: delete_other_models(tx, embedder.name))
    return done


async def keep_embedding(registry: Registry, embedder: Embedder, news: asyncio.Event) -> None:
    """Embed new messages until cancelled, within a second after `news` is set."""
    work = Embedding(registry, embedder)
    pause, above, scan_all_at = Backoff(), 0, 0.0
    clock = asyncio.get_running_loop().time
    while True:
        try:
            if clock() >= scan_all_at:
                above, scan_all_at = 0, clock() + 600.0  # old messages with a changed text
            model, newest = await work.model(), await registry.read(newest_message_number)
            while await work.step(model, above):
                pause.end()
            if not await registry.read(partial(list_unembedded, model=model, above=above, limit=1)):
                above = newest
        except (Unavailable, RegistryError) as exc:
            wait_s = pause.begin()
            logger.warning("Messages are not embedded for %.0f s: %s", wait_s, exc)
        except Exception:  # the server must continue
            wait_s = pause.begin()
            logger.exception("Messages are not embedded for %.0f s", wait_s)
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(60.0):  # another process may have stored something
                    await news.wait()
            wait_s = INTERVAL_S
        await asyncio.sleep(wait_s)
        news.clear()


MAX_PASSAGE_LENGTH = 1_000  # characters; small models read about as much of a text
MAX_PASSAGES = 8  # per message; the rest is only found by words
_ENDS = ("\n\n", "\n", ". ", "? ", "! ", "다 ", " ")


def passages(text: str) -> list[str]:
    """Return the passages of a message, each ending at a paragraph, line or sentence if possible."""
    rest, found = text.strip(), list[str]()
    while rest and len(found) < MAX_PASSAGES:
        end = _end(rest)
        found.append(rest[:end].strip())
        rest = rest[end:].strip()
    return found


def _end(text: str) -> int:
    if len(text) <= MAX_PASSAGE_LENGTH:
        return len(text)
    for mark in _ENDS:
        index = text.rfind(mark, MAX_PASSAGE_LENGTH // 2, MAX_PASSAGE_LENGTH)
        if index >= 0:
            return index + len(mark)
    return MAX_PASSAGE_LENGTH


CALIBRATION_VERSION = 2


def calibration_texts() -> tuple[list[str], list[str]]:
    """Return requests for measuring a model, and the matching message of each.

    Models differ in the similarity of unrelated texts. The measurement is used while a registry has too few messages to
    compare with.
    """
    lines = files(__package__).joinpath("calibration.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.partition(" | ") for line in lines if line and not line.startswith("#")]
    return [request for request, _, _ in pairs], [message for _, _, message in pairs]


def background_similarity(requests: Vectors, messages: Vectors) -> tuple[float, float]:
    """Return mean and standard deviation of the similarity of unrelated `calibration_texts()`, by their vectors."""
    unrelated = [similarity(one, other) for i, one in enumerate(requests) for j, other in enumerate(messages) if i != j]
    return fmean(unrelated), pstdev(unrelated)
