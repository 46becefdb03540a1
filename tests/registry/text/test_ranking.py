"""Term weights, budget and order of search results."""

from math import log, sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.text.ranking.matching import matched_words
from registry.text.ranking.scores import (
    Candidate,
    RankedChannel,
    bm25_scores,
    channel_bm25_scores,
    channel_word_scores,
    rank,
    rank_channels,
)
from registry.text.ranking.term_weights import full_weight, idf, weighted_terms
from registry.text.ranking.weights import MODEL
from registry.text.request.query import ParsedQuery, QueryWord, parse_query

TOTAL = 100
PLENTY = 100_000


def shares(query: ParsedQuery, frequencies: dict[str, int]) -> dict[str, float]:
    """Return the weights divided by their inverse document frequency."""
    terms, _ = weighted_terms(query, frequencies, TOTAL, PLENTY)
    return {term.token: round(term.weight / idf(term.frequency, TOTAL), 6) for term in terms}


def message(number: int, weight: float, *, channel: int = 1, seq: int = 0, role: str = "user") -> Candidate:
    return Candidate(number, channel, seq, role, length=10, weight=weight)


def order(*candidates: Candidate) -> list[int]:
    return [ranked.candidate.number for ranked in rank(bm25_scores(candidates, 10.0), candidates)]


def channels(*candidates: Candidate, lengths: dict[int, int] | None = None) -> list[RankedChannel]:
    """Rank the channels of messages whose terms weigh 1 each."""
    counted = lengths or dict.fromkeys((one.channel_id for one in candidates), 100)
    whole = channel_bm25_scores(candidates, [1.0] * 8, counted)
    return rank_channels(channel_word_scores(rank(bm25_scores(candidates, 10.0), candidates), whole), 1.0, {}, {})


def test_a_rare_token_weighs_more_and_a_common_one_more_than_nothing() -> None:
    assert idf(1, TOTAL) == pytest.approx(log(1 + 99.5 / 1.5))
    assert idf(1, TOTAL) > idf(50, TOTAL) > idf(TOTAL, TOTAL) > 0


def test_the_bigrams_of_a_word_share_its_weight() -> None:
    word = QueryWord("미들웨어", ("미들", "들웨", "웨어"), ("미들웨",))
    found = shares(ParsedQuery((word,)), dict.fromkeys(word.tokens, 5))
    bigrams = dict.fromkeys(("미들", "들웨", "웨어"), pytest.approx(1 / sqrt(3), abs=1e-5))
    assert found == {**bigrams, "미들웨": 1.0}


def test_an_identifier_counts_as_a_whole_and_by_its_parts() -> None:
    found = shares(parse_query("user_id"), {"zziduserid": 2, "user": 9, "id": 9})
    assert found == {"zziduserid": 1.0, "user": pytest.approx(0.707107), "id": pytest.approx(0.707107)}


def test_a_token_of_several_words_keeps_its_largest_weight() -> None:
    assert shares(parse_query("user_id user"), {"user": 9})["user"] == 1.0


def test_the_rarest_terms_are_kept_within_the_budget_and_the_next_four_always() -> None:
    words = ["alpha", "beta", "gamma", "delta", "kappa", "sigma"]
    frequencies = {word: 10 * place for place, word in enumerate(words, 1)}
    terms, cut = weighted_terms(parse_query(" ".join(reversed(words))), frequencies, TOTAL, budget=15)
    assert [(term.token, term.frequency) for term in terms] == list(frequencies.items())[:5]
    assert [term.token for term in cut] == ["sigma"]


def test_tokens_that_occur_nowhere_are_not_looked_up() -> None:
    assert weighted_terms(parse_query("alpha beta"), {"alpha": 0}, TOTAL, PLENTY) == ([], [])


def test_a_message_with_every_word_covers_the_request() -> None:
    query, frequencies = parse_query("redis migration"), {"redi": 4, "migrat": 7}
    terms, _ = weighted_terms(query, frequencies, TOTAL, PLENTY)
    assert sum(term.weight for term in terms) / full_weight(query, frequencies, TOTAL) == pytest.approx(1.0)


def test_a_word_that_occurs_nowhere_lowers_the_coverage() -> None:
    frequencies = {"redi": 4}
    [term], _ = weighted_terms(parse_query("redis zebra"), frequencies, TOTAL, PLENTY)
    covered = term.weight / full_weight(parse_query("redis zebra"), frequencies, TOTAL)
    assert covered == pytest.approx(idf(4, TOTAL) / (idf(4, TOTAL) + idf(0, TOTAL)))


def test_a_word_known_only_in_another_spelling_counts_as_one_word() -> None:
    assert full_weight(parse_query("fastapi"), {"zzidfastapi": 3}, TOTAL) == idf(0, TOTAL)


def test_matched_words_are_shown_as_in_the_text() -> None:
    cases: list[tuple[str, str, tuple[str, ...]]] = [
        ("시간복잡도 redis", "시간 복잡도를 줄이자", ("시간복잡도",)),
        ("fastapi", "our FastAPI server", ("fastapi",)),
        ("user_id", "userId를 넘겨라", ("user_id",)),
        ("양자컴퓨터", "컴퓨터를 껐다", ()),
    ]
    for request_text, text, expected in cases:
        assert matched_words(parse_query(request_text), text) == expected


def test_the_newer_message_wins_a_tie() -> None:
    assert order(message(1, 5.0, channel=1), message(2, 5.0, channel=2)) == [2, 1]


def test_a_message_gains_score_from_neighbouring_turns() -> None:
    own = {1: 10.0, 2: 10.0}
    first, second = rank(own, [message(1, 10.0, seq=4), message(2, 10.0, seq=5)])
    assert [first.candidate.number, second.candidate.number] == [2, 1]
    assert [first.neighbour_score, second.neighbour_score] == pytest.approx([3.0, 3.0])


