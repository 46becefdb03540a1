"""In a large registry on PostgreSQL how common a word is comes of what ANALYZE has sampled, not of counting."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from registry.access import Access, Level
from registry.registry import Registry
from registry.storage.database import ReadTransaction
from registry.storage.index import message_index
from registry.storage.index.postgres_index import PostgresIndex

pytestmark = pytest.mark.anyio
TOKENS = ["common", "rare", "zznever"]
MESSAGES = 20


@pytest.fixture
async def registry(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Registry]:
    monkeypatch.setattr(message_index, "LARGE", MESSAGES)
    monkeypatch.setattr(message_index, "COMMON", MESSAGES // 2)
    registry = Registry(postgres_url)
    texts = [f"common word{number}" for number in range(MESSAGES - 1)] + ["common rare"]
    await registry.save_conversation("a", [{"role": "user", "text": text} for text in texts], "test")
    await registry.maintain(["ANALYZE message_index"])
    yield registry
    registry.close()


async def test_common_words_are_not_counted_and_rare_ones_are(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    index = PostgresIndex()
    count = index.count

    def noted(tx: ReadTransaction, tokens: list[str]) -> dict[str, int]:
        counted.extend(tokens)
        return count(tx, tokens)

    monkeypatch.setattr(index, "count", noted)
    found = await registry.read(lambda tx: index.frequencies(tx, TOKENS, MESSAGES))
    assert counted == ["rare", "zznever"]
    assert found == {"common": pytest.approx(MESSAGES, abs=1), "rare": 1}


async def test_a_restricted_token_learns_nothing_of_the_sample(registry: Registry) -> None:
    seen = registry.seen_by(Access("bob", Level.READ, ("b_*",)))
    assert await seen.read(lambda tx: PostgresIndex().frequencies(tx, TOKENS, MESSAGES)) == {}
