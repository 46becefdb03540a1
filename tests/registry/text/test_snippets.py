"""What a hit looks like."""

import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from registry.text.analysis.edit_distance import distance, nearest, neighbours
from registry.text.ranking.snippets import MARK, one_line, snippet
from registry.text.ranking.term_weights import best_first, sum_weights
from registry.text.request.query import parse_query


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("시간 복잡도", "이 **함수**의 시간복잡도를", "이 함수의 **시간복잡도**를"),
        ("시간복잡도", "시간 복잡도를", "**시간** **복잡도**를"),
        ("middleware", "FastAPI 미들웨어를", "FastAPI **미들웨어**를"),
        ("analyzer", "edit search/analyzer.py now", "edit search/**analyzer**.py now"),
        ("getUserById", "call get_user_by_id(3)", "call **get_user_by_id**(3)"),
        ("running tests", "We run the test", "We **run** the **test**"),
        ("café", "un CAFÉ noir", "un **CAFÉ** noir"),
        ("漢字", "この漢字は", "この**漢字**は"),
        ("nothing", "of the kind", "of the kind"),
    ],
)
def test_the_hit_is_marked(query: str, text: str, expected: str) -> None:
    assert snippet(text, parse_query(query)) == expected


def test_a_long_message_is_shown_around_its_hits() -> None:
    text = "redis " + "앞 " * 300 + "redis를 미들웨어에서 썼다 " + "뒤 " * 300
    shown = snippet(text, parse_query("redis 미들웨어"), width=80)
    assert "**redis**를 **미들웨어**에서" in shown
    assert (shown[0], shown[-1]) == ("…", "…")


@given(st.text(st.sampled_from("가나다 ab\u0301\u200d👩👧🏽é"), max_size=60), st.integers(3, 30))
def test_no_visible_character_is_cut(text: str, width: int) -> None:
    shown = snippet(text, parse_query("가나 ab"), width=width).replace(MARK, "").strip("…")
    whole = one_line(text)
    assert shown in whole
    end = whole.find(shown) + len(shown)
    assert not shown or end == len(whole) or unicodedata.category(whole[end]) != "Mn" or shown != whole[:end]


def test_a_typo_has_the_word_it_was_meant_to_be_as_its_neighbour() -> None:
    assert {"kubernetes"} <= set(neighbours("kuberntes")) & set(neighbours("kubernetse")) & set(
        neighbours("kubernetess")
    )
    assert all(distance("cache", word) == 1 for word in neighbours("cache"))
    assert nearest("kubrnetis", ["kubernetes", "cabinets"]) == ["kubernetes"]


POSTINGS = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.integers(1, 50), st.sets(st.integers(1, 30), min_size=1)), min_size=1
)


@given(POSTINGS, st.integers(1, 8), st.integers(0, 4))
@example({"a": (5, {1}), "b": (5, {2})}, 1, 0)  # as good and newer, though its only term comes last
def test_leaving_out_lists_that_cannot_matter_does_not_change_the_top_k(
    postings: dict[str, tuple[int, set[int]]], most: int, common: int
) -> None:
    terms = [(token, weight) for token, (weight, _) in postings.items()]

    def holding(tokens: Sequence[str]) -> set[int]:
        return set().union(*(postings[token][1] for token in tokens))

    def look_up(tokens: Sequence[str], among: Sequence[str]) -> dict[str, set[int]]:
        return {token: postings[token][1] & holding(among) if among else postings[token][1] for token in tokens}

    def newest(held: Sequence[str], absent: Sequence[str], limit: int) -> list[int]:
        found = set.intersection(*(postings[token][1] for token in held)) - holding(absent)
        return sorted(found, reverse=True)[:limit]

    everything = sum_weights(terms, look_up, None)
    pruned = sum_weights(terms, look_up, most, min(common, len(terms)), newest)
    expected = list(best_first(everything, len(terms)))[:most]
    assert list(best_first(pruned, len(terms)))[:most] == expected
    assert [pruned[number] for number in expected] == [everything[number] for number in expected]
