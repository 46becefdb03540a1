"""Search by embedding vectors: which messages are compared, and which are similar."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest

from registry.registry import Registry
from registry.search import meaning
from registry.search.meaning import pack, similar_messages, similarity
from registry.search.scope import Scope
from registry.search.vectors import EmbeddingModel, Vector, list_unembedded, save_model, save_vectors
from registry.text.ranking.scores import Candidate
from registry.text.ranking.similar import SimilarMessages

pytestmark = pytest.mark.anyio

DIMENSIONS = 16


def direction(number: int) -> list[float]:
    chance = random.Random(number)
    return [chance.gauss(0, 1) for _ in range(DIMENSIONS)]


@pytest.fixture
async def registry(database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Registry]:
    """A registry with an empty cache of signs."""
    monkeypatch.setattr(meaning, "_sign_cache", meaning._SignCache())
    registry = Registry(database_url)
    yield registry
    registry.close()


async def model_of(registry: Registry, background: float = 0.0, spread: float = 0.2) -> EmbeddingModel:
    return await registry.write(lambda tx: save_model(tx, "toy", DIMENSIONS, 1, background, spread))


async def embed(registry: Registry, model: EmbeddingModel) -> None:
    """Store a vector for every message, random with its number as the seed."""
    unembedded = await registry.read(lambda tx: list_unembedded(tx, model, 0, 10_000))
    vectors = [Vector(one.number, one.digest, pack(direction(one.number))) for one in unembedded]
    await registry.write(lambda tx: save_vectors(tx, model, vectors))


async def similar_to(
    registry: Registry, model: EmbeddingModel, vector: list[float], scope: Scope | None = None
) -> list[int]:
    return list((await compared(registry, model, vector, scope)).similarities)


async def compared(
    registry: Registry, model: EmbeddingModel, vector: list[float], scope: Scope | None = None
) -> SimilarMessages:
    def work(tx: object) -> SimilarMessages:
        return similar_messages(tx, scope or Scope(), model, vector)  # type: ignore[arg-type]

    return await registry.read(work)


async def say(registry: Registry, channel: str, count: int) -> None:
    messages = [{"role": "user", "text": f"said {i} of what the harbour master wrote"} for i in range(count)]
    await registry.save_conversation(channel, messages, "cursor")


async def test_every_message_is_most_similar_to_itself_with_one_byte_per_dimension(registry: Registry) -> None:
    await say(registry, "c", 300)
    model = await model_of(registry)
    await embed(registry, model)
    for number in (1, 150, 300):
        assert (await similar_to(registry, model, direction(number)))[0] == number
        assert (await similar_to(registry, model, direction(number), Scope(channel_number=1)))[0] == number


@pytest.mark.both_databases
async def test_the_question_of_an_extract_call_is_not_similar_to_anything(registry: Registry) -> None:
    question = {"role": "user", "text": "continue that one about the harbour master's invoice"}
    await registry.save_conversation("c", [question], "cursor")
    model = await model_of(registry, background=-2.0, spread=0.1)
    await embed(registry, model)
    assert await similar_to(registry, model, direction(1)) == [1]
    answer = {"role": "tool", "text": '{"ok":true,"tool":"extract","result":{}}'}
    await registry.save_conversation("c", [question, answer], "cursor")
    assert await similar_to(registry, model, direction(1)) == []
    await registry.save_conversation("d", [question, answer], "cursor")
    assert await registry.read(lambda tx: list_unembedded(tx, model, 0, 10)) == []


async def test_nothing_is_similar_while_many_messages_are_not_embedded(registry: Registry) -> None:
    await say(registry, "c", 100)
    model = await model_of(registry)
    await embed(registry, model)
    await say(registry, "new", 5)
    assert await similar_to(registry, model, direction(1)) != []
    await say(registry, "imported", 50)
    found = await compared(registry, model, direction(1))
    assert (found.similarities, found.note) == ({}, "the messages are still being embedded")
    await embed(registry, model)
    assert (await similar_to(registry, model, direction(1)))[0] == 1


async def test_vectors_saved_one_by_one_are_found_like_those_saved_at_once(registry: Registry) -> None:
    model = await model_of(registry)
    for i in range(12):
        await say(registry, f"c{i}", 1)
        await embed(registry, model)
        assert (await similar_to(registry, model, direction(i + 1)))[0] == i + 1
    assert (await similar_to(registry, model, direction(1)))[0] == 1


@pytest.mark.both_databases
async def test_many_vectors_are_preselected_by_their_signs(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, few in {
        "FULLY_COMPARED": 5,
        "FIRST_BATCH": 5,
        "SAMPLE": 20,
        "READ_BATCH": 7,
        "SMALL_SCOPE_VECTORS": 3,
    }.items():
        monkeypatch.setattr(meaning, name, few)
    await say(registry, "c", 60)
    model = await model_of(registry)
    await embed(registry, model)
    await say(registry, "d", 6)
    await embed(registry, model)
    for number in (1, 30, 60, 66):
        found = await similar_to(registry, model, direction(number))
        assert found[0] == number
        assert len(found) <= 5
    assert (await similar_to(registry, model, direction(1), Scope(channel_number=2)))[0] > 60


@pytest.mark.both_databases
async def test_at_most_a_hundred_are_similar(registry: Registry) -> None:
    await say(registry, "c", 500)
    model = await model_of(registry, background=-2.0, spread=0.1)
    await embed(registry, model)
    assert len(await similar_to(registry, model, direction(1))) == 100
    assert len(await similar_to(registry, model, direction(1), Scope(sources=("cursor",)))) == 100
    assert await similar_to(registry, model, direction(1), Scope(sources=("claude",))) == []


async def test_only_messages_closer_than_unrelated_texts_are_similar(registry: Registry) -> None:
    await say(registry, "c", 50)
    model = await model_of(registry, spread=0.2)
    await embed(registry, model)
    assert (await compared(registry, model, direction(1))).hits == {1}
    assert (await compared(registry, model, direction(1000))).hits == set()


async def test_vectors_of_a_deleted_model_are_dropped(registry: Registry) -> None:
    await say(registry, "c", 3)
    model = await model_of(registry)
    await registry.write(lambda tx: save_model(tx, "toy", DIMENSIONS + 1, 1, 0.0, 0.1))
    unembedded = await registry.read(lambda tx: list_unembedded(tx, model, 0, 10))
    vectors = [Vector(one.number, one.digest, pack(direction(one.number))) for one in unembedded]
    await registry.write(lambda tx: save_vectors(tx, model, vectors))
    assert await similar_to(registry, model, direction(1)) == []


def test_packing_keeps_the_direction() -> None:
    for number in range(50):
        packed = [float(value - 256 if value > 127 else value) for value in pack(direction(number))]
        assert similarity(packed, direction(number)) > 0.9995
    assert pack([0.0] * 4) == b""
    assert similarity([0.0], [1.0]) == 0.0


def test_similarity_adds_to_a_score_by_its_distance_from_unrelated_texts() -> None:
    similar = SimilarMessages(similarities={1: 0.9, 2: 0.4, 3: 0.2}, background=0.2, deviation=0.1)
    assert [round(similar.share(number), 2) for number in (1, 2, 3, 4)] == [1.0, 0.5, 0.0, 0.0]


def test_a_channel_is_scored_by_its_three_most_similar_messages_or_fewer() -> None:
    of = {number: Candidate(number, 1 if number < 5 else 2, number, "user", 9, 0.0) for number in range(1, 7)}
    values = {5: 0.6, 1: 0.6, 2: 0.4, 6: 0.4, 3: 0.3, 4: 0.3}
    similar = SimilarMessages(similarities=values, candidates=of, background=0.2, deviation=0.1)
    assert similar.channel_shares({1: 9, 2: 2}) == pytest.approx({1: (1 + 0.5 + 0.25) / 3, 2: (1 + 0.5) / 2})
