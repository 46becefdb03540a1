"""Snippets of search hits."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from registry.text.analysis.edit_distance import words_one_edit_away
from registry.text.ranking.scores import total_weight
from registry.text.ranking.snippets import MARK, one_line, snippet
from registry.text.ranking.term_weights import best_first, terms_by_message
from registry.text.request.query import parse_query


def test_matched_words_are_marked() -> None:
    cases: list[tuple[str, str, str]] = [
        ("시간 복잡도", "이 **함수**의 시간복잡도를", "이 함수의 **시간복잡도**를"),
        ("시간복잡도", "시간 복잡도를", "**시간** **복잡도**를"),
        ("analyzer", "edit search/analyzer.py now", "edit search/**analyzer**.py now"),
        ("getUserById", "call get_user_by_id(3)", "call **get_user_by_id**(3)"),
        ("running tests", "We run the test", "We **run** the **test**"),
        ("café", "un CAFÉ noir", "un **CAFÉ** noir"),
        ("漢字", "この漢字は", "この**漢字**は"),
        ("nothing", "of the kind", "of the kind"),
    ]
    for query, text, expected in cases:
        assert snippet(text, parse_query(query)) == expected


def test_a_long_message_is_shown_around_its_hits() -> None:
    text = "redis " + "앞 " * 300 + "redis를 미들웨어에서 썼다 " + "뒤 " * 300
    shown = snippet(text, parse_query("redis 미들웨어"), width=80)
    assert "**redis**를 **미들웨어**에서" in shown
    assert (shown[0], shown[-1]) == ("…", "…")


@given(st.text(st.sampled_from("가나다 ab\u0301\u200d👩👧🏽é"), max_size=60), st.integers(3, 30))
def test_snippets_do_not_cut_visible_characters(text: str, width: int) -> None:
    shown = snippet(text, parse_query("가나 ab"), width=width).replace(MARK, "").strip("…")
    whole = one_line(text)
    assert shown in whole
    end = whole.find(shown) + len(shown)
    assert not shown or end == len(whole) or unicodedata.category(whole[end]) != "Mn" or shown != whole[:end]


def test_the_intended_word_of_a_typo_is_a_neighbour() -> None:
    assert {"kubernetes"} <= set(words_one_edit_away("kuberntes")) & set(words_one_edit_away("kubernetse")) & set(
        words_one_edit_away("kubernetess")
    )


POSTINGS = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.integers(1, 50), st.sets(st.integers(1, 30), min_size=1)), min_size=1
)


@given(POSTINGS)
def test_a_message_sums_the_weights_of_the_terms_it_holds(postings: dict[str, tuple[int, set[int]]]) -> None:
    terms = terms_by_message(holders for _, holders in postings.values())
    sums = {bits: total_weight(bits, [weight for weight, _ in postings.values()]) for bits in terms.values()}
    everything = set.union(*(holders for _, holders in postings.values()))
    assert {number: sums[bits] for number, bits in terms.items()} == {
        number: sum(weight for weight, holders in postings.values() if number in holders) for number in everything
    }
    ordered = list(best_first(terms, sums))
    assert ordered == sorted(terms, key=lambda number: (sums[terms[number]], number), reverse=True)
