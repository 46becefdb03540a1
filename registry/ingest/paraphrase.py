"""Two tellings of one conversation laid beside each other, turn by turn (issue 3, merging). Pure: lines in, pairs out.

A model that logs its own chat leaves out what tools said and shortens its answers, a client's hooks and its store tell
all of it. The questions are the same in both: they are the pegs, and an answer is looked for within its own turn.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from registry.domain import Role
from registry.ingest.turn_alignment import Line, Turn, matching_turns, may_be, possible_pairs, turns_of

MOST_UNCLEAR = 400
"""So many pairs of turns that ask the same are told apart by what their answers say."""
ENOUGH_WORDS = 0.6
"""So much of the shorter answer stands in the longer one."""
SHORTENED = 0.9
"""So much, where the answer has been told otherwise already: it may be another one."""


Texts = Callable[[Sequence[int]], Mapping[int, str]]
"""Gives the texts of the lines at some positions: only few are needed."""
Pairs = list[int | None]
Fit = Callable[[str, str, float, bool], bool]
"""Whether an answer tells a stored one again: the stored text, the new one, how much they agree, and whether the
stored one has been told already by another line."""


def retold(stored: Sequence[Line], sent: Sequence[Line], stored_texts: Texts, sent_texts: Texts, fit: Fit) -> Pairs:
    """For each line sent the stored line that it tells again, by position, or None. `fit`: in which other words."""
    of_stored, of_sent = turns_of(stored), turns_of(sent)
    agreeing = _agreeing(stored, sent, of_stored, of_sent, stored_texts, sent_texts)
    beside = _turns_beside(of_stored, of_sent, agreeing)
    return _within_turns(stored, sent, beside, stored_texts, sent_texts, fit)


def as_before(stored: Sequence[Line], sent: Sequence[Line], stored_texts: Texts, sent_texts: Texts) -> Pairs:
    """As `retold`, for a model that tells all again that it has told before: the same questions from the first on."""
    of_stored, of_sent = turns_of(stored), turns_of(sent)
    beside = list(zip(of_stored[1:], of_sent[1:], strict=False))
    if any(old.key != new.key for old, new in beside):
        return [None] * len(sent)
    return _within_turns(stored, sent, beside, stored_texts, sent_texts, _is_piece)


def _within_turns(
    stored: Sequence[Line],
    sent: Sequence[Line],
    beside: Sequence[tuple[Turn, Turn]],
    stored_texts: Texts,
    sent_texts: Texts,
    fit: Fit,
) -> Pairs:
    pairs: Pairs = [None] * len(sent)
    loose: list[tuple[list[int], list[int], set[int]]] = []
    for old, new in beside:
        if new.question is not None:
            pairs[new.question] = old.question
        told = _equal(stored, sent, old, new, pairs)
        olds = [at for at in old.answers if stored[at].role == Role.ASSISTANT]
        news = [at for at in new.answers if sent[at].role == Role.ASSISTANT and pairs[at] is None]
        if olds and news:
            loose.append((olds, news, told))
    old_texts = stored_texts([at for olds, _, _ in loose for at in olds])
    new_texts = sent_texts([at for _, news, _ in loose for at in news])
    for olds, news, told in loose:
        scored = [(agreement(old_texts[old], new_texts[new]), old, new) for old in olds for new in news]
        for score, old_at, new_at in sorted(scored, reverse=True):
            if pairs[new_at] is None and fit(old_texts[old_at], new_texts[new_at], score, old_at in told):
                pairs[new_at] = old_at
                told.add(old_at)
    return pairs


def by_store(_old: str, _new: str, agreed: float, is_told: bool) -> bool:
    """What a client's hooks and store tell of an answer that a model has logged: each of them once."""
    return not is_told and agreed >= ENOUGH_WORDS


def by_model(_old: str, _new: str, agreed: float, is_told: bool) -> bool:
    """What a model logs of an answer that its client tells: it may shorten it now so, now so."""
    return agreed >= (SHORTENED if is_told else ENOUGH_WORDS)


