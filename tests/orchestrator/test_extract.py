"""Test extract: the right part of a conversation, as an AI client asks for it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.answer.delivery import tokens_in, tokens_of
from orchestrator.service import Orchestrator
from registry.domain import format_time
from tests.orchestrator.logged import log_turns as log

pytestmark = pytest.mark.anyio

FIBONACCI = [
    (
        "이 함수의 시간복잡도를 개선하려면 어떻게 해야 할까요?",
        "재귀 피보나치는 O(2^n)입니다. 메모이제이션으로 O(n)이 됩니다.",
    ),
    ("메모리 사용량도 O(1)로 줄일 수 있을까요?", "네, 두 개의 변수만 사용하면 됩니다."),
    ("점심 뭐 먹지?", "김밥은 어떠세요?"),
]
DOCKER = [
    ("Why does docker compose not find the network?", "Declare it under networks: and mark it external."),
    ("And getUserById in user_service.py?", "It raises KeyError E1234 when the cache is cold."),
]


async def log_all(orchestrator: Orchestrator, channel: str, texts: list[str]) -> None:
    times = [f"2026-01-05T{i // 60:02}:{i % 60:02}:00Z" for i in range(len(texts))]
    messages = [{"role": "user", "text": text, "timestamp": at} for text, at in zip(texts, times, strict=True)]
    saved = await orchestrator.run({"operation": "save", "channel": channel, "messages": messages})
    assert saved["success"], saved


async def extract(orchestrator: Orchestrator, channel: str | None = None, **query: Any) -> dict[str, Any]:
    request = {"operation": "retrieve", "channel": channel, "query": query, "source": "claude"}
    return await orchestrator.run(request, "claude-ai 1.0")


def shown(answer: dict[str, Any]) -> list[str]:
    assert answer["success"], answer
    return [message["text"] for message in answer["messages"]]


def code(answer: dict[str, Any]) -> str:
    return str(answer["error"]["code"])


def is_in(turn: tuple[str, str], answer: dict[str, Any]) -> bool:
    return set(turn) <= set(shown(answer))


async def test_a_question_comes_with_its_answer_and_says_how_much_is_left_out(orchestrator: Orchestrator) -> None:
    turns = [*FIBONACCI[:2], *((f"small talk {i}", f"indeed {i}") for i in range(9)), FIBONACCI[2]]
    await log(orchestrator, "c", turns)
    answer = await extract(orchestrator, "c", text="피보나치 함수 시간복잡도 개선 관련 대화", limit=6)
    assert is_in(FIBONACCI[0], answer)
    assert not is_in(turns[6], answer)
    assert answer["metadata"]["total_count"] == 24
    left = answer["metadata"]["left_out"]
    assert left["messages"] == 24 - answer["metadata"]["filtered_count"]
    texts = [text for turn in turns for text in turn if text not in shown(answer)]
    assert left["tokens"] == pytest.approx(sum(map(tokens_in, texts)), rel=0.2)


async def test_a_last_word_is_not_left_out_to_be_asked_for_with_a_cursor(orchestrator: Orchestrator) -> None:
    report = ("The prepayment notice says 1,184,000", "File an estimate; the prepayment is reduced.")
    advice = ("The accountant agrees about the estimate", "Then file it before the end of November.")
    await log(orchestrator, "c", [report, advice, FIBONACCI[2], ("done, we paid 432,000", "Good.")])
    answer = await extract(orchestrator, "c", text="prepayment notice estimate")
    assert is_in(("done, we paid 432,000", "Good."), answer)
    assert "next_cursor" not in answer["metadata"]


async def test_if_a_turn_does_not_fit_its_best_message_is_given(orchestrator: Orchestrator) -> None:
    best = ("redis migration timeout?", "The redis migration timeout is 30 s.")
    next_best = ("And at night?", "The redis migration needs a timeout of an hour then.")
    await log(orchestrator, "c", [best, next_best, *((f"small talk {i}", f"indeed {i}") for i in range(9))])
    answer = await extract(orchestrator, "c", text="redis migration timeout", limit=3)
    assert shown(answer) == [*best, next_best[1]]
    await log_all(orchestrator, "alone", ["Where do zebras sleep?", "Lunch?", "Tea?"])
    assert shown(await extract(orchestrator, "alone", text="zebras", limit=1)) == ["Where do zebras sleep?"]


async def test_the_best_match_enters_the_budget_first(orchestrator: Orchestrator) -> None:
    turns = [("redis migration timeout", "Raise it."), ("Lunch?", "Soup."), ("a redis", "Fine."), ("Tea?", "Yes.")]
    await log(orchestrator, "c", turns)
    answer = await extract(orchestrator, "c", text="redis migration timeout", limit=2)
    assert shown(answer) == [*turns[0]]


async def test_a_request_to_continue_gives_the_whole_conversation_if_it_fits_and_else_its_end(
    orchestrator: Orchestrator,
) -> None:
    turns = [("redis migration timeout", "Raise it."), *((f"step {i}", f"done {i}") for i in range(30))]
    await log(orchestrator, "c", turns)
    everything = await extract(orchestrator, text="continue the redis migration conversation", limit=100)
    assert shown(everything) == [text for turn in turns for text in turn]
    some = await extract(orchestrator, text="continue the redis migration conversation", limit=12)
    assert shown(some)[-4:] == [*turns[-2], *turns[-1]]
    assert is_in(turns[0], some)
    assert "stands_at" not in some  # the messages have it


async def test_a_channel_is_found_by_its_words(orchestrator: Orchestrator) -> None:
    cases: list[str] = [
        "get_user_by_id",
        "what was E1234 about?",
        "user service",
        "KEYERROR",
        "도커 compose 대화 찾아줘",
    ]
    await log(orchestrator, "fib", FIBONACCI)
    await log(orchestrator, "ops", DOCKER)
    for words in cases:
        assert (await extract(orchestrator, text=words))["channel"] == "ops"


async def test_a_channel_is_found_by_its_title(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "a", FIBONACCI, title="Number sequences")
    await log(orchestrator, "b", DOCKER, project="/home/me/shop")
    answer = await extract(orchestrator, text="continue the number sequences conversation")
    assert (answer["channel"], answer["title"]) == ("a", "Number sequences")
    times = [message["timestamp"] for message in await orchestrator.registry.get_conversations("a")]
    assert (answer["first"], answer["last"]) == (times[0], times[-1])


async def test_only_the_named_project_is_searched(orchestrator: Orchestrator) -> None:
    for name, size in (("shop", "20"), ("blog", "50")):
        await log(orchestrator, name, [("How long is the queue?", f"At most {size}.")], project=f"/home/me/{name}")

    async def asked(project: str, text: str = "how long is the queue?") -> dict[str, Any]:
        request = {"operation": "retrieve", "query": {"text": text}, "project": project}
        return await orchestrator.run(request, "claude-ai 1.0")

    for project, channel in (("/home/me/shop", "shop"), ("Blog", "blog"), ("/home/me/blog", "blog")):
        assert (await asked(project))["channel"] == channel
        for text in (
            "",
            "what did we do?",
            "continue where we left off",
            "이 프로젝트에서 뭐 했지",
            "continue this project",
        ):
            latest = await asked(project, text)
            assert (latest["channel"], "candidates" in latest) == (channel, False)
    assert (await asked("/home/me/none", ""))["error"]["code"] == "NOT_FOUND"
    nothing = (await asked("/home/me/none"))["error"]
    assert nothing["code"] == "NOT_FOUND"
    assert nothing["details"].endswith("; only the project /home/me/none was searched, not all")
    assert "not all" in (await asked("shop", "sourdough bread recipe"))["error"]["details"]


async def test_without_a_relevant_message_nothing_is_found(orchestrator: Orchestrator) -> None:
    cases: list[str] = ["kubernetes helm chart", "양자 역학 강의", "sourdough bread recipe", "Germany"]
    await log(orchestrator, "fib", FIBONACCI)
    await log(orchestrator, "ops", DOCKER)
    for words in cases:
        for channel in (None, "fib"):
            answer = await extract(orchestrator, channel, text=words)
            assert answer["error"] == {
                "code": "NOT_FOUND",
                "message": "No matching conversations found",
                "details": f"No conversations found for query: '{words}'",
            }


MAIL = [("Which provider sends the mail of the shop?", "Postmark: it is the mail provider of the shop.")]


async def test_a_later_conversation_on_the_same_subject_is_named_unless_the_past_is_asked_for(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "spring", MAIL)
    moved = [("The mail provider of the shop is Resend now, is that noted?", "Noted, Resend sends the mail.")]
    await log(orchestrator, "autumn", moved, "2026-03-01")
    await log(orchestrator, "fib", FIBONACCI)
    for asked, later in (
        ("which provider handles the mail of the shop?", "autumn"),
        ("which provider sent the mail of the shop before we switched?", None),
        ("쇼핑몰 mail provider 원래 뭐였지? shop mail", None),
    ):
        found = await extract(orchestrator, text=asked)
        assert found["channel"] == "spring", asked
        assert found.get("newer", {}).get("channel") == later, asked
        assert later is None or "Resend" in found["newer"]["line"]


async def test_a_question_for_the_first_time_gets_the_earliest_of_close_conversations(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "spring", [("Which oil suits the bicycle chain?", "A dry one.")])
    await log(orchestrator, "autumn", [("Bicycle chain, the bicycle skips", "Change the bicycle chain.")], "2026-03-01")
    for asked, first in (
        ("the bicycle chain", "autumn"),
        ("when did we first talk about the bicycle chain?", "spring"),
        ("the first time I asked about the bicycle chain", "spring"),
        ("bicycle chain 처음 얘기한 대화", "spring"),
        ("the oldest conversation you have", "spring"),
        ("내 첫 번째 대화가 뭐야", "spring"),
    ):
        assert (await extract(orchestrator, text=asked))["channel"] == first, asked


async def test_a_question_for_the_final_decision_gets_the_later_of_two_close_conversations(
    orchestrator: Orchestrator,
) -> None:
    spring = [
        ("Which colour for the door of the shop?", "Green: the colour of the shop's sign, and a door colour to like."),
        ("Then the shop door is green.", "The colour of the door is noted."),
    ]
    autumn = [("The shop door again: which colour instead?", "Blue, it hides the dirt.")]
    await log(orchestrator, "spring", spring)
    await log(orchestrator, "autumn", autumn, "2026-03-01")
    await log(orchestrator, "fib", FIBONACCI)
    for asked, first in (
        ("which colour did we choose for the shop's door?", "spring"),
        ("which colour did we choose for the shop's door in the end?", "autumn"),
        ("가게 문 색 결국 뭘로 했지? shop door colour", "autumn"),
    ):
        assert (await extract(orchestrator, text=asked))["channel"] == first, asked


async def test_the_one_of_three_conversations_with_the_rare_words_is_found_with_high_confidence(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "fib", FIBONACCI)
    await log(orchestrator, "hooks", [("We retry webhooks five times", "Noted, five retries.")])
    await log(orchestrator, "login", [("should logins use sessions or jwt?", "Sessions in Redis are simpler.")])
    for text, channel in (
        ("how often do we retry webhooks?", "hooks"),
        ("what did we decide about logins?", "login"),
        ("피보나치 시간복잡도 개선", "fib"),
    ):
        answer = await extract(orchestrator, text=text)
        assert (answer["channel"], answer["confidence"]) == (channel, "high")


async def test_a_conversation_that_only_shares_the_subject_of_several_wordings_gives_no_high_confidence(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "school", [("she has a hearing aid in her left ear", "Ask for a seat on the right.")])
    also = ["hearing aid brand", "hearing aid model left ear", "audiologist device"]
    asked: dict[str, Any] = {"text": "what make of hearing aid does Elsie have?", "also": also}
    assert (await extract(orchestrator, **asked))["confidence"] == "low"
    told = ("It is a Phonak Sky model of 2024, the audiologist set the brand's device", "Then it streams by itself.")
    await log(orchestrator, "shop", [("which hearing aid make has Elsie, left ear?", "Say the brand."), told])
    answer = await extract(orchestrator, **asked)
    assert (answer["channel"], answer["confidence"]) == ("shop", "high")


async def test_several_forms_of_a_word_do_not_make_up_for_a_word_that_occurs_nowhere(
    orchestrator: Orchestrator,
) -> None:
    drips = ("에어컨에서 물이 떨어져", "호스에 물을 조금 붓고, 물은 닦으세요. 물 받이도 보세요.")
    await log(orchestrator, "cooler", [drips])
    await log(orchestrator, "other", FIBONACCI)
    for text, confidence in (("에어컨 물", "high"), ("라면 물", "low")):
        answer = await extract(orchestrator, text=text)
        assert (answer["channel"], answer["confidence"]) == ("cooler", confidence), text


async def test_a_conversation_that_the_request_rules_out_does_not_answer(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "seal", [("The seal leaks 14 ml in an hour. 씰 교체", "Change the seal. 씰 주문")])
    await log(orchestrator, "talk", [("My conference talk in Hamburg, on a seal. 학회 발표, 씰 사진", "Ready.")])
    for text in ("the seal conversation, not the conference talk in Hamburg", "발표 말고 씰 얘기"):
        answer = await extract(orchestrator, text=text)
        assert answer["channel"] == "seal", text
    answer = await extract(orchestrator, text="씰 사진은 학회 발표 말고 어디에 쓰지")  # one conversation has both
    assert answer["channel"] == "talk"


async def test_a_request_that_matches_nothing_is_not_found_and_names_the_nearest_titles_in_order(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "fib", FIBONACCI)
    await log(orchestrator, "tin", [("a tin for a loaf", "Take the long one.")])
    await log(orchestrator, "bread", [("sourdough starter smells", "Feed it.")])
    asked = {
        "text": "hydration of the sourdough loaf by weight",
        "also": ["baker's percentage", "flour to water ratio"],
    }
    for channel in ("fib", None):
        answer = await extract(orchestrator, channel, **asked)
        assert code(answer) == "NOT_FOUND"
        assert answer["error"]["details"].endswith("; nearest: “sourdough starter smells”, “a tin for a loaf”")
    answer = await extract(orchestrator, text="sourdough", to="2020-01-01T00:00:00Z")
    assert code(answer) == "NOT_FOUND"
    details = answer["error"]["details"]
    assert "nearest: “sourdough starter smells”; nothing about it from before 2020-01-01" in details
    assert details.endswith("; other wordings (also) may find it")


async def test_a_chat_that_asks_for_a_conversation_does_not_hide_it(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "meant", [("The webhook of the bakery times out.", "Raise the webhook's timeout to 30 s.")])
    asks = ["what did we decide about the bakery webhook timeout", "find the bakery webhook timeout conversation"]
    for number, text in enumerate(asks):
        await log(orchestrator, f"asking{number}", [(text, "I have no record of the bakery webhook timeout.")])
    for text in [*asks, "bakery webhook timeout"]:
        assert (await extract(orchestrator, text=text))["channel"] == "meant", text


async def test_a_request_for_all_of_a_named_channel_is_answered_by_its_end(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "fib", FIBONACCI)
    for text in ("everything", "a summary of the whole conversation", "마지막에 뭐라고 결정했지"):
        answer = await extract(orchestrator, "fib", text=text)
        assert "김밥은 어떠세요?" in shown(answer), text


async def test_an_unknown_channel_is_not_found(orchestrator: Orchestrator) -> None:
    assert code(await extract(orchestrator, "nope")) == "NOT_FOUND"
    assert code(await extract(orchestrator)) == "NOT_FOUND"


async def test_without_words_the_last_messages_are_given_and_older_ones_page_by_page(
    orchestrator: Orchestrator,
) -> None:
    turns = [(f"question {i}", f"answer {i}") for i in range(7)]
    await log(orchestrator, "c", turns)
    page = await extract(orchestrator, "c", limit=4)
    pages = [shown(page)]
    await log(orchestrator, "c", [*turns, ("arrived meanwhile", "yes")])
    while cursor := page["metadata"].get("next_cursor"):
        page = await extract(orchestrator, "c", limit=4, cursor=cursor)
        pages.insert(0, shown(page))
    assert [text for texts in pages for text in texts] == [text for turn in turns for text in turn]


@pytest.mark.parametrize("seed", [3, 7, 83, 109])
async def test_no_message_is_skipped_between_two_pages_if_turns_interleave(
    orchestrator: Orchestrator, seed: int
) -> None:
    rng = random.Random(seed)
    said: list[str] = []
    for turn in range(12):
        asked_at = 1000 * turn + rng.randrange(2000)
        answered_at = asked_at + rng.choice((1, 900, 2500, 30_000))
        messages = [
            {"role": role, "text": f"{role} {turn} " + "says it at length " * rng.choice((0, 40)), "timestamp": at}
            for role, at in (("user", _at(asked_at)), ("assistant", _at(answered_at)))
        ]
        said += [str(message["text"]).split(" says")[0].strip() for message in messages]
        assert (await orchestrator.run({"operation": "save", "channel": "c", "messages": messages}))["success"]
    limit, tokens = rng.choice((3, 5, 20)), rng.choice((300, 1500))
    page = await extract(orchestrator, "c", limit=limit, max_tokens=tokens)
    seen = shown(page)
    while cursor := page["metadata"].get("next_cursor"):
        page = await extract(orchestrator, "c", limit=limit, max_tokens=tokens, cursor=cursor)
        seen += shown(page)
    assert sorted(text.split(" says")[0].strip() for text in seen) == sorted(said)


def _at(milliseconds: int) -> str:
    return format_time(datetime(2026, 1, 5, tzinfo=UTC) + timedelta(milliseconds=milliseconds))


async def test_only_request_words_give_the_latest_conversation_and_a_tag_the_latest_with_it(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "old", FIBONACCI)
    await log(orchestrator, "new", [*DOCKER, *DOCKER])
    for words in ("이어가기", "continue our conversation", None):
        answer = await extract(orchestrator, **({"text": words} if words else {}))
        assert answer["success"], answer
        assert answer["channel"] == "new"
        assert [item["channel"] for item in answer["candidates"]] == ["old"]
    assert (await orchestrator.run({"operation": "tag", "channel": "old", "query": {"add_tags": ["math"]}}))["success"]
    assert (await extract(orchestrator, text="tag:math"))["channel"] == "old"
    for text in ("tag:none", "?", "😀", '""'):
        assert code(await extract(orchestrator, text=text)) == "NOT_FOUND", text


async def test_the_conversation_before_the_last_is_the_second_latest(orchestrator: Orchestrator) -> None:
    for day, channel in enumerate(("oldest", "before", "latest"), 1):
        await log(orchestrator, channel, DOCKER, f"2026-03-0{day}")
    for text in ("the conversation before last", "what was my second to last chat about?", "지지난번 대화"):
        assert (await extract(orchestrator, text=text))["channel"] == "before", text
    assert (await extract(orchestrator, text="the last conversation"))["channel"] == "latest"


async def test_a_request_for_what_was_done_last_gives_the_latest_conversation_whatever_its_other_wordings(
    orchestrator: Orchestrator,
) -> None:
    texts = (
        "Why does it fail?",
        "the most recent session in these days",
        "고친 파일 마지막으로 작업하던 세션",
        "last time",
    )
    await log(orchestrator, "old", [(text, "Done.") for text in texts])
    await log(orchestrator, "new", DOCKER, "2026-01-06")
    for text, *also in [
        ("what have we been working on lately", "the most recent session", "latest progress"),
        ("continue our last conversation", "이전 대화 이어서"),
        ("which files did we change last time", "recent work"),
        ("마지막 세션에서 고친 파일", "most recent session"),
        ("most recent session",),
        ("what were we doing these days",),
        ("what was I working on", "why the upload fails", "파일"),
        ("catch me up",),
        ("그래서 어떻게 됐어", "결론", "outcome"),
        ("마지막 대화 불러와줘",),
    ]:
        answer = await extract(orchestrator, text=text, also=also)
        assert answer.get("channel") == "new", (text, answer)


async def test_pages_of_hits_cover_every_hit_once_while_messages_arrive(orchestrator: Orchestrator) -> None:
    turns = [(f"cache question {i}", f"cache answer {i}") for i in range(9)]
    await log(orchestrator, "c", turns)
    page = await extract(orchestrator, "c", text="cache", limit=4)
    seen = shown(page)
    await log(orchestrator, "c", [*turns, ("cache again?", "cache yes")])
    while cursor := page["metadata"].get("next_cursor"):
        page = await extract(orchestrator, "c", text="cache", limit=4, cursor=cursor)
        seen += shown(page)
    assert set(seen) >= {text for turn in turns for text in turn}


async def test_other_conversations_that_match_take_no_room_from_the_answer(orchestrator: Orchestrator) -> None:
    given = []
    for channel, count in (("few", 40), ("many", 400)):
        texts = [f"cache question {i}: " + "why is it cold again? " * 6 for i in range(count)]
        await log_all(orchestrator, channel, texts)
        given.append(shown(await extract(orchestrator, channel, text="cache", limit=50, max_tokens=1200)))
    assert len(given[0]) == len(given[1])


async def test_an_answer_of_high_confidence_begins_with_the_best_turn_and_the_next_page_has_earlier_ones(
    orchestrator: Orchestrator,
) -> None:
    weaker = ("The bakery webhook ran into its timeout, is that usual?", "Yes, see the log of the bakery webhook.")
    best = (
        "Which retry limit for the bakery webhook's timeout?",
        "Five for the bakery's webhook. " + "So it is. " * 50,
    )
    small_talk = [(f"small talk {i}", f"indeed {i}") for i in range(4)]
    await log(orchestrator, "bakery", [weaker, *small_talk, best, *small_talk])
    query = {"text": "bakery webhook timeout retry limit"}
    answer = await extract(orchestrator, **query)
    assert answer["confidence"] == "high"
    assert shown(answer)[0] == best[0]
    cursor = answer["metadata"]["next_cursor"]
    assert is_in(weaker, await extract(orchestrator, "bakery", cursor=cursor, **query))


async def test_an_answer_of_high_confidence_to_one_wording_shows_a_turn_more_than_with_other_wordings(
    orchestrator: Orchestrator,
) -> None:
    best = ("Which retry limit for the bakery webhook's timeout?", "Asked the host. " + "It depends on them. " * 15)
    further = ("And what did they say of the webhook?", "Nine.")
    small_talk = [(f"small talk {i}", f"indeed {i}") for i in range(4)]
    await log(orchestrator, "bakery", [*small_talk, best, *small_talk, further, *small_talk])
    query = {"text": "bakery webhook timeout retry limit"}
    assert is_in(further, await extract(orchestrator, **query))
    others = await extract(orchestrator, **query, also=["bakery webhook retries", "how often the webhook is retried"])
    assert not is_in(further, others)


async def test_times_and_roles_filter_the_messages(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "c", [(f"cache question {i}", f"cache answer {i}") for i in range(5)])
    answer = await extract(orchestrator, "c", **{"from": "2026-01-05T12:02:00Z", "to": "2026-01-05T12:03:00+00:00"})
    assert shown(answer) == ["cache question 2", "cache answer 2", "cache question 3"]
    assert shown(await extract(orchestrator, "c", roles=["assistant"], limit=1)) == ["cache answer 4"]
    whole_day = {"from": "2026-01-05", "to": "2026-01-05"}
    assert len(shown(await extract(orchestrator, "c", **whole_day))) == 10


async def test_the_texts_stay_within_max_tokens(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "c", [("cache? " + "아주 긴 질문 " * 50, "cache! " + "long answer " * 50)] * 3)
    for text in ("", "cache"):
        for tokens in (10, 200, 400):
            answer = await extract(orchestrator, "c", max_tokens=tokens, text=text)
            assert 0 < sum(tokens_in(text) for text in shown(answer)) <= tokens


async def test_a_low_confidence_answer_about_the_past_shows_more_of_its_first_conversation(
    orchestrator: Orchestrator,
) -> None:
    """Which of its turns held then is more in doubt than which conversation."""
    for name in ("a", "b", "c", "d", "e", "f"):
        await log(
            orchestrator, name, [(f"the cache of {name} grew", "Then clear the cache."), ("cache again", "Cleared.")]
        )
    for asked, turns in (
        ("how did we clear the cache of the queue", 1),
        ("how did we clear it before we switched the cache", 2),
    ):
        answer = await extract(orchestrator, None, text=asked)
        assert (answer["confidence"], len([one for one in answer["messages"] if one["role"] == "user"])) == (
            "low",
            turns,
        )
        assert answer["candidates"]


async def test_a_low_confidence_answer_shows_the_users_reply_to_a_question(orchestrator: Orchestrator) -> None:
    for name in ("a", "b", "c", "d"):
        turns = [(f"plan the cache of {name}", "How large may the cache be?"), ("40 MB", "Planned."), ("ok", "Bye.")]
        await log(orchestrator, name, turns)
    answer = await extract(orchestrator, None, text="how did we plan the cache of the queue")
    assert answer["confidence"] == "low"
    assert shown(answer)[1:3] == ["How large may the cache be?", "40 MB"]


async def test_an_unsure_answer_tells_what_came_of_the_conversation_in_the_end(orchestrator: Orchestrator) -> None:
    begin = ("The brakes shake the wheel of my van, turn the discs or replace them?", "Measure the thickness first.")
    talk = [(f"And then, step {i}?", f"Look at part {i} with a lamp. " * 3) for i in range(5)]
    outcome = ("It was the left one only.", "Then take new ones for both sides.")
    await log(orchestrator, "van", [begin, *talk, outcome])
    answer = await extract(orchestrator, text="did we polish or swap the brakes of the shaking car in spring")
    assert answer["confidence"] == "low"
    assert is_in(begin, answer)
    assert [(one["text"], one["why"]) for one in answer["messages"]][-2:] == [(text, "end") for text in outcome]


async def test_the_whole_answer_keeps_to_max_tokens(orchestrator: Orchestrator) -> None:
    """Other candidates are cut before the messages; what is always included is small."""
    for name in ("a", "b", "c", "d", "e", "f"):
        await log(orchestrator, name, [(f"the cache of {name}? " + "why " * 60, "cached " * 120)] * 4)
    whole = await extract(orchestrator, None, text="cache")
    choice = {name: value for name, value in whole.items() if name not in ("success", "newer")}
    assert (len(whole["candidates"]), tokens_of(choice) <= 550) == (4, True)
    for asked in (1000, 600):
        answer = await extract(orchestrator, None, text="cache", max_tokens=asked)
        assert tokens_of(answer) <= asked
        assert len(answer.get("candidates", ())) <= 4
    for asked, most in ((100, 300), (200, 300)):
        assert tokens_of(await extract(orchestrator, "a", text="cache of a", max_tokens=asked)) <= most
    await log(orchestrator, "short", [(f"zebra {number}", f"zebra no {number}") for number in range(50)])
    assert tokens_of(await extract(orchestrator, "short", text="zebra", max_tokens=600, limit=1000)) <= 600


async def test_a_digest_has_first_lines_and_a_summary_replaces_its_messages(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "c", [("How big is it? " * 40, "It is **big**. Very. " * 40)])
    digest = await extract(orchestrator, "c", mode="digest")
    assert all(text.startswith(("How big is it?", "It is big")) for text in shown(digest))
    summary = await extract(orchestrator, "c", mode="summary")
    assert shown(summary) == []
    assert summary["summary"].startswith("Asked: How big is it?")
    assert "\nAnswered: It is big." in summary["summary"]
    short = await extract(orchestrator, "c", mode="summary", max_tokens=4)
    assert tokens_in(short["summary"]) <= 4


async def test_messages_left_out_of_a_digest_are_counted(orchestrator: Orchestrator) -> None:
    turns = [(f"What changes in the importer step {n}?", f"Step {n} writes the file {n}.") for n in range(60)]
    await log(orchestrator, "long", turns)
    digest = await extract(orchestrator, "long", mode="digest")
    given = len(digest["messages"])
    assert 2 < given < 120
    assert digest["metadata"]["filtered_count"] == given
    assert digest["metadata"]["left_out"]["messages"] == 120 - given
    assert sum(message.get("gap_before", 0) for message in digest["messages"]) == 120 - given
    few = await extract(orchestrator, "long", mode="digest", limit=4)
    assert (len(few["messages"]), few["metadata"]["left_out"]["messages"]) == (4, 116)
    assert "left_out" not in (await extract(orchestrator, "long", mode="digest", max_tokens=6_000))["metadata"]


async def test_a_channel_found_by_its_name_alone_is_shown_from_its_end(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "a", [("make it faster", "done")], title="Zebra migration", project="/home/me/giraffe")
    await log(orchestrator, "b", FIBONACCI)
    await orchestrator.run({"operation": "tag", "channel": "a", "query": {"nickname": "okapi"}})
    for words in ("zebra migration", "giraffe", "continue the okapi conversation"):
        answer = await extract(orchestrator, text=words)
        assert (answer["channel"], shown(answer)) == ("a", ["make it faster", "done"])


async def test_a_request_without_words_is_paged_to_the_end(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "c", [(f"q{i}", f"a{i}") for i in range(4)])
    page = await extract(orchestrator, "c", text="continue the conversation", limit=6)
    older = await extract(
        orchestrator, "c", text="continue the conversation", limit=6, cursor=page["metadata"]["next_cursor"]
    )
    assert shown(older) == ["q0", "a0"]


async def test_a_deleted_channel_is_not_found_by_its_title(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", [("make it faster", "done")], title="Zebra migration")
    await orchestrator.run({"operation": "delete", "channel": "old", "query": {"soft": False}})
    await log(orchestrator, "new", FIBONACCI)
    assert code(await extract(orchestrator, text="zebra migration")) == "NOT_FOUND"


async def test_a_deleted_message_is_not_found(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "c", FIBONACCI)
    found = (await extract(orchestrator, "c", text="점심 김밥"))["messages"]
    [hit, answer] = [message for message in found if message["text"] in FIBONACCI[2]]
    for message in (hit, answer):
        assert (await orchestrator.run({"operation": "delete", "query": {"id": message["id"]}}))["success"]
    assert code(await extract(orchestrator, "c", text="점심 김밥")) == "NOT_FOUND"
    assert (await orchestrator.run({"operation": "restore", "query": {"id": hit["id"]}}))["success"]
    assert "점심 뭐 먹지?" in shown(await extract(orchestrator, "c", text="점심"))
    assert (await orchestrator.run({"operation": "delete", "channel": "c", "query": {}}))["success"]
    assert code(await extract(orchestrator, "c")) == "NOT_FOUND"
    assert code(await extract(orchestrator, text="점심")) == "NOT_FOUND"


async def test_a_bad_query_is_refused_with_the_name_of_its_field(orchestrator: Orchestrator) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"limit": 0}, "query.limit: given 0"),
        ({"limit": 1001}, "query.limit: given 1001"),
        ({"mode": "short"}, "query.mode: given \"short\"; allowed: 'raw', 'summary' or 'digest'"),
        ({"from": "some day"}, "query.from: given"),
        ({"cursor": "made up"}, "cursor: given 'made up'"),
        ({"text": "x", "cursor": "e30"}, "cursor: given 'e30'"),
        ({"txt": "x"}, 'query.txt: given "x"; allowed: no such field'),
    ]
    await log(orchestrator, "c", DOCKER)
    for query, field in cases:
        answer = await extract(orchestrator, "c", **query)
        assert code(answer) == "INVALID_REQUEST"
        assert field in answer["error"]["details"]


async def test_a_long_agent_turn_is_shown_by_its_question_hit_and_answer(orchestrator: Orchestrator) -> None:
    tools = [{"role": "tool", "text": f"step {i}" + (" found the zebra" if i == 7 else "")} for i in range(30)]
    messages = [{"role": "user", "text": "go"}, *tools, {"role": "assistant", "text": "finished"}]
    await orchestrator.run({"operation": "save", "channel": "c", "messages": messages})
    everyone = ["user", "assistant", "tool"]
    found = shown(await extract(orchestrator, "c", text="zebra", roles=everyone))
    assert found[0] == "go"
    assert "step 7 found the zebra" in found
    assert found[-1] == "finished"
    assert len(found) < len(messages)
    assert shown(await extract(orchestrator, "c", text="zebra")) == [
        "go",
        "finished",
    ]  # tool output is searched and not shown


async def test_an_error_that_only_a_tool_printed_is_found_with_its_fix(orchestrator: Orchestrator) -> None:
    printed = {"role": "tool", "text": "OSError: [Errno 121] Remote I/O error"}
    asked, cure = {"role": "user", "text": "the logger died"}, {"role": "assistant", "text": "Shorten the cable."}
    await orchestrator.run({"operation": "save", "channel": "cellar", "messages": [asked, printed, cure]})
    await log(orchestrator, "other", [("Which paint for the fence?", "Green.")])
    answer = await extract(orchestrator, text="OSError: [Errno 121] Remote I/O error")
    assert (answer["channel"], answer["confidence"]) == ("cellar", "high")
    assert shown(answer) == [asked["text"], cure["text"]]


async def test_a_file_that_was_read_does_not_hide_the_conversation_about_its_words(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "about", [("Which glaze for the terracotta pot?", "Tin glaze, fired at 1060.")])
    notes = [{"role": "tool", "text": "glaze terracotta pot" + " kiln shelf" * at} for at in range(1, 9)]
    asked, answered = {"role": "user", "text": "sort my notes"}, {"role": "assistant", "text": "Sorted by date."}
    await orchestrator.run({"operation": "save", "channel": "sorting", "messages": [asked, *notes, answered]})
    assert (await extract(orchestrator, text="glaze for the terracotta pot"))["channel"] == "about"


async def test_initials_that_nobody_wrote_find_nothing(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "c", [("김밥 가격 정하자", "3,500원"), ("검색창에 ㄱㅂㅈㅁ 치면 나와?", "네")])
    assert code(await extract(orchestrator, text="ㅊㅅㄱㅅ")) == "NOT_FOUND"
    assert "검색창" in (await extract(orchestrator, text="ㄱㅂㅈㅁ"))["messages"][-2]["text"]


async def test_laughter_and_slang_are_not_read_as_initials(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", [("김밥 가격 정하자", "3,500원")])
    await log(orchestrator, "latest", [("울타리 색 정하자", "초록")], day="2026-01-06")
    for laughter in ["ㄹㅇㅋㅋ 이어서 하자", "ㅇㅋㄷㅋ 어디까지 했지", "ㅇㅈㅋㅋ", "ㅋㅋㅠㅠ 이어서 하자"]:
        assert (await extract(orchestrator, text=laughter))["channel"] == "latest"
        answer = await extract(orchestrator, text="ㄹㅇㅋㅋ 김밥 가격 얼마였지")
        assert (answer["channel"], answer["confidence"]) == ("old", "high")


def numbered(count: int, hour: int, said: str) -> list[dict[str, Any]]:
    roles, day = ("user", "assistant"), "2026-01-05"
    return [
        {"role": roles[at % 2], "text": f"{said} {at}", "timestamp": f"{day}T{hour:02}:{at:02}:00Z"}
        for at in range(count)
    ]


@pytest.mark.parametrize("came", ["in time", "the last first"])
async def test_gaps_are_counted_by_time(orchestrator: Orchestrator, came: str) -> None:
    parts = [numbered(20, 9, "about the memoized fibonacci"), numbered(30, 12, "about the basket of the shop")]
    for messages in parts if came == "in time" else parts[::-1]:
        logged = {"operation": "save", "channel": "c", "source": "cursor", "messages": messages}
        assert (await orchestrator.run(logged))["success"]
    query = {"text": "continue the memoized fibonacci", "max_tokens": 200}
    answer = await orchestrator.run({"operation": "extract", "channel": "c", "query": query})
    order = [message["text"] for part in parts for message in part]
    places = [order.index(message["text"]) for message in answer["messages"]]
    assert places[-1] == 49
    gaps = [message.get("gap_before", 0) for message in answer["messages"]]
    assert gaps == [at - before - 1 for before, at in zip([-1, *places], places, strict=False)]


async def test_the_last_turn_is_given_however_much_tool_output_follows_it(orchestrator: Orchestrator) -> None:
    tools = [
        {"role": "tool", "text": f"line {at}", "timestamp": f"2026-01-05T13:{at // 60:02}:{at % 60:02}Z"}
        for at in range(100)
    ]
    messages = [*numbered(40, 9, "about the memoized fibonacci"), *numbered(2, 12, "about the basket"), *tools]
    await orchestrator.run({"operation": "save", "channel": "c", "source": "cursor", "messages": messages})
    query = {"text": "continue the memoized fibonacci", "max_tokens": 300}
    answer = await orchestrator.run({"operation": "extract", "channel": "c", "query": query})
    assert [message["text"] for message in answer["messages"]][-2:] == ["about the basket 0", "about the basket 1"]
