"""A search finds the same on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from itertools import count, islice
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.registry import Registry
from registry.search import candidates
from registry.search.retrieval import SearchResult, corpus_of, find_messages
from registry.search.scope import Scope, narrow_scope
from registry.search.sessions import list_latest_sessions, read_messages_around
from registry.search.spelling import correct
from registry.storage.conversations.channels import get_channel
from registry.storage.conversations.messages import delete_channel, seqs_of
from registry.storage.conversations.references import edit_channel
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import index_of, source_token
from registry.text.analysis.analyzer import analyze
from registry.text.ranking.confidence import Confidence, confidence_of
from registry.text.request.query import parse_query
from registry.text.request.syntax import Search
from registry.text.times.spans import Span
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio


async def three_channels(orchestrator: Orchestrator) -> None:
    """Store three channels of two clients, in three months and two projects; one is tagged."""
    registry = orchestrator.registry
    await say(registry, "shop", "redis one", "redis two", "redis three", at="2026-01-05", project="/home/me/shop")
    await say(registry, "blog", "redis four", "kafka five", at="2026-02-10", project="/home/me/blog", source="claude")
    await say(registry, "notes", "kafka six", at="2026-03-15", title="redis in production")
    await registry.write(lambda tx: edit_channel(tx, "blog", {}, ["infra"]))


@pytest.fixture
async def registry(seeded: Seeded) -> AsyncIterator[Registry]:
    registry = Registry(await seeded(three_channels))
    yield registry
    registry.close()


async def say(registry: Registry, channel: str, *texts: str, at: str, source: str = "cursor", **more: str) -> list[str]:
    """Store messages, alternately of user and assistant, a second apart."""
    roles = ("user", "assistant")
    messages = [
        {"role": roles[i % 2], "text": text, "timestamp": f"{at}T10:00:{i:02}Z"} for i, text in enumerate(texts)
    ]
    return await registry.save_conversation(channel, messages, source, more)


async def ask(
    registry: Registry, words: str | Search, scope: Scope | None = None, budget: int = 0, **more: Any
) -> SearchResult:
    return await registry.read(lambda tx: find_messages(tx, words, scope or Scope(), budget, **more))


def numbers(result: SearchResult) -> list[int]:
    return [one.candidate.number for one in result.ranked]


async def found(registry: Registry, words: str | Search, **scope: Any) -> list[int]:
    """Return the numbers of the messages that contain the words, ascending."""
    result = await ask(registry, words, Scope(**scope))
    return sorted(one.candidate.number for one in result.ranked if one.candidate.number in result.matched)


def day(month: int, of_month: int) -> datetime:
    return datetime(2026, month, of_month, tzinfo=UTC)


SCOPES: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [1, 2, 3, 4]),
    ({"channel_number": 2}, [4]),
    ({"sources": ("claude",)}, [4]),
    ({"sources": ("claude", "gemini")}, [4]),
    ({"roles": ("assistant",)}, [2]),
    ({"project": "/home/me/shop"}, [1, 2, 3]),
    ({"project": "blog"}, [4]),
    ({"tags": ("infra",)}, [4]),
    ({"tags": ("infra", "speed")}, []),
    ({"from_": day(1, 6)}, [4]),
    ({"to": day(2, 1)}, [1, 2, 3]),
    ({"from_": day(1, 1), "to": day(2, 28)}, [1, 2, 3, 4]),
    ({"exclude_numbers": (1,)}, [4]),
    ({"project": "nowhere"}, []),
]


@pytest.mark.both_databases
async def test_a_scope_selects_exactly_its_messages(registry: Registry, subtests: pytest.Subtests) -> None:
    for scope, expected in SCOPES:
        with subtests.test(scope=scope, expected=expected):
            assert await found(registry, "redis", **scope) == expected


@pytest.mark.parametrize("few", [pytest.param(0, marks=pytest.mark.both_databases), 1])
async def test_a_large_scope_selects_the_same_messages(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    for limit in ("_CHANNELS_AS_TOKENS", "_SMALL_SCOPE", "_SMALL_TIME_SCOPE"):
        monkeypatch.setattr(candidates, limit, few)
    assert await found(registry, "redis", project="/home/me/shop") == [1, 2, 3]
    assert await found(registry, "redis", tags=("infra",)) == [4]
    assert await found(registry, "redis", from_=day(1, 6)) == [4]


@pytest.mark.both_databases
async def test_a_word_of_nearly_all_messages_is_found_in_a_small_scope(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "_CHANNELS_AS_TOKENS", 0)
    await say(registry, "elsewhere", *(f"redis number{number}" for number in range(12)), at="2026-04-01")
    assert await found(registry, "redis", project="/home/me/shop") == [1, 2, 3]
    assert await found(registry, "redis", project="/home/me/shop", roles=("assistant",)) == [2]
    assert await found(registry, "redis", project="/home/me/shop", exclude_numbers=(1,)) == []


def test_filters_in_the_query_narrow_the_scope() -> None:
    given = Scope(from_=day(1, 1), to=day(3, 1), tags=("a",), sources=("cursor",), project="p", roles=("user",))
    assert narrow_scope(given, Search()) == Scope(
        from_=day(1, 1), to=day(3, 1), tags=["a"], sources=("cursor",), project="p", roles=("user",)
    )
    written = Search(after=day(2, 1), before=day(2, 2), tags=("b",), source="claude", project="q", roles=("system",))
    assert narrow_scope(given, written) == Scope(
        from_=day(2, 1), to=day(2, 2), tags=["a", "b"], sources=["claude"], project="q", roles=("system",)
    )
    wider = Search(after=datetime(2025, 1, 1, tzinfo=UTC), before=datetime(2027, 1, 1, tzinfo=UTC))
    assert narrow_scope(given, wider) == narrow_scope(given, Search())


async def test_a_search_finds_only_the_given_roles(registry: Registry) -> None:
    messages = [{"role": role, "text": f"gecko {role}"} for role in ("user", "assistant", "tool", "error")]
    await registry.save_conversation("zoo", messages, "cursor", {})
    assert await found(registry, "gecko", roles=("user", "assistant")) == [7, 8]
    assert await found(registry, "gecko", roles=("tool",)) == [9]
    assert await found(registry, "gecko", roles=("user", "tool", "assistant")) == [7, 8, 9]


async def test_words_with_an_excluded_prefix_are_not_found(registry: Registry) -> None:
    from_cursor = [[source_token("cursor")]]
    found = await registry.read(lambda tx: index_of(tx).holders(tx, from_cursor, ["kafk*"]))
    assert sorted(found) == [1, 2, 3]


async def test_a_deleted_message_is_neither_found_nor_shown_around_a_hit(registry: Registry) -> None:
    [first, second, _] = [message["id"] for message in await registry.get_conversations("shop")]
    await registry.delete_conversation(second)
    assert await found(registry, "redis") == [1, 3, 4]
    around = await registry.read(lambda tx: read_messages_around(tx, {1: [0]}, 2, 2))
    assert [row.text for row in around[1]] == ["redis one", "redis three"]
    await registry.delete_conversation(first, soft=False)
    assert sorted(await registry.read(lambda tx: index_of(tx).holders(tx, [["redi"]]))) == [3, 4]


@pytest.mark.both_databases
async def test_an_index_entry_left_behind_by_a_deleted_message_is_not_shown(registry: Registry) -> None:
    def delete_without_the_index(tx: Any) -> None:
        tx.exec_driver_sql("UPDATE conversation SET deleted = true WHERE number = 2")

    await registry.write(delete_without_the_index)
    assert await found(registry, "redis") == [1, 3, 4]
    assert await found(registry, "redis", channel_number=1) == [1, 3]


async def test_titles_of_undeleted_channels_in_scope_are_found(registry: Registry) -> None:
    async def titled(**scope: Any) -> list[int]:
        return list((await ask(registry, "redis", Scope(**scope))).titles)

    assert await titled() == [3]
    assert await titled(exclude_numbers=(3,)) == []
    assert await titled(sources=("claude",)) == []
    assert await titled(roles=("user", "assistant")) == [3]
    assert await titled(roles=("assistant",)) == []
    assert await titled(channel_number=3) == [3]
    assert await titled(channel_number=2) == []
    assert 3 in [one.number for one in (await ask(registry, "redis")).channels]
    await registry.write(lambda tx: delete_channel(tx, get_channel(tx, "notes"), soft=True))
    assert await titled() == []
    assert 3 not in [one.number for one in (await ask(registry, "redis")).channels]


@pytest.mark.both_databases
async def test_the_latest_sessions_are_sorted_by_their_last_message_in_scope(registry: Registry) -> None:
    async def latest(scope: Scope, limit: int = 10, offset: int = 0) -> Any:
        return await registry.read(lambda tx: list_latest_sessions(tx, scope, limit, offset))

    assert await latest(Scope()) == ([(3, 1), (2, 2), (1, 3)], 3)
    assert await latest(Scope(), limit=1, offset=1) == ([(2, 2)], 3)
    assert await latest(Scope(roles=("user",))) == ([(3, 1), (2, 1), (1, 2)], 3)
    assert await latest(Scope(from_=day(1, 6), to=day(2, 28))) == ([(2, 2)], 1)
    assert await latest(Scope(tags=("infra",))) == ([(2, 2)], 1)
    assert await latest(Scope(project="/home/me/shop", exclude_numbers=(1,))) == ([], 0)
    [first, *_] = [message["id"] for message in await registry.get_conversations("shop")]
    await registry.delete_conversation(first)
    assert await latest(Scope(roles=("user",), sources=("cursor",))) == ([(3, 1), (1, 1)], 2)
    await registry.write(lambda tx: delete_channel(tx, get_channel(tx, "notes"), soft=True))
    assert await latest(Scope(roles=("user",), sources=("cursor",))) == ([(1, 1)], 1)


async def test_a_channel_with_many_hits_does_not_hide_another_one(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "CANDIDATES", 3)
    await say(
        registry,
        "frequent",
        *(["zebra " + "zebra stripes"] * 1 + [f"zebra stripes {i}" for i in range(9)]),
        at="2026-04-01",
    )
    await say(registry, "quiet", "one zebra was seen", at="2026-01-01")
    ranked = (await ask(registry, "zebra stripes")).ranked
    assert {one.candidate.channel_id for one in ranked} == {4, 5}


async def test_an_alternative_wording_finds_what_the_question_does_not(registry: Registry) -> None:
    await say(registry, "slow", "why is it sluggish", "add an index on orders", "thanks", at="2026-05-01")
    assert numbers(await ask(registry, "latency")) == []
    result = await ask(registry, "latency", also=["sluggish", "index orders"])
    assert sorted(numbers(result)[:2]) == sorted(result.matched) == [7, 8]
    assert result.channels[0].number == 4


async def test_a_wording_that_finds_nothing_changes_nothing(registry: Registry) -> None:
    assert numbers(await ask(registry, "redis", also=["xylophone"])) == numbers(await ask(registry, "redis"))


async def test_typos_are_not_corrected_in_alternative_wordings(registry: Registry) -> None:
    await say(registry, "words", "stripes", at="2026-05-01")
    assert numbers(await ask(registry, "strepes")) == [7]
    assert numbers(await ask(registry, "redis", also=["strepes"])) == numbers(await ask(registry, "redis"))


async def test_an_excluded_word_is_excluded_for_every_wording(registry: Registry) -> None:
    await say(registry, "colours", "blue green", "green", "yellow", "클러스터 green", at="2026-05-01")
    without = Search(words="green", excluded=("blue",))
    assert numbers(await ask(registry, without, also=["blue"])) == [8, 10]
    assert numbers(await ask(registry, Search(words="green", excluded=("클러스터",)))) == [8, 7]
    dated = [Span(day(5, 1), day(5, 2))]
    assert numbers(await ask(registry, without, dates=dated)) == [8, 10]


@pytest.mark.both_databases
async def test_a_date_prefers_messages_of_that_day_and_excludes_none(registry: Registry) -> None:
    plain = numbers(await ask(registry, "kafka"))
    assert plain[0] == 6
    dated = numbers(await ask(registry, "kafka", dates=[Span(day(2, 10), day(2, 11))]))
    assert dated[0] == 5
    assert set(plain) <= set(dated)
    assert 4 in dated  # of that day, although it has no word of the query
    nowhere = await ask(registry, "xylophone", dates=[Span(day(2, 10), day(2, 11))])
    assert sorted(numbers(nowhere)) == [4, 5]
    assert sorted(numbers(await ask(registry, "kafka", Scope(channel_number=3), dates=[Span(day(1, 1), None)]))) == [6]


async def test_positions_in_a_channel_follow_the_time(registry: Registry) -> None:
    messages = [{"role": "user", "text": at, "timestamp": f"2026-04-01T{at}:00Z"} for at in ("08:00", "17:00", "16:00")]
    await registry.save_conversation("late", messages, "cursor", {})
    number = await registry.read(lambda tx: get_channel(tx, "late").number)
    assert await registry.read(lambda tx: seqs_of(tx, number, ["user"])) == [0, 2, 1]
    assert await registry.read(lambda tx: seqs_of(tx, number, ["tool"])) == []


async def test_a_long_list_of_words_is_not_ranked_first(registry: Registry) -> None:
    topics = {
        "tuning": ["the postgres query on orders takes seconds", "an index on customer and date makes it quick"],
        "deploy": ["the canary deploy failed at the health check", "raise the timeout of the readiness probe"],
        "parser": ["the parser loses comments between tokens", "attach trivia to the token that follows"],
    }
    for name, texts in topics.items():
        await say(registry, name, *texts, "good, it works now", at="2026-05-01")
    everything = " ".join(text for texts in topics.values() for text in texts)
    await say(registry, "stuffed", f"{everything} {' '.join(f'word{i}' for i in range(200))}", at="2026-05-02")
    questions = {"slow postgres query orders": 4, "canary deploy health check timeout": 5, "parser comments trivia": 6}
    for question, wanted in questions.items():
        assert (await ask(registry, question)).channels[0].number == wanted, question


async def test_a_list_of_words_does_not_count_as_an_answer(registry: Registry) -> None:
    await say(registry, "deploy", "the canary deploy failed at its health check", "raise the timeout", at="2026-05-01")
    words = "canary deploy health check timeout probe rollout cluster image registry node pod service port mesh gateway"
    await say(registry, "stuffed", words, "ok", at="2026-05-02")
    result = await ask(registry, "canary deploy health check timeout")
    assert [one.number for one in result.channels] == [4]
    assert result.non_answers == {9}


async def test_a_planted_fact_is_found_in_a_language_without_spaces(registry: Registry) -> None:
    await say(registry, "ja", "接続プールの上限は四十に決めました", "会議は木曜日の午後に移しました", at="2026-05-01")
    await say(registry, "zh", "我们把缓存的过期时间改成了三十分钟", "新的日志格式下周上线", at="2026-05-01")
    for question, wanted in [
        ("データベースの接続プールの最大数はいくつだった?", 7),
        ("木曜日に移した会議はいつ?", 8),
        ("缓存过期时间是多少", 9),
        ("日志格式什么时候上线", 10),
    ]:
        result = await ask(registry, question)
        assert result.ranked[0].candidate.number == wanted, question
        assert wanted in result.matched, question


async def test_confidence_depends_on_the_words_that_the_conversation_contains(registry: Registry) -> None:
    await say(registry, "deploy", "the canary deploy failed at the health check", "raise the timeout", at="2026-05-01")

    async def confidence(words: str, *also: str) -> Confidence:
        result = await ask(registry, words, also=also)
        return confidence_of(result.coverage(result.channels[0].number))

    assert await confidence("canary deploy health check timeout") is Confidence.HIGH
    assert await confidence("kubernetes canary ingress certificate renewal broke") is Confidence.LOW
    assert await confidence("rollout broke", "canary deploy failed", "health check timeout") is Confidence.HIGH
    assert await confidence("rollout broke", "pipeline raise", "helm chart") is Confidence.LOW


async def test_the_corpus_counts_undeleted_messages_only(registry: Registry) -> None:
    before = await registry.read(corpus_of)
    await registry.write(lambda tx: delete_channel(tx, get_channel(tx, "shop"), soft=True))
    after = await registry.read(corpus_of)
    assert (before.size, after.size) == (6 + 3 + 100, 3 + 2 + 100)  # messages, channels, and 100 assumed ones
    remaining = ["redis four", "kafka five", "kafka six"]
    assert after.average_length == pytest.approx(sum(len(analyze(text)) for text in remaining) / 3)


async def test_a_large_registry_is_counted_again_after_a_while(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registry.storage.conversations.facets.MIN_CACHED_CHANNELS", 1)
    clock = count()
    monkeypatch.setattr("registry.storage.conversations.facets.time", SimpleNamespace(monotonic=clock.__next__))
    before = await registry.read(corpus_of)  # takes 1 s on the fake clock
    await registry.write(lambda tx: delete_channel(tx, get_channel(tx, "shop"), soft=True))
    assert await registry.read(corpus_of) == before
    restricted = registry.seen_by(Access("kim", Level.READ, ("kim*",)))
    assert (await restricted.read(corpus_of)).size == 100  # the assumed ones
    list(islice(clock, 100))
    assert (await registry.read(corpus_of)).size < before.size


async def test_a_word_of_a_small_registry_keeps_some_weight(registry: Registry) -> None:
    [redis] = (await ask(registry, "redis")).terms
    assert (redis.token, redis.frequency) == ("redi", 5)
    assert redis.weight == pytest.approx(3.0, abs=0.1)  # as one of five among a hundred


async def test_a_typo_is_corrected_to_the_more_frequent_word_first(registry: Registry) -> None:
    await say(registry, "words", "stare", "store", "store", at="2026-05-01")
    assert await registry.read(lambda tx: typos_of(tx, "stbre")) == {"stbre": ["store", "stare"]}
    assert await registry.read(lambda tx: typos_of(tx, "store")) == {}


async def test_a_typo_is_not_corrected_to_a_part_of_an_id(registry: Registry) -> None:
    await say(registry, "chat", "request 7f3a91c0-decd-4b1e-9aa0-2c51e0d3f8aa failed", at="2026-05-01")
    assert await registry.read(lambda tx: typos_of(tx, "decide")) == {}


TYPED = ("dployment", "dxployment", "dpeloyment", "deplyoment", "deploymint", "deploymentt")


async def test_a_typo_is_corrected_anywhere_in_a_word(registry: Registry) -> None:
    await say(registry, "words", "the deployment", "deploys", "depots", at="2026-05-01")
    for typed in TYPED:
        assert await registry.read(partial(typos_of, words=typed)) == {typed: ["deploy"]}


async def test_a_misspelt_korean_word_of_two_syllables_is_corrected_by_its_sound(registry: Registry) -> None:
    await say(registry, "words", "캐시 서버를 새로 띄웠다", "날씨가 좋다", at="2026-05-01")
    for typed, meant in [("케시", "캐시"), ("섭버", "서버"), ("써버", "서버"), ("나무", "")]:
        expected = {typed: [meant]} if meant else {}
        assert await registry.read(partial(typos_of, words=typed)) == expected


async def test_a_typo_is_not_corrected_to_a_word_that_the_token_cannot_see(registry: Registry) -> None:
    await say(registry, "mine", "store", at="2026-05-01")
    await say(registry, "theirs", "stare", "stare", "sore", at="2026-05-01")
    mine = registry.seen_by(Access("bob", Level.READ, ("mine",)))
    assert await mine.read(lambda tx: typos_of(tx, "stbre")) == {"stbre": ["store"]}
    assert await mine.read(lambda tx: typos_of(tx, "sotre")) == {"sotre": ["store"]}


def typos_of(tx: ReadTransaction, words: str) -> Any:
    index, query = index_of(tx), parse_query(words)
    return correct(tx, index, query, index.count(tx, query.tokens)).typos


async def test_a_budget_drops_the_most_frequent_words_first(registry: Registry) -> None:
    words = ["alpha", "bravo", "gamma", "delta", "sigma", "omega"]
    for at, word in enumerate(words, 1):
        await say(registry, f"w{at}", *(f"{word} {i}" for i in range(at)), at="2026-06-01")
    result = await ask(registry, " ".join(words), budget=1)
    assert [term.token for term in result.cut_terms] == ["omega"]


async def test_a_dropped_word_still_counts_in_messages_with_a_rarer_word(registry: Registry) -> None:
    await say(registry, "w", "the stripes of a zebra", "zebra", "stripes", "stripes again", at="2026-06-01")
    held = (await ask(registry, "zebra stripes", budget=1)).candidates
    assert {number: one.term_bits.bit_count() for number, one in held.items()} == {7: 2, 8: 1}