def _is_piece(old: str, new: str, agreed: float, _is_told: bool) -> bool:
    """What a model logs of an answer that it has logged before: a piece of it is it, else it was given anew."""
    return agreed == 1.0 and _MANY_LETTERS <= len(new) <= len(old)


def agreement(one: str, other: str) -> float:
    """How much of the shorter of two answers stands in the longer, in words, from 0 to 1; 1 only if in one piece."""
    first, second = _words(one), _words(other)
    shorter, longer = (first, second) if len(first) <= len(second) else (second, first)
    if not shorter:
        return 0.0
    if f" {' '.join(shorter)} " in f" {' '.join(longer)} " or _is_cut(" ".join(shorter), " ".join(longer)):
        return 1.0
    known = set(longer)
    return min(0.99, sum(word in known for word in shorter) / len(shorter))


def _is_cut(shorter: str, longer: str) -> bool:
    """In the middle of a word."""
    return len(shorter) >= _MANY_LETTERS and longer.startswith(shorter)


def _agreeing(
    stored: Sequence[Line],
    sent: Sequence[Line],
    of_stored: Sequence[Turn],
    of_sent: Sequence[Turn],
    stored_texts: Texts,
    sent_texts: Texts,
) -> set[tuple[int, int]]:
    """Of the turns that ask what is asked more than once, those whose answers agree: shortened ones tell them apart."""
    asked = Counter(turn.key for turns in (of_stored, of_sent) for turn in turns)
    unclear = [(i, j) for j, i in possible_pairs(of_stored, of_sent) if asked[of_sent[j].key] > 2]
    unclear = [(i, j) for i, j in unclear if not of_stored[i].said & of_sent[j].said]
    if not unclear or len(unclear) > MOST_UNCLEAR:
        return set()
    olds = {i: [at for at in of_stored[i].answers if stored[at].role == Role.ASSISTANT] for i, _ in unclear}
    news = {j: [at for at in of_sent[j].answers if sent[at].role == Role.ASSISTANT] for _, j in unclear}
    old_texts = stored_texts([at for answers in olds.values() for at in answers])
    new_texts = sent_texts([at for answers in news.values() for at in answers])

    def agree(i: int, j: int) -> bool:
        return any(agreement(old_texts[a], new_texts[b]) >= SHORTENED for a in olds[i] for b in news[j])

    return {(i, j) for i, j in unclear if agree(i, j)}


def _turns_beside(
    stored: Sequence[Turn], sent: Sequence[Turn], agreeing: Collection[tuple[int, int]]
) -> list[tuple[Turn, Turn]]:
    """The turns that ask the same, and what was sent before its first question beside where that may stand.

    Where two tellings disagree about the order, what is left over is told once all the same.
    """
    matched = matching_turns(stored, sent, agreeing)
    beside = [(stored[i], sent[j]) for i, j in [*matched, *_left_over(stored, sent, matched)]]
    if sent[0].answers:
        first = matched[0] if matched else None
        end = first[0] - 1 if first and first[1] == 1 else len(stored) - 1
        beside.append((stored[max(0, end)], sent[0]))
    return beside


def _left_over(
    stored: Sequence[Turn], sent: Sequence[Turn], matched: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    olds, news = {i for i, _ in matched}, {j for _, j in matched}
    places: dict[bytes, list[int]] = defaultdict(list)
    for i in reversed(range(1, len(stored))):
        if i not in olds:
            places[stored[i].key].append(i)
    found = []
    for j in range(1, len(sent)):
        if j not in news and places[sent[j].key] and may_be(stored[places[sent[j].key][-1]], sent[j]):
            found.append((places[sent[j].key].pop(), j))
    return found


def _equal(stored: Sequence[Line], sent: Sequence[Line], old: Turn, new: Turn, pairs: Pairs) -> set[int]:
    """Pair the lines of two turns that say the same words; the stored ones used."""
    places: dict[Line, list[int]] = defaultdict(list)
    for at in reversed(old.answers):
        places[stored[at]].append(at)
    used = set()
    for at in new.answers:
        if pairs[at] is None and places[sent[at]]:
            place = places[sent[at]].pop()
            pairs[at] = place
            used.add(place)
    return used


_WORD = re.compile(r"\w+")
_MANY_LETTERS = 20


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
