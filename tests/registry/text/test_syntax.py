"""The query language, and sentences that do not use it."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from registry.text.request.syntax import Search, parse_search
from registry.text.times.time_words import find_times

NOW = datetime(2026, 3, 12, 15, 30, tzinfo=UTC)  # a Thursday


def read(text: str) -> Search:
    return parse_search(text, NOW)


def test_filters_in_a_query_are_parsed() -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ('"time complexity" redis -cluster', {"words": '"time complexity" redis', "excluded": ("cluster",)}),
        ("레디스 -클러스터", {"words": "레디스", "excluded": ("클러스터",)}),
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


def test_time_words_are_spans() -> None:
    cases: list[tuple[str, str, str]] = [
        ("yesterday", "03-11", "03-11"),
        ("the day before yesterday", "03-10", "03-10"),
        ("3 days ago", "03-09", "03-09"),
        ("last Tuesday", "03-10", "03-10"),
        ("last thursday", "03-05", "03-05"),
        ("last week", "03-02", "03-08"),
        ("two weeks ago", "02-23", "03-02"),
        ("this month", "03-01", "03-31"),
        ("last month's", "02-01", "02-28"),
        ("in the last 3 days", "03-09", "03-12"),
        ("어제", "03-11", "03-11"),
        ("그저께", "03-10", "03-10"),
        ("3일 전에", "03-09", "03-09"),
        ("지난주에", "03-02", "03-08"),
        ("저번 주", "03-02", "03-08"),
        ("지난 화요일", "03-10", "03-10"),
        ("지난주 화요일", "03-03", "03-03"),
        ("이번 주 월요일", "03-09", "03-09"),
        ("이번 달", "03-01", "03-31"),
        ("지난달", "02-01", "02-28"),
        ("한 달 전", "02-01", "02-28"),
        ("최근 3일", "03-09", "03-12"),
    ]
    for text, start, end in cases:
        [word] = find_times(f"redis {text} cache", NOW)
        assert word.span.start is not None
        assert word.span.end is not None
        assert (f"{word.span.start:%m-%d}", f"{word.span.end:%m-%d}") == (start, end)


@given(st.text(max_size=80))
def test_any_text_can_be_searched_for(text: str) -> None:
    assert isinstance(read(text).words, str)


def test_a_korean_word_can_be_excluded_next_to_a_command() -> None:
    assert read("docker -이미지").excluded == ("이미지",)
    assert read("docker -rf").excluded == ()
