"""Which tags are suggested for a session, from its title, its first words and its summary."""

from __future__ import annotations

import pytest

from orchestrator.answer.digests.suggested_tags import suggest_tags

ENGLISH = ["", "checkout loses the basket when Stripe answers late", "Asked: checkout · Decided: ask Stripe twice"]
KOREAN = ["무릎 통증", "요즘 러닝을 하면 무릎 바깥쪽이 아파", "질문: 러닝 5km 넘어가면 무릎이 아픈데 왜 그러지"]


@pytest.mark.parametrize(
    ("texts", "tags"),
    [
        (ENGLISH, ["checkout", "stripe"]),
        (KOREAN, ["무릎", "러닝"]),
        (["", "FastAPI가 JWT를 거절해", ""], ["fastapi", "jwt"]),
        (["", "시간복잡도를 개선해야 하는 함수", ""], ["시간복잡도", "함수"]),
        (["", "장바구니가 비었어 다시 담았는데", ""], ["장바구니"]),
        (["", "ok thanks, please do that again", ""], []),
        (["", "the same problem with src/auth/tokens.py and foo@bar.com", ""], []),
    ],
)
def test_what_is_said_again_and_what_is_called_by_a_name_becomes_a_tag(texts: list[str], tags: list[str]) -> None:
    assert suggest_tags(texts, []) == tags


def test_a_tag_that_is_in_use_is_suggested_first_where_all_of_it_is_spoken_of() -> None:
    assert suggest_tags(ENGLISH, ["stripe-checkout", "basket", "stripe-refund"]) == [
        "stripe-checkout",
        "basket",
        "checkout",
    ]
