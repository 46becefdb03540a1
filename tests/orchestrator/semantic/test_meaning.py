"""Test search by meaning: it finds other words if an embedding model is configured, and no search depends on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import func, select

from orchestrator.operations.import_sessions import ImportRequest
from orchestrator.semantic import embedding
from orchestrator.semantic.embedders import Unavailable
from orchestrator.semantic.embedding import Embedding, embed_all
from orchestrator.semantic.endpoint import Endpoint
from orchestrator.semantic.meaning import FIRST_PAUSE_S, Meaning
from orchestrator.service import Orchestrator
from registry.domain import Message, Role, Session
from registry.registry import Registry
from registry.storage.records.executions import Execution
from registry.storage.tables import embedding_model, message_vector
from sources.base import FoundSession
from tests.embedding_server import EmbeddingServer
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio

FELINE = ["Our feline refuses its nutrition", "Try to warm it up a little"]
SLUGGISH = ["PostgreSQL got sluggish after the upgrade", "Run analyze on every table"]
KOREAN = ["고양이 사료 추천해 줘", "곡물이 없는 것이 좋습니다"]


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def four_conversations(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "pet", FELINE, day="2026-01-05", project="/home/me/pets")
    await log(orchestrator, "db", SLUGGISH, day="2026-02-05", source="claude")
    await log(orchestrator, "haustier", KOREAN, day="2026-03-05")
    await log(orchestrator, "noise", ["Paint the fence green", "Two coats, and let it dry"])


@pytest.fixture
async def registry(seeded: Seeded) -> AsyncIterator[Registry]:
    """Return a registry with four conversations and no vectors."""
    registry = Registry(await seeded(four_conversations))
    yield registry
    registry.close()


@pytest.fixture
async def orchestrator(
    registry: Registry, embedding_server: EmbeddingServer, clock: Clock
) -> AsyncIterator[Orchestrator]:
    """Return an orchestrator with an embedding model."""
    meaning = Meaning(registry, Endpoint(embedding_server.url, "toy"), clock)
    yield Orchestrator(registry, meaning=meaning)
    await meaning.close()


async def log(orchestrator: Orchestrator, channel: str, texts: list[str], day: str = "2026-01-01", **more: Any) -> Any:
    messages = [
        {"role": role, "text": text, "timestamp": f"{day}T12:00:0{second}Z"}
        for second, (role, text) in enumerate(zip(("user", "assistant"), texts, strict=False))
    ]
    request = {"operation": "save", "channel": channel, "messages": messages, "source": more.pop("source", "cursor")}
    answer = await orchestrator.run({**request, "metadata": more})
    assert answer["success"], answer
    return answer["stored_ids"]


def ignore(_done: int, _total: int) -> None:
    pass


async def embed(orchestrator: Orchestrator) -> int:
    assert orchestrator.meaning
    return await embed_all(orchestrator.registry, orchestrator.meaning.embedder, ignore)


async def found(orchestrator: Orchestrator, text: str, **query: Any) -> list[str]:
    answer = await orchestrator.run({"operation": "search_sessions", "query": {"text": text, **query}})
    assert answer["success"], answer
    return [session["channel"] for session in answer["sessions"]]


async def details_by_step(orchestrator: Orchestrator, text: str, **request: Any) -> dict[str, dict[str, Any]]:
    """Search, and return the recorded details by step."""
    runs: list[Execution] = []
    orchestrator.observers.append(runs.append)
    await orchestrator.run({"operation": "search_sessions", "query": {"text": text}, **request})
    return {step["node"]: step["detail"] for step in runs[-1].steps}


async def eventually(orchestrator: Orchestrator, text: str, expected: list[str]) -> None:
    async with asyncio.timeout(20):
        while True:
            if sorted(await found(orchestrator, text)) == expected:
                return
            await asyncio.sleep(0.01)


async def count_vectors(registry: Registry) -> int:
    return await registry.read(lambda tx: tx.execute(select(func.count()).select_from(message_vector)).scalar_one())


# -- finding


async def test_a_message_in_other_words_is_found_once_it_is_embedded(orchestrator: Orchestrator) -> None:
    assert await found(orchestrator, "cat food") == []
    assert await embed(orchestrator) == 8
    assert sorted(await found(orchestrator, "cat food")) == ["haustier", "pet"]
    assert await found(orchestrator, "느린 데이터베이스") == ["db"]


async def test_a_conversation_is_found_by_the_meaning_of_its_title_as_soon_as_it_has_one(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "titled", ["Which one?", "The second one"])
    await embed(orchestrator)
    assert "titled" not in await found(orchestrator, "feline nutrition")
    await log(orchestrator, "titled", ["Which one?"], title="고양이 사료")
    other = Registry(orchestrator.registry.engine.url.render_as_string(hide_password=False))
    elsewhere = Orchestrator(other, meaning=Meaning(other, orchestrator.meaning.embedder))  # type: ignore[union-attr]
    assert "pet" in await found(elsewhere, "cat food")  # with the vectors of before
    other.close()
    assert await embed(orchestrator) == 2
    assert "titled" in await found(orchestrator, "feline nutrition")


async def test_extract_delivers_the_turn_nearest_in_meaning(orchestrator: Orchestrator) -> None:
    await embed(orchestrator)
    answer = await orchestrator.run({"operation": "extract", "query": {"text": "slow database"}})
    assert answer["channel"] == "db"
    assert [message["text"] for message in answer["messages"]][: len(SLUGGISH)] == SLUGGISH
    inside = await orchestrator.run({"operation": "extract", "channel": "pet", "query": {"text": "cat food"}})
    assert [message["text"] for message in inside["messages"]][: len(FELINE)] == FELINE
    several = await orchestrator.run({"operation": "search", "query": {"text": "slow database"}})
    assert [message["text"] for message in several["messages"]][:1] == SLUGGISH[:1]


async def test_a_subject_that_nobody_spoke_of_is_not_found(orchestrator: Orchestrator) -> None:
    await embed(orchestrator)
    for text in ("sourdough bread recipe", "김치찌개 레시피", "holiday in Florence"):
        assert await found(orchestrator, text) == []
        answer = await orchestrator.run({"operation": "extract", "query": {"text": text}})
        assert answer["error"]["code"] == "NOT_FOUND", text


async def test_a_match_by_words_and_meaning_comes_first_and_the_record_says_why(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "both", ["The kitten wants other food", "Cats do"])
    await log(orchestrator, "words", ["We bought food for the whole garden party on Saturday evening", "Fine"])
    await embed(orchestrator)
    assert (await found(orchestrator, "cat food"))[0] == "both"
    steps = await details_by_step(orchestrator, "cat food")
    meaning = steps["cr_query"]["meaning"]
    assert (meaning["model"], meaning["vectors"], meaning["similar"]) == ("toy", 12, 3)
    assert 0.1 < meaning["least_similarity"] < 0.6
    first, *others = [verdict for verdict in steps["filter"]["verdicts"] if verdict["kept"]]
    assert first["coverage"] > 0
    only_similar = [verdict for verdict in others if verdict["coverage"] == 0 and "similarity" in verdict]
    assert only_similar
    assert all(verdict["score"] < first["score"] for verdict in only_similar)
    assert steps["filter"]["channels"][0]["channel"] == "both"


NARROWED: list[tuple[str, dict[str, Any], list[str]]] = [
    ("cat food", {"project": "/home/me/pets"}, ["pet"]),
    ("cat food", {"source": "claude"}, []),
    ("slow database", {"source": "claude"}, ["db"]),
    ("cat food", {"roles": ["assistant"]}, []),
    ("cat food", {"from": "2026-02-01T00:00:00Z"}, ["haustier"]),
    ("cat food", {"to": "2026-02-01T00:00:00Z"}, ["pet"]),
    ("cat food", {"exclude_session": "pet"}, ["haustier"]),
    ("cat food", {"tag": "loved"}, ["haustier"]),
    ("cat food tag:loved", {}, ["haustier"]),
    ("cat food -refuses", {}, ["haustier"]),
    ("cat food", {"limit": 1, "offset": 1}, ["haustier"]),
]


@pytest.mark.both_databases
async def test_filters_narrow_a_search_by_meaning(orchestrator: Orchestrator) -> None:
    tag = {"operation": "tag", "channel": "haustier", "query": {"tags": ["loved"]}}
    assert (await orchestrator.run(tag))["success"]
    await embed(orchestrator)
    for text, query, expected in NARROWED:
        assert await found(orchestrator, text, **query) == expected, (text, query)
    within = {"operation": "search_sessions", "channel": "pet", "query": {"text": "cat food"}}
    assert [session["channel"] for session in (await orchestrator.run(within))["sessions"]] == ["pet"]


@pytest.mark.parametrize("soft", [True, False])
async def test_a_deleted_message_is_not_found_by_meaning(orchestrator: Orchestrator, soft: bool) -> None:
    [question, _] = await log(orchestrator, "second", ["A kitten eats kibble", "Yes"])
    await embed(orchestrator)
    other = Registry(orchestrator.registry.engine.url.render_as_string(hide_password=False))
    elsewhere = Orchestrator(other, meaning=Meaning(other, orchestrator.meaning.embedder))  # type: ignore[union-attr]
    everything = ["second", "haustier", "pet"]
    assert sorted(await found(elsewhere, "cat food")) == sorted(everything)
    before = await count_vectors(other)
    await orchestrator.run({"operation": "delete", "query": {"id": question, "soft": soft}})
    assert "second" not in await found(orchestrator, "cat food")
    assert "second" not in await found(elsewhere, "cat food")
    assert await count_vectors(other) == (before if soft else before - 1)
    if soft:
        await orchestrator.run({"operation": "restore", "query": {"id": question}})
        assert "second" in await found(elsewhere, "cat food")
    other.close()


async def test_another_process_finds_messages_embedded_since_its_last_search(orchestrator: Orchestrator) -> None:
    await embed(orchestrator)
    other = Registry(orchestrator.registry.engine.url.render_as_string(hide_password=False))
    elsewhere = Orchestrator(other, meaning=Meaning(other, orchestrator.meaning.embedder))  # type: ignore[union-attr]
    assert await found(elsewhere, "vacation") == []
    await log(orchestrator, "trip", ["holiday plans for May", "none"])
    await embed(orchestrator)
    assert await found(elsewhere, "vacation") == ["trip"]
    other.close()


# -- a model that fails


async def test_if_the_endpoint_dies_search_uses_words_and_says_so(
    orchestrator: Orchestrator, embedding_server: EmbeddingServer, clock: Clock
) -> None:
    await embed(orchestrator)
    embedding_server.status = 500
    assert await found(orchestrator, "feline") == ["pet"]
    asked = len(embedding_server.received)
    assert await found(orchestrator, "cat food") == []
    note = (await details_by_step(orchestrator, "cat food"))["cr_query"]["meaning"]["not_asked"]
    assert "500" in note
    assert f"not asked again for {FIRST_PAUSE_S:.0f} s" in note
    assert len(embedding_server.received) == asked
    clock.at += FIRST_PAUSE_S
    await found(orchestrator, "cat food")
    clock.at += FIRST_PAUSE_S
    await found(orchestrator, "cat food")
    assert len(embedding_server.received) == asked + 1  # the second pause is longer
    embedding_server.status = 200
    clock.at += FIRST_PAUSE_S
    assert sorted(await found(orchestrator, "cat food")) == ["haustier", "pet"]


async def test_a_slow_endpoint_does_not_delay_a_search(
    orchestrator: Orchestrator, embedding_server: EmbeddingServer
) -> None:
    await embed(orchestrator)
    assert orchestrator.meaning
    orchestrator.meaning.embedder.query_timeout_s = 0.05
    embedding_server.may_answer.clear()
    assert await found(orchestrator, "feline") == ["pet"]
    note = (await details_by_step(orchestrator, "cat food"))["cr_query"]["meaning"]["not_asked"]
    assert note.startswith("toy did not answer within 0.05 s")


async def test_an_unreachable_endpoint_does_not_delay_a_search(orchestrator: Orchestrator) -> None:
    await embed(orchestrator)
    nowhere = Meaning(orchestrator.registry, Endpoint("http://127.0.0.1:9/v1", "toy"))
    assert await found(Orchestrator(orchestrator.registry, meaning=nowhere), "feline") == ["pet"]
    await nowhere.close()


async def test_a_search_before_anything_is_embedded_asks_nobody(
    orchestrator: Orchestrator, embedding_server: EmbeddingServer
) -> None:
    assert await found(orchestrator, "feline") == ["pet"]
    note = (await details_by_step(orchestrator, "feline"))["cr_query"]["meaning"]["not_asked"]
    assert note.startswith("nothing is embedded by toy yet")
    assert embedding_server.received == []


async def test_vectors_of_another_length_are_not_compared_until_everything_is_embedded_again(
    orchestrator: Orchestrator, embedding_server: EmbeddingServer
) -> None:
    await embed(orchestrator)
    embedding_server.dimensions = 128
    assert await found(orchestrator, "cat food") == []
    note = (await details_by_step(orchestrator, "cat food"))["cr_query"]["meaning"]["not_asked"]
    assert note == "toy answers with 128 dimensions, its vectors here have 256: ctxr db embed"
    await log(orchestrator, "new", ["The kitten", "Its meals are food"])
    assert orchestrator.meaning
    work = Embedding(orchestrator.registry, orchestrator.meaning.embedder)
    with pytest.raises(Unavailable, match="128 dimensions"):
        await work.step(await work.model())
    assert await embed(orchestrator) == 10
    assert sorted(await found(orchestrator, "cat food")) == ["haustier", "new", "pet"]


INVALID = [
    b"not JSON",
    b"[]",
    b"{}",
    b'{"data": null}',
    b'{"data": [{"index": 0}]}',
    b'{"data": [{"index": 7, "embedding": [1.0]}]}',
    b'{"data": [{"index": 0, "embedding": []}]}',
    b'{"data": [{"index": 0, "embedding": ["x"]}]}',
    b'{"data": [{"index": 0, "embedding": "AAAA"}]}',
    b'{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}',
    b'{"data": [{"index": 0, "embedding": [Infinity]}]}',
    b'{"data": [{"index": [], "embedding": [1.0]}]}',
]


async def test_an_invalid_vector_counts_as_no_answer(embedding_server: EmbeddingServer) -> None:
    endpoint = Endpoint(embedding_server.url, "toy", "secret")
    for embedding_server.body in INVALID:
        with pytest.raises(Unavailable):
            await endpoint.passages(["a"])
    assert embedding_server.keys == ["Bearer secret"] * len(INVALID)
    await endpoint.close()


# -- embedding


async def test_an_interrupted_embedding_continues_where_it_stopped(
    orchestrator: Orchestrator, embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "READ_AHEAD", 2)
    embedding_server.fails_after = 4  # one to measure the model, two batches
    progress: list[tuple[int, int]] = []
    assert orchestrator.meaning
    embedder = orchestrator.meaning.embedder
    with pytest.raises(Unavailable, match="503"):
        await embed_all(orchestrator.registry, embedder, lambda *seen: progress.append(seen))
    assert progress == [(2, 8), (4, 8)]
    embedding_server.fails_after = 1000
    embedding_server.received.clear()
    await embed_all(orchestrator.registry, embedder, lambda *seen: progress.append(seen))
    assert progress == [(2, 8), (4, 8), (2, 4), (4, 4)]
    assert [text for batch in embedding_server.received[2:] for text in batch] == [
        *(SLUGGISH[::-1]),
        *(FELINE[::-1]),
    ]
    assert await embed(orchestrator) == 0


async def test_a_write_does_not_wait_for_the_model(
    orchestrator: Orchestrator, embedding_server: EmbeddingServer
) -> None:
    await embed(orchestrator)
    await log(orchestrator, "more", ["vacation", "photos"])
    assert orchestrator.meaning
    orchestrator.meaning.embedder.query_timeout_s = 0.05
    embedding_server.may_answer.clear()
    embedding_server.has_request.clear()
    async with orchestrator.meaning.embedding():
        await asyncio.to_thread(embedding_server.has_request.wait, 10)
        async with asyncio.timeout(5):
            await log(orchestrator, "meanwhile", ["stored", "at once"])
        assert await found(orchestrator, "meanwhile stored") == ["meanwhile"]
        assert not embedding_server.may_answer.is_set()


async def test_a_running_server_embeds_new_messages(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "INTERVAL_S", 0.01)
    assert orchestrator.meaning
    async with orchestrator.meaning.embedding():
        await eventually(orchestrator, "cat food", ["haustier", "pet"])
        await log(orchestrator, "trip", ["our vacation plans so far", "in Rome"])
        await eventually(orchestrator, "holiday", ["trip"])


async def test_a_server_outlives_an_absent_model_and_embeds_when_it_is_back(
    orchestrator: Orchestrator,
    embedding_server: EmbeddingServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(embedding, "INTERVAL_S", 0.01)
    monkeypatch.setattr("orchestrator.semantic.meaning.FIRST_PAUSE_S", 0.01)
    embedding_server.status = 500
    assert orchestrator.meaning
    async with orchestrator.meaning.embedding():
        async with asyncio.timeout(20):
            while True:
                await asyncio.sleep(0.01)
                if "Messages are not embedded" in caplog.text:
                    break
        embedding_server.status = 200
        await eventually(orchestrator, "cat food", ["haustier", "pet"])


@pytest.mark.both_databases
async def test_one_process_embeds_at_a_time_except_on_demand(orchestrator: Orchestrator) -> None:
    assert orchestrator.meaning
    embedder, registry = orchestrator.meaning.embedder, orchestrator.registry
    first, second = Embedding(registry, embedder), Embedding(registry, embedder)
    model = await first.model()
    assert await first.step(model) == 8
    await log(orchestrator, "more", ["vacation", "photos"])
    assert await second.step(model) == 0
    assert await Embedding(registry, embedder, is_on_demand=True).step(model) == 2


@pytest.mark.both_databases
async def test_another_model_embeds_everything_anew_and_deletes_the_old_vectors(orchestrator: Orchestrator) -> None:
    await embed(orchestrator)
    assert orchestrator.meaning
    orchestrator.meaning.embedder.name = "other toy"
    assert await found(orchestrator, "cat food") == []
    assert await embed(orchestrator) == 8
    assert sorted(await found(orchestrator, "cat food")) == ["haustier", "pet"]
    assert await count_vectors(orchestrator.registry) == 8
    models = await orchestrator.registry.read(lambda tx: tx.execute(select(embedding_model.c.name)).scalars().all())
    assert models == ["other toy"]


async def test_a_running_server_embeds_everything_anew_for_another_model(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "INTERVAL_S", 0.01)
    await embed(orchestrator)
    assert orchestrator.meaning
    orchestrator.meaning.embedder.name = "other toy"
    async with orchestrator.meaning.embedding():
        await eventually(orchestrator, "cat food", ["haustier", "pet"])


async def test_a_corrected_text_is_embedded_again(orchestrator: Orchestrator) -> None:
    async def say(text: str) -> None:
        said = Message(Role.USER, text, more={"native_id": "m1"})
        found = FoundSession("live", text, Session("live", (said,)))
        saved = await orchestrator.run(ImportRequest(source="cursor", store="/s", found=[found]))
        assert saved["success"], saved

    named = {"channel": "live", "source": "cursor", "metadata": {"session_id": "live"}}
    await orchestrator.run({"operation": "save", "messages": [{"role": "user", "text": "A kitten, a cat"}], **named})
    await say("A kitten, a cat")
    await embed(orchestrator)
    assert "live" in await found(orchestrator, "cat")
    await say("A vacation, a holiday")
    assert await embed(orchestrator) == 1
    assert await found(orchestrator, "holiday") == ["live"]
    assert "live" not in await found(orchestrator, "cat")


async def test_a_text_too_long_for_the_model_is_embedded_by_its_beginning(
    orchestrator: Orchestrator, embedding_server: EmbeddingServer
) -> None:
    embedding_server.max_characters = 500
    await log(orchestrator, "long", ["kitten kibble " + "cat food " * 200])
    assert await embed(orchestrator) == 9  # messages without words get no vector
    assert "long" in await found(orchestrator, "feline meals")
    embedding_server.received.clear()
    assert await embed(orchestrator) == 0
    assert len(embedding_server.received) == 2  # one to measure the model; a refused text is not sent again


@pytest.mark.both_databases
async def test_a_model_that_refuses_everything_marks_nothing_as_done(
    orchestrator: Orchestrator, embedding_server: EmbeddingServer
) -> None:
    await embed(orchestrator)
    await log(orchestrator, "more", ["vacation", "photos"])
    assert orchestrator.meaning
    work = Embedding(orchestrator.registry, orchestrator.meaning.embedder)
    model = await work.model()
    embedding_server.max_characters = 1
    with pytest.raises(Unavailable, match="refuses"):
        await Embedding(orchestrator.registry, orchestrator.meaning.embedder, is_on_demand=True).step(model)
    embedding_server.max_characters = 1000
    assert await embed(orchestrator) == 2
