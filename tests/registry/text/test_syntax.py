"""The query language, and sentences that do not use it."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from registry.text.request.syntax import Search, parse_search

NOW = datetime(2026, 3, 12, 15, 30, tzinfo=UTC)  # a Thursday


def read(text: str) -> Search:
    return parse_search(text, NOW)


def test_filters_in_a_query_are_parsed() -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ('"time complexity" redis -cluster', {"words": '"time complexity" redis', "excluded": ("cluster",)}),
        ("레디스 -클러스터", {"words": "레디스", "excluded": ("클러스터",)}),
        ("docker -이미지", {"excluded": ("이미지",)}),
        ("docker -rf", {"excluded": ()}),
        ('tag:work tag:"my tag" x', {"words": "x", "tags": ("work", "my tag")}),
        ('project:"my shop" 장바구니', {"words": "장바구니", "project": "my shop"}),
        ("source:Claude-Code x", {"words": "x", "source": "claude-code"}),
        ("role:user role:tool hello", {"words": "hello", "roles": ("user", "tool")}),
        ("after:2026-03 x", {"words": "x", "after": datetime(2026, 3, 1, tzinfo=UTC)}),
        ("after:어제 x", {"words": "x", "after": datetime(2026, 3, 11, tzinfo=UTC)}),
        ("before:2026-03-10 x", {"words": "x", "before": datetime(2026, 3, 9, 23, 59, 59, 999000, tzinfo=UTC)}),
        ('after:"last week" x', {"words": "x", "after": datetime(2026, 3, 2, tzinfo=UTC)}),
    ]
    for text, expected in cases:
        search = read(text)
        assert {name: getattr(search, name) for name in expected} == expected


def test_an_ordinary_sentence_has_no_filters() -> None:
    cases: list[str] = [
        "foo-bar baz",
        "a - b",
        "C++ vs C#",
        "https://x.y/a?tag:b=1 me@x.com",
        "xyz:abc",
        "time: 3",
        "ls -la and rm -rf",
        "git commit -amend foo",
        "--verbose flag",
        "temperature -5",
        "role:king hello",
        '"one phrase" conf*',
        'big -"two words"',
        "before:사과 x",
        "source:https://a",
        '"" a',
        "*",
        "**bold**",
        "a* b",
        'a "broken',
        "e-mail and re-run",
        "first line\n-second line\ntag:third",
        "std::vector",
        "x = y*z",
        "yesterday.py",
        "report_last_week",
        "어제처럼보이는",
    ]
    for text in cases:
        assert read(text) == Search(words=text)


@given(st.text(max_size=80))
def test_any_text_can_be_searched_for(text: str) -> None:
    assert isinstance(read(text).words, str)
