"""Test embedding models: settings, prefixes, long, slow and failing texts, and the built-in models."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from orchestrator.semantic import embedding, models
from orchestrator.semantic.embedders import Embedder, Unavailable, Vectors
from orchestrator.semantic.embedding import MAX_PASSAGE_LENGTH, MAX_PASSAGES, embed_all, passages
from orchestrator.semantic.local import Loaded, LocalModel
from orchestrator.semantic.meaning import Meaning
from orchestrator.semantic.models import embedder_for, is_onnx_missing
from orchestrator.service import Orchestrator
from registry.registry import Registry
from registry.settings import Settings
from registry.storage.tables import message_vector
from tests.embedding_server import EmbeddingServer, toy_vector
from tests.tiny_onnx import make_tiny_onnx

pytestmark = pytest.mark.anyio


@pytest.fixture
def registry(sqlite_url: str) -> Registry:
    return Registry(sqlite_url)


def settings_of(**given: Any) -> Settings:
    return Settings(**{f"embed_{name}": value for name, value in given.items()})


def model_of(**given: Any) -> Embedder:
    embedder = embedder_for(settings_of(**given))
    assert embedder
    return embedder


async def log(orchestrator: Orchestrator, channel: str, *texts: str) -> None:
    messages = [{"role": "user", "text": text, "timestamp": "2026-01-01T12:00:00Z"} for text in texts]
    answer = await orchestrator.run({"operation": "save", "channel": channel, "source": "cursor", "messages": messages})
    assert answer["success"], answer


async def found(orchestrator: Orchestrator, text: str) -> list[str]:
    answer = await orchestrator.run({"operation": "search_sessions", "query": {"text": text}})
    return [session["channel"] for session in answer["sessions"]]


def ignore(_done: int, _total: int) -> None:
    pass


# -- prefixes


PREFIXES: list[tuple[dict[str, str], str, str]] = [
    ({"model": "multilingual-e5-base"}, "query: where?", "passage: there"),
    ({"model": "nomic-embed-text"}, "search_query: where?", "search_document: there"),
    ({"model": "bge-m3"}, "where?", "there"),
    ({"model": "bge-large-en"}, "Represent this sentence for searching relevant passages: where?", "there"),
    ({"model": "unheard-of"}, "where?", "there"),
    ({"model": "unheard-of", "query_prefix": "Q ", "passage_prefix": "P "}, "Q where?", "P there"),
    ({"model": "multilingual-e5-base", "query_prefix": "", "passage_prefix": ""}, "where?", "there"),
]


async def test_a_model_gets_its_prefixes_before_queries_and_passages(embedding_server: EmbeddingServer) -> None:
    for given, asked, said in PREFIXES:
        model = model_of(base_url=embedding_server.url, **given)
        await model.queries(["where?"])
        await model.passages(["there"])
        await model.close()
        assert embedding_server.received[-2:] == [[asked], [said]]


async def test_vectors_with_another_prefix_count_as_another_models(embedding_server: EmbeddingServer) -> None:
    names = {model_of(base_url=embedding_server.url, model="m", passage_prefix=prefix).name for prefix in ("", "P ")}
    assert len(names) == 2


async def test_a_question_is_embedded_as_given_and_in_its_other_wordings(
    registry: Registry, embedding_server: EmbeddingServer
) -> None:
    meaning = Meaning(registry, model_of(base_url=embedding_server.url, model="m"))
    orchestrator = Orchestrator(registry, meaning=meaning)
    await log(orchestrator, "pet", "The kitten wants kibble")
    await embed_all(registry, meaning.embedder, ignore)
    query = {"text": "Where did we talk about what the cat eats?", "also": ["cat food", "고양이 사료"]}
    answer = await orchestrator.run({"operation": "extract", "query": query})
    assert answer["channel"] == "pet"
    assert embedding_server.received[-1] == [query["text"], *query["also"]]
    await meaning.close()


# -- settings


@pytest.mark.parametrize("setting", ["off", ""])
async def test_without_a_model_there_is_no_embedder(setting: str) -> None:
    assert embedder_for(settings_of(model=setting)) is None


async def test_a_model_file_with_another_digest_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "SHA256", "0" * 64)
    model = model_of(model="built-in")
    with pytest.raises(Unavailable, match="not the file that is known"):
        await model.queries(["hello"])


def test_only_an_onnx_model_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "find_spec", lambda package: None if package == "onnxruntime" else find_spec(package))
    assert is_onnx_missing(Settings(embed_model="/models/mine"))
    assert not is_onnx_missing(Settings(embed_model="built-in"))


async def test_the_built_in_model_finds_messages_in_another_language(registry: Registry) -> None:
    meaning = Meaning(registry, model_of(model="built-in"))
    orchestrator = Orchestrator(registry, meaning=meaning)
    await log(orchestrator, "login", "세션 쿠키가 만료되어 사용자가 로그인할 수 없습니다")
    await log(orchestrator, "bread", "밀가루와 물을 섞어 하룻밤 두면 빵이 잘 부풉니다")
    await log(orchestrator, "trip", "We take the train to Rome in August")
    await embed_all(registry, meaning.embedder, ignore)
    assert (await found(orchestrator, "how do I let sourdough bread rise overnight?"))[:1] == ["bread"]
    assert (await found(orchestrator, "8월에 로마로 가는 기차 여행"))[:1] == ["trip"]
    assert await found(orchestrator, "quantum chromodynamics") == []
    await log(orchestrator, "thanks", "ok", "감사")
    await embed_all(registry, meaning.embedder, ignore)
    assert await found(orchestrator, "zzzqqq") == [], 'the model embeds random letters like "thanks"'
    await meaning.close()


@pytest.mark.parametrize("pools", [False, True])
async def test_a_folder_with_any_onnx_model_is_loaded(registry: Registry, tmp_path: Path, pools: bool) -> None:
    folder = make_tiny_onnx(tmp_path / "tiny", pools=pools)
    meaning = Meaning(registry, model_of(model=str(folder)))
    orchestrator = Orchestrator(registry, meaning=meaning)
    await log(orchestrator, "pet", "kitten kibble, kitten kibble, now")
    await log(orchestrator, "fence", "paint the fence green")
    await embed_all(registry, meaning.embedder, ignore)
    assert await found(orchestrator, "cat food") == ["pet"]
    await meaning.close()


# -- long, slow and failing texts


def test_a_long_message_is_split_at_paragraphs_lines_or_sentences() -> None:
    text = "\n\n".join(f"{number}. " + "word " * 60 for number in range(30))
    parts = passages(text)
    assert len(parts) == MAX_PASSAGES
    assert all(len(part) <= MAX_PASSAGE_LENGTH and part[0].isdigit() for part in parts)
    assert passages("short") == ["short"]
    assert passages("  ") == []
    assert list(map(len, passages("x" * 2500))) == [1000, 1000, 500]


class StallingModel:
    """A model in this process that never finishes some texts, or too many at once."""

    name, cost, query_timeout_s = "moody", "", 5.0
    batch_timeout_s: float | None = None

    def __init__(self, poison: str = "poison", most: int = 10_000) -> None:
        self.poison, self.most = poison, most
        self.asked: list[Sequence[str]] = []
        self.loaded = asyncio.Event()
        self.loaded.set()

    async def warm_up(self) -> None:
        await self.loaded.wait()

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return [toy_vector(text) for text in texts]

    async def passages(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(texts)
        if any(self.poison in text for text in texts) or sum(map(len, texts)) > self.most:
            raise Unavailable("too slow")  # as if a time limit had passed
        return [toy_vector(text) for text in texts]

    async def close(self) -> None:
        pass


@pytest.fixture
def stalling_model(registry: Registry) -> tuple[Orchestrator, StallingModel]:
    model = StallingModel()
    return Orchestrator(registry, meaning=Meaning(registry, model)), model


async def test_the_best_passage_of_a_long_message_counts(
    stalling_model: tuple[Orchestrator, StallingModel], registry: Registry
) -> None:
    orchestrator, model = stalling_model
    others = " ".join(f"paint{number} fence{number} green{number}." for number in range(100))
    await log(orchestrator, "long", f"{others[:990]}\n\nAnd our kitten wants kibble.")
    await log(orchestrator, "noise", others)
    await embed_all(registry, model, ignore)
    assert (await found(orchestrator, "cat food"))[:1] == ["long"]


async def test_a_text_that_a_model_never_finishes_delays_no_other(
    stalling_model: tuple[Orchestrator, StallingModel], registry: Registry
) -> None:
    orchestrator, model = stalling_model
    await log(orchestrator, "c", *(f"kitten {number}" for number in range(6)), "poison", "kibble")
    assert await embed_all(registry, model, ignore) == 8
    assert await embed_all(registry, model, ignore) == 0
    rows = await registry.read(lambda tx: tx.execute(select(message_vector.c.vector)).scalars().all())
    assert [len(row) for row in rows].count(0) == 1


async def test_a_slow_model_embeds_everything_in_smaller_batches(
    stalling_model: tuple[Orchestrator, StallingModel], registry: Registry
) -> None:
    orchestrator, model = stalling_model
    model.most = 3000
    await log(orchestrator, "c", *(f"{number} " + "kitten " * 100 for number in range(40)))
    assert await embed_all(registry, model, ignore) == 40


async def test_a_model_in_this_process_may_take_as_long_as_a_busy_machine_needs(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, late = asyncio.get_running_loop(), [0.0]
    real_time = loop.time
    monkeypatch.setattr(loop, "time", lambda: real_time() + late[0])

    def an_hour_later(given: Sequence[str]) -> Vectors:
        late[0] += 3600
        loop.call_soon_threadsafe(bool)  # runs everything due before this ends
        return [toy_vector(text) for text in given]

    model = LocalModel("busy", lambda: Loaded(an_hour_later, an_hour_later))
    await log(Orchestrator(registry), "c", "kitten", "kibble")
    assert await embed_all(registry, model, ignore) == 2
    await model.close()


async def test_an_absent_model_marks_nothing_as_done(
    stalling_model: tuple[Orchestrator, StallingModel], registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    orchestrator, model = stalling_model
    await log(orchestrator, "c", "kitten", "kibble")
    await embedding.Embedding(registry, model).model()
    model.most = 0
    work = embedding.Embedding(registry, model)
    with pytest.raises(Unavailable):
        await work.step(await work.model())
    model.most = 1000
    assert await embed_all(registry, model, ignore) == 2


async def test_a_question_asked_while_the_model_loads_is_answered_by_words(
    stalling_model: tuple[Orchestrator, StallingModel], registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    orchestrator, model = stalling_model
    await log(orchestrator, "pet", "Our kitten wants kibble")
    await embed_all(registry, model, ignore)
    monkeypatch.setattr("orchestrator.semantic.meaning.MAX_WARM_UP_WAIT_S", 0.01)
    model.loaded.clear()
    assert orchestrator.meaning
    async with orchestrator.meaning.embedding():
        await asyncio.sleep(0)
        assert await found(orchestrator, "kibble") == ["pet"]
        assert await found(orchestrator, "cat food") == []
        model.loaded.set()
        monkeypatch.setattr("orchestrator.semantic.meaning.MAX_WARM_UP_WAIT_S", 10)
        assert await found(orchestrator, "cat food") == ["pet"]
