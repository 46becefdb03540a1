"""Recognise a conversation in other words, turn by turn (docs/recognition.md). Pure: transcripts in, positions out.

A model that logs its own chat leaves out tool output and shortens its answers; a client's hooks and its store have all
of it. The questions are the same in both, so an answer is looked for within the turn of its question.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from itertools import product

from registry.ingest.alignment import Positions, Transcript, Turn, matching_turns, may_be, possible_turns

ENOUGH_WORDS = 0.6  # share of the shorter answer's words that the longer one holds
SHORTENED = 0.9  # the same, if the stored answer has a match already: this may be a different one

Accept = Callable[[str, str, float, bool], bool]
"""Returns True if an answer is a stored one in other words. Arguments: the stored text, the new one, their agreement,
and whether another answer has matched the stored one already."""


def recognise_by_turns(stored: Transcript, sent: Transcript, accept: Accept) -> Positions:
    """Return for each message sent the stored one that it repeats, in the other words that `accept` accepts."""
    beside = _turns_beside(stored.turns, sent.turns, _agreeing(stored, sent))
    return _within_turns(stored, sent, beside, accept)


def recognise_shortened_resend(stored: Transcript, sent: Transcript) -> Positions:
    """Recognise a whole conversation sent again by a model: the same questions from the first on."""
    beside = list(zip(stored.turns[1:], sent.turns[1:], strict=False))
    if any(old.key != new.key for old, new in beside):
        return [None] * len(sent.utterances)
    return _within_turns(stored, sent, beside, _accept_piece)


def accept_from_client(_old: str, _new: str, agreed: float, is_taken: bool) -> bool:
    """Match the client's versions of an answer with a logged one, each once."""
    return not is_taken and agreed >= ENOUGH_WORDS


def accept_from_model(_old: str, _new: str, agreed: float, is_taken: bool) -> bool:
    """Match a model's logged answers, which may be shortened, with the client's."""
    return agreed >= (SHORTENED if is_taken else ENOUGH_WORDS)


def _accept_piece(old: str, new: str, agreed: float, _is_taken: bool) -> bool:
    return agreed == 1.0 and _MANY_LETTERS <= len(new) <= len(old)


def agreement(one: str, other: str) -> float:
    """Return the share of the shorter answer's words in the longer one, from 0 to 1; 1 only if in one piece."""
    first, second = _words(one), _words(other)
    shorter, longer = (first, second) if len(first) <= len(second) else (second, first)
    if not shorter:
        return 0.0
    part, whole = " ".join(shorter), " ".join(longer)
    is_cut = len(part) >= _MANY_LETTERS and whole.startswith(part)
    if f" {part} " in f" {whole} " or is_cut:
        return 1.0
    known = set(longer)
    return min(0.99, sum(word in known for word in shorter) / len(shorter))


def _agreeing(stored: Transcript, sent: Transcript) -> set[tuple[int, int]]:
    unclear = _unclear(stored.turns, sent.turns)
    if len(unclear) > 400:  # limit of pairs whose answers are compared
        return set()
    ours = stored.answer_texts([stored.turns[i] for i, _ in unclear])
    theirs = sent.answer_texts([sent.turns[j] for _, j in unclear])
    return {
        pair
        for pair, olds, news in zip(unclear, ours, theirs, strict=True)
        if any(agreement(old, new) >= SHORTENED for old in olds for new in news)
    }


def _unclear(stored: Sequence[Turn], sent: Sequence[Turn]) -> list[tuple[int, int]]:
    """Return the pairs of turns (stored, sent) with a repeated question and no equal answer."""
    asked = Counter(turn.key for turns in (stored, sent) for turn in turns)
    return [
        (i, j)
        for j, places in enumerate(possible_turns(stored, sent))
        for i in reversed(places)
        if asked[sent[j].key] > 2 and not stored[i].reply_digests & sent[j].reply_digests
    ]


def _turns_beside(
    stored: Sequence[Turn], sent: Sequence[Turn], agreeing: Collection[tuple[int, int]]
) -> list[tuple[Turn, Turn]]:
    """Pair the turns that ask the same, and the messages sent before the first question with their likely turn.

    Turns that the two sides have in another order are paired too.
    """
    matched = matching_turns(stored, sent, agreeing)
    beside = [(stored[i], sent[j]) for i, j in [*matched, *_left_over(stored, sent, matched)]]
    if sent[0].replies:
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
        same = places[sent[j].key]
        if j not in news and same and may_be(stored[same[-1]], sent[j]):
            found.append((same.pop(), j))
    return found


_Unmatched = tuple[list[int], list[int], set[int]]
"""Stored and new answers of two turns that may be the same in other words, and the stored ones that are taken."""


def _within_turns(
    stored: Transcript, sent: Transcript, beside: Sequence[tuple[Turn, Turn]], accept: Accept
) -> Positions:
    """Match questions, then equal messages, then answers in other words, within matched turns."""
    found: Positions = [None] * len(sent.utterances)
    unmatched = []
    for old, new in beside:
        if new.question is not None:
            found[new.question] = old.question
        taken = _take_equal(stored, sent, old, new, found)
        news = [at for at in sent.answers(new) if found[at] is None]
        if news and (olds := stored.answers(old)):
            unmatched.append((olds, news, taken))
    _take_paraphrased(stored, sent, unmatched, found, accept)
    return found


def _take_equal(stored: Transcript, sent: Transcript, old: Turn, new: Turn, found: Positions) -> set[int]:
    places: dict[tuple[bytes, str | None], list[int]] = defaultdict(list)
    for at in reversed(old.replies):
        places[stored.utterances[at].digest, stored.utterances[at].native_id].append(at)
    taken = set()
    for at in new.replies:
        same = places[sent.utterances[at].digest, sent.utterances[at].native_id]
        if found[at] is None and same:
            place = same.pop()
            found[at] = place
            taken.add(place)
    return taken


def _take_paraphrased(
    stored: Transcript, sent: Transcript, unmatched: Sequence[_Unmatched], found: Positions, accept: Accept
) -> None:
    old_texts = stored.texts([at for olds, _, _ in unmatched for at in olds])
    new_texts = sent.texts([at for _, news, _ in unmatched for at in news])
    for olds, news, taken in unmatched:
        scored = [(agreement(old_texts[old], new_texts[new]), old, new) for old, new in product(olds, news)]
        for score, old, new in sorted(scored, reverse=True):
            if found[new] is None and accept(old_texts[old], new_texts[new], score, old in taken):
                found[new] = old
                taken.add(old)


_WORD = re.compile(r"\w+")
_MANY_LETTERS = 20


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