def test_a_message_two_positions_away_gains_a_third_of_that() -> None:
    scores = {one.candidate.seq: one.score for one in rank({5: 10.0}, [message(n, 0.0, seq=n) for n in range(1, 10)])}
    assert scores == {
        5: 10.0,
        4: pytest.approx(3.0),
        6: pytest.approx(3.0),
        3: pytest.approx(1.0),
        7: pytest.approx(1.0),
    }


def test_a_message_gains_no_score_from_another_channel() -> None:
    ranked = rank({1: 10.0}, [message(1, 10.0, channel=1, seq=4), message(2, 0.0, channel=2, seq=5)])
    assert [one.candidate.number for one in ranked] == [1]


def test_length_normalisation_is_0_4() -> None:
    average, twice = Candidate(1, 1, 0, "user", 10, 5.0), Candidate(2, 2, 0, "user", 20, 5.0)
    scores = bm25_scores([average, twice], 10.0)
    assert scores[1] == pytest.approx(5.0)
    assert scores[2] == pytest.approx(5.0 * 2.2 / (1 + 1.2 * (0.6 + 0.4 * 2)))


def test_a_channel_is_scored_by_its_best_message_and_all_its_words() -> None:
    frequent = Candidate(1, 1, 0, "user", 10, 2.0, 0, term_bits=0b011)
    broad = [
        Candidate(2, 2, 0, "user", 10, 1.0, 0, term_bits=0b001),
        Candidate(3, 2, 5, "user", 10, 1.0, 0, term_bits=0b110),
    ]
    by_number = {one.number: one for one in channels(frequent, *broad)}
    assert by_number[1].score == pytest.approx((1 + 2 / 3) / 2)
    assert by_number[2].score == pytest.approx((1 / 2 + 1) / 2)


def test_a_repeated_word_in_a_channel_counts_less_than_another_word() -> None:
    held = ((1, 1), (2, 1), (3, 1), (4, 2))
    messages = [Candidate(n, 1 + n // 3, n, "user", 9 + n, 1.0, 0, term_bits=bits) for n, bits in held]
    again, second = channel_bm25_scores(messages, [1.0, 1.0], {1: 100, 2: 100}).values()
    assert 1.0 < again < second


def test_the_shorter_of_two_channels_with_equal_hits_comes_first() -> None:
    short, long = (Candidate(n, n, 0, "user", 10, 1.0, 0, term_bits=1) for n in (1, 2))
    assert [one.number for one in channels(short, long, lengths={1: 100, 2: 1000})] == [1, 2]


def test_a_title_adds_to_its_channels_score_and_finds_one_without_a_hit() -> None:
    found = rank_channels({1: 1.0}, 1.0, {2: 0.5, 1: 0.1}, {})
    assert [(one.number, one.score) for one in found] == [(1, 1.05), (2, 0.25)]


def test_similarity_adds_at_most_the_best_word_score() -> None:
    found = rank_channels({1: 1.0}, 1.0, {}, {2: 1.0})
    assert [(one.number, one.score) for one in found] == [(1, 1.0), (2, MODEL)]


def test_similarity_decides_if_words_cover_little_of_the_request() -> None:
    assert [one.number for one in rank_channels({1: 1.0}, 0.9, {}, {2: 1.0})] == [1, 2]
    assert [one.number for one in rank_channels({1: 1.0}, 0.3, {}, {2: 1.0})] == [2, 1]


def test_repeated_text_counts_once() -> None:
    once, often = (
        channel_bm25_scores(
            [Candidate(n, 1, n, "user", 10, 1.0, 0, term_bits=1) for n in range(count)], [1.0], {1: 100}
        )
        for count in (1, 9)
    )
    assert once == often


def test_the_newer_of_two_equal_channels_comes_first() -> None:
    assert [one.number for one in channels(message(1, 5.0, channel=1), message(2, 5.0, channel=2))] == [2, 1]


CANDIDATES = st.lists(
    st.builds(
        Candidate,
        number=st.integers(1, 50),
        channel_id=st.integers(1, 4),
        seq=st.integers(0, 6),
        role=st.sampled_from(["user", "assistant", "system"]),
        length=st.integers(0, 400),
        weight=st.floats(0, 50),
        term_bits=st.integers(0, 7),
    ),
    max_size=20,
    unique_by=(lambda c: c.number, lambda c: (c.channel_id, c.seq)),
)


@given(CANDIDATES, st.randoms(use_true_random=False), st.floats(0, 100))
def test_the_order_of_candidates_does_not_matter(candidates: list[Candidate], random: Random, average: float) -> None:
    shuffled = random.sample(candidates, len(candidates))
    assert bm25_scores(shuffled, average) == bm25_scores(candidates, average)
    own = bm25_scores(candidates, average)
    assert rank(own, shuffled) == rank(own, candidates)
    lengths = {number: 50 for number in range(1, 5)}
    assert channel_bm25_scores(shuffled, [1.0] * 3, lengths) == channel_bm25_scores(candidates, [1.0] * 3, lengths)


@given(CANDIDATES)
def test_scores_are_the_sum_of_their_parts(candidates: list[Candidate]) -> None:
    for ranked in rank(bm25_scores(candidates, 50.0), candidates):
        assert ranked.score == pytest.approx(ranked.base_score + ranked.neighbour_score, abs=1e-8)


@given(CANDIDATES)
def test_a_channel_scores_at_most_one(candidates: list[Candidate]) -> None:
    for one in channels(*candidates):
        assert 0 <= one.score <= 1
