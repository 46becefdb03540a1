"""Test later statements: the latest leads the answer, and an earlier one is called replaced only on evidence."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from tests.orchestrator.logged import log_texts

pytestmark = pytest.mark.anyio

log = partial(log_texts, project="/home/me/shop")

MAIL = ("What do the order mails go through?", "Postmark, the order mails go through its API.")
MOVED = ("We moved the order mails from Postmark to Resend last week.", "Then the order mails go through Resend now.")


async def ask(orchestrator: Orchestrator, text: str, channel: str | None = None) -> dict[str, Any]:
    answer = await orchestrator.run({"operation": "extract", "channel": channel, "query": {"text": text}})
    assert answer["success"], answer
    return answer


def replaced(answer: dict[str, Any]) -> list[str]:
    return [message["text"] for message in answer["messages"] if "replaced_on" in message]


async def test_a_later_conversation_on_the_same_subject_leads_and_the_old_statement_is_called_replaced(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "old", "2026-01-05", *MAIL)
    await log(orchestrator, "later", "2026-03-05", *MOVED)
    for channel in (None, "old"):
        answer = await ask(orchestrator, "what do the order mails go through again", channel)
        assert answer["channel"] == "old"
        newer = answer["newer"]
        assert (newer["channel"], newer["source"]) == ("later", "cursor")
        assert "Resend" in newer["line"]
        assert newer["when"].startswith("2026-03-05T08:01")
        assert replaced(answer) == [MAIL[1]]


async def test_a_change_that_is_only_carried_out_is_shown_with_its_outcome_and_nothing_is_called_replaced(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "old", "2026-01-05", "Which engine powers the product search?", "Elasticsearch, one node.")
    talk = ["The search engine forgives no typos.", "Shall I port the product search to Meilisearch?"]
    await log(orchestrator, "later", "2026-03-05", *talk, "yes", "Ported, the sync worker writes to Meilisearch.")
    answer = await ask(orchestrator, "which engine powers the product search again")
    assert "Ported" in answer["newer"]["line"]
    assert replaced(answer) == []


async def test_the_line_of_a_later_statement_has_the_question_of_its_last_answer(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", "2026-01-05", *MAIL)
    talk = ["Resend asks for a DNS record.", "ok, and what does it cost?", "Twenty dollars a month."]
    await log(orchestrator, "later", "2026-03-05", MOVED[0], *talk)
    answer = await ask(orchestrator, "what do the order mails go through again")
    assert answer["newer"]["line"] == " → ".join([MOVED[0], *talk[1:]])


async def test_prompts_without_an_answer_are_no_outcome_of_a_later_statement(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", "2026-01-05", *MAIL)
    said = [("2026-03-05T08:00:00Z", MOVED[0]), ("2026-03-05T08:01:00Z", "Sort the imports.")]
    messages = [{"role": "user", "text": text, "timestamp": at} for at, text in said]
    talk = {"operation": "save", "channel": "later", "messages": messages, "source": "cursor"}
    assert (await orchestrator.run(talk))["success"]
    answer = await ask(orchestrator, "what do the order mails go through again")
    assert answer["newer"]["line"] == MOVED[0]


async def test_a_prompt_that_waits_for_its_answer_is_no_later_statement(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", "2026-01-05", *MAIL)
    await log(orchestrator, "later", "2026-03-05", "Add the order mails that go through Postmark to the docs.")
    assert "newer" not in await ask(orchestrator, "what do the order mails go through again")


async def test_a_later_statement_is_shown_with_the_answer_on_the_same_subject(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", "2026-01-05", *MAIL)
    turns = [("user", "switch them off Postmark"), ("assistant", "The order mails go through Resend now.")]
    turns += [("tool", "pnpm test"), ("assistant", "Let me look at the relevant files.")]
    messages = [
        {"role": role, "text": text, "timestamp": f"2026-03-05T08:0{minute}:00Z"}
        for minute, (role, text) in enumerate(turns)
    ]
    talk = {"operation": "save", "channel": "later", "messages": messages, "source": "cursor"}
    assert (await orchestrator.run(talk))["success"]
    answer = await ask(orchestrator, "what do the order mails go through again", "old")
    assert answer["newer"]["line"] == "switch them off Postmark → The order mails go through Resend now."


async def test_a_rejection_with_a_reason_for_a_change_or_on_another_subject_does_not_keep_the_old_value(
    orchestrator: Orchestrator,
) -> None:
    await log(orchestrator, "old", "2026-01-05", *MAIL)
    moved = "So many were rejected by Postmark that we moved the order mails from Postmark to Resend."
    await log(
        orchestrator, "later", "2026-03-05", moved, "Resend sends the order mails.", "card declined for Ana", "Oh."
    )
    assert replaced(await ask(orchestrator, "what do the order mails go through again")) == [MAIL[1]]


async def test_the_users_reply_to_a_question_is_in_the_later_statement(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", "2026-01-05", "What runs the background work of the rota?", "Sidekiq, on Redis.")
    fix = ["Fix the rota page, it names Sidekiq and Redis.", "What is it now?", "good_job", "Done."]
    await log(orchestrator, "later", "2026-03-05", *fix)
    answer = await ask(orchestrator, "which tool runs the slow background work for our rota")
    assert answer["channel"] == "old"
    assert answer["newer"]["line"].endswith("→ good_job → Done.")


async def test_a_change_that_names_only_the_old_value_leads(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", "2026-01-05", "What runs the background work of the rota?", "Sidekiq, on Redis.")
    fix = ["Fix the rota page: we moved off Sidekiq and Redis to good_job.", "Done, it says good_job."]
    await log(orchestrator, "later", "2026-03-05", *fix)
    answer = await ask(orchestrator, "which tool runs the slow background work for our rota")
    assert answer["channel"] == "old"
    assert "good_job" in answer["newer"]["line"]


@pytest.mark.parametrize(
    "later",
    [
        ("Should we replace Postmark for the order mails?", "You could.", "no, leave it", "Nothing changed."),
        ("Replace Postmark on staging for the order mails.", "Replaced Postmark by a dummy on staging."),
        ("Replace Postmark by Resend for the order mails until Monday.", "Replaced Postmark."),
        ("order mails는 Postmark 대신 닷새만 Resend로 보내줘", "Postmark 대신 Resend로 바꿨습니다."),
        (
            "Ana wants us to move the order mails from Postmark to Resend.",
            "A trial sends the same.",
            "how long would it take",
            "Three days.",
            "we voted, not doing it",
            "Deleted.",
        ),
        ("order mails를 Postmark에서 Resend로 바꾸자는 안건, Postmark 대신 Resend", "정리했습니다.", "부결됐어", "네."),
    ],
    ids=["kept", "another environment", "for a time", "for some days", "rejected further on", "voted down"],
)
async def test_a_value_kept_or_changed_only_for_a_place_or_a_time_is_not_called_replaced(
    orchestrator: Orchestrator, later: tuple[str, ...]
) -> None:
    await log(orchestrator, "old", "2026-01-05", *MAIL)
    await log(orchestrator, "later", "2026-03-05", *later)
    assert replaced(await ask(orchestrator, "what do the order mails go through again", "old")) == []
    assert replaced(await ask(orchestrator, "what do the order mails go through again")) == []


async def test_a_question_for_the_past_is_answered_from_the_past(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "old", "2026-01-05", MAIL[0], "Postmark.")
    provider = "Which provider sends the order mails? We moved the order mails to the provider Resend."
    await log(orchestrator, "later", "2026-03-05", provider, "Resend sends them.")
    for past in (
        "which provider sent the order mails before we switched",
        "which provider sent the order mails originally",
        "주문 메일 order mails 업체 바꾸기 전에는 provider 뭐였지",
    ):
        answer = await ask(orchestrator, past)
        assert answer["channel"] == "old", past
        assert "newer" not in answer, past


async def test_a_statement_withdrawn_in_the_same_conversation_comes_with_its_withdrawal(
    orchestrator: Orchestrator,
) -> None:
    said = ["Admin passwords need a minimum of 10 characters.", "The validator wants 10 characters.", "And fences?"]
    back = "Let's do a minimum length of 14 characters for passwords instead."
    await log(orchestrator, "c", "2026-01-05", *said, "Paint them.", back, "Changed.", "Fine, and the gate?", "Red.")
    answer = await ask(orchestrator, "minimum length of admin passwords")
    assert answer["newer"]["message_id"] == answer["messages"][-1]["id"]
    assert said[0] in replaced(answer)
    assert back in [message["text"] for message in answer["messages"]]


async def test_a_change_that_fits_the_request_best_leads_before_the_old_statement(orchestrator: Orchestrator) -> None:
    talk = ["We retry webhooks five times.", "Noted, five retries."]
    change = "Changed my mind: three retries instead of five for webhooks."
    await log(orchestrator, "hooks", "2026-01-05", *talk, change, "Three retries now.")
    answer = await ask(orchestrator, "do webhooks get three retries instead")
    assert answer["newer"]["line"].startswith("Changed my mind")
    assert replaced(answer) == talk
    assert {one["replaced_on"][:16] for one in answer["messages"] if one["text"] in talk} == {"2026-01-05T08:02"}


async def test_a_change_of_mind_in_the_next_turn_leads_if_it_names_the_old_value(orchestrator: Orchestrator) -> None:
    back = "Changed my mind: three retries instead of five for webhooks"
    await log(orchestrator, "c", "2026-01-05", "We retry webhooks five times.", "Noted.", back, "Three then.")
    answer = await ask(orchestrator, "how often do we retry webhooks?")
    assert "three retries" in answer["newer"]["line"]
    assert replaced(answer) == ["We retry webhooks five times."]


async def test_a_value_dropped_later_in_the_conversation_leads_before_other_conversations(
    orchestrator: Orchestrator,
) -> None:
    said = ["Public booking ids are a ULID.", "Migration 31 adds them.", "And the colours?", "Blue and white."]
    back = "scrap the ULID of migration 31, eight characters with a dash"
    await log(orchestrator, "c", "2026-01-05", *said, back, "Rewritten.", "Thanks", "You are welcome.")
    await log(orchestrator, "later", "2026-03-05", "Print the ULID of a booking on tickets.", "Printed.")
    answer = await ask(orchestrator, "which public booking ids does migration 31 add")
    assert answer["newer"]["line"].startswith(back)


async def test_a_restatement_that_fits_the_request_best_leads_before_the_first_statement(
    orchestrator: Orchestrator,
) -> None:
    said = ["Our flour order: 10 sacks.", "10 sacks, 250 kg.", "And the ovens?", "Clean them weekly."]
    again = "Mail the mill our standing flour order: 14 sacks a week."
    await log(orchestrator, "bakery", "2026-01-05", *said, again, "Mailed.", "And the yeast?", "A kilo will do.")
    answer = await ask(orchestrator, "how many sacks does our standing flour order to the mill have")
    assert answer["newer"]["line"].startswith(again)
    assert replaced(answer) == []


async def test_the_copy_of_a_message_in_a_fork_is_no_later_statement(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "first", "2026-01-05", *MAIL, "And the bills?", "Those, too.", *MOVED)
    await log(orchestrator, "fork", "2026-01-05", *MAIL, "And the bills?", "Those, too.", *MOVED, "Thanks", "Sure.")
    answer = await ask(orchestrator, "what do the order mails go through again")
    assert "Resend" in answer["newer"]["line"]
    assert answer["newer"]["channel"] == answer["channel"]


async def test_the_steps_of_a_conversation_to_continue_are_no_later_statements(orchestrator: Orchestrator) -> None:
    parts = ["basket", "order", "invoice", "refund", "basket", "order", "invoice", "refund"]
    said = [
        text
        for at, part in enumerate(parts)
        for text in (f"Now we move the {part} module to ports, step {at}.", f"Moved: port {at} and its adapter.")
    ]
    await log(orchestrator, "c", "2026-01-05", *said, "Enough for today.", "Left: the tests of port 7.")
    answer = await ask(orchestrator, "continue moving the modules to ports")
    assert answer["messages"][-1]["text"] == "Left: the tests of port 7."
    assert "newer" not in answer


async def test_a_case_to_cancel_something_is_no_change(orchestrator: Orchestrator) -> None:
    more = ["쿠폰 취소하면 사용 횟수를 돌려줘야지", "주문 취소 이벤트에서 restore_coupon을 호출합니다."]
    said = ["쿠폰 동시 요청이 오면 어떻게 하지?", "unique 제약 위반을 잡아 409를 돌려줍니다."]
    await log(orchestrator, "c", "2026-01-05", *said, *more)
    assert replaced(await ask(orchestrator, "쿠폰 동시 요청 어떻게 처리하기로 했지?")) == []


async def test_a_message_that_arrived_late_counts_at_its_time(orchestrator: Orchestrator) -> None:
    back = "Changed my mind: three retries instead of five for webhooks."
    await log(orchestrator, "c", "2026-01-05", "We retry webhooks five times.", "Noted, five retries.")
    await log(orchestrator, "c", "2026-01-07", back, "Three retries now.")
    await log(orchestrator, "c", "2026-01-06", "How long do webhooks wait between retries?", "A minute.")
    answer = await ask(orchestrator, "how often do we retry webhooks?")
    assert answer["newer"]["line"] == f"{back} → Three retries now."
    assert answer["messages"][-1]["text"] == "Three retries now."
    assert "newer_messages" not in answer["metadata"]


async def test_a_further_question_in_the_same_conversation_is_no_later_statement(orchestrator: Orchestrator) -> None:
    also = ["And how long do webhooks wait between the retries?", "A minute."]
    await log(orchestrator, "d", "2026-01-05", "We retry uploads five times.", "Noted.", *also)
    assert "newer" not in await ask(orchestrator, "how often do we retry uploads?")
