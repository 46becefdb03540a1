"""Match the messages of two transcripts turn by turn, also if answers were shortened (docs/recognition.md). Pure.

A model that logs its own chat leaves out tool output and shortens its answers; a client's hooks and its store have the
full text. The questions are the same in both, so each answer is compared only within the turn of its question.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from itertools import product

from registry.ingest.alignment import Positions, Transcript, Turn, can_match, candidate_turns, matching_turns

MIN_AGREEMENT = 0.6  # least share of the shorter answer's words in the longer one
MIN_SURE_AGREEMENT = 0.9  # the same for a second match of a stored answer, which may be a different answer

Accept = Callable[[str, str, float, bool], bool]
"""Returns True if a sent answer is the stored one in other words. Arguments: the stored text, the sent text, their
agreement, and whether another answer has matched the stored one already."""


def match_by_turns(stored: Transcript, sent: Transcript, accept: Accept) -> Positions:
    """Match each sent message with the stored one that it repeats; `accept` decides about other words."""
    pairs = _pair_turns(stored.turns, sent.turns, _agreeing_pairs(stored, sent))
    return _match_in_turns(stored, sent, pairs, accept)


def match_shortened_resend(stored: Transcript, sent: Transcript) -> Positions:
    """Match a whole conversation that a model sends again: all its questions are the same, some answers shortened."""
    pairs = list(zip(stored.turns[1:], sent.turns[1:], strict=False))
    if any(old.key != new.key for old, new in pairs):
        return [None] * len(sent.utterances)
    return _match_in_turns(stored, sent, pairs, _accept_piece)


def accept_from_client(_old: str, _new: str, agreed: float, is_taken: bool) -> bool:
    """Accept a client's answer for a logged one, each logged one once."""
    return not is_taken and agreed >= MIN_AGREEMENT


def accept_from_model(_old: str, _new: str, agreed: float, is_taken: bool) -> bool:
    """Accept a model's logged answer, which may be a part of the client's, so that several match one."""
    return agreed >= (MIN_SURE_AGREEMENT if is_taken else MIN_AGREEMENT)


def _accept_piece(old: str, new: str, agreed: float, _is_taken: bool) -> bool:
    return agreed == 1.0 and _MIN_LETTERS <= len(new) <= len(old)


def agreement(one: str, other: str) -> float:
    """Return the share of the shorter text's words in the longer one, from 0 to 1; 1 only for a contiguous part."""
    first, second = _words(one), _words(other)
    shorter, longer = (first, second) if len(first) <= len(second) else (second, first)
    if not shorter:
        return 0.0
    part, whole = " ".join(shorter), " ".join(longer)
    is_cut = len(part) >= _MIN_LETTERS and whole.startswith(part)
    if f" {part} " in f" {whole} " or is_cut:
        return 1.0
    known = set(longer)
    return min(0.99, sum(word in known for word in shorter) / len(shorter))


def _agreeing_pairs(stored: Transcript, sent: Transcript) -> set[tuple[int, int]]:
    ambiguous = _ambiguous_pairs(stored.turns, sent.turns)
    if len(ambiguous) > 400:  # limit of pairs whose answers are compared
        return set()
    ours = stored.answer_texts([stored.turns[i] for i, _ in ambiguous])
    theirs = sent.answer_texts([sent.turns[j] for _, j in ambiguous])
    return {
        pair
        for pair, stored_texts, sent_texts in zip(ambiguous, ours, theirs, strict=True)
        if any(agreement(old, new) >= MIN_SURE_AGREEMENT for old in stored_texts for new in sent_texts)
    }


def _ambiguous_pairs(stored: Sequence[Turn], sent: Sequence[Turn]) -> list[tuple[int, int]]:
    """Return the pairs of turns (stored, sent) that share no answer, and whose question was asked several times."""
    question_counts = Counter(turn.key for turns in (stored, sent) for turn in turns)
    return [
        (i, j)
        for j, positions in enumerate(candidate_turns(stored, sent))
        for i in reversed(positions)
        if question_counts[sent[j].key] > 2 and not stored[i].reply_digests & sent[j].reply_digests
    ]


def _pair_turns(
    stored: Sequence[Turn], sent: Sequence[Turn], agreeing: Collection[tuple[int, int]]
) -> list[tuple[Turn, Turn]]:
    """Pair the turns with the same question, also where the two sides have them in another order.

    The messages sent before the first question are paired with the turn that probably contains them.
    """
    matched = matching_turns(stored, sent, agreeing)
    pairs = [(stored[i], sent[j]) for i, j in [*matched, *_pair_reordered(stored, sent, matched)]]
    if sent[0].replies:
        first = matched[0] if matched else None
        end = first[0] - 1 if first and first[1] == 1 else len(stored) - 1
        pairs.append((stored[max(0, end)], sent[0]))
    return pairs


def _pair_reordered(
    stored: Sequence[Turn], sent: Sequence[Turn], matched: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    matched_stored, matched_sent = {i for i, _ in matched}, {j for _, j in matched}
    positions: dict[bytes, list[int]] = defaultdict(list)
    for i in reversed(range(1, len(stored))):
        if i not in matched_stored:
            positions[stored[i].key].append(i)
    found = []
    for j in range(1, len(sent)):
        same = positions[sent[j].key]
        if j not in matched_sent and same and can_match(stored[same[-1]], sent[j]):
            found.append((same.pop(), j))
    return found


_Unmatched = tuple[list[int], list[int], set[int]]
"""Stored and sent answers of a pair of turns, still to be compared; and the stored answers with a match already."""


def _match_in_turns(
    stored: Transcript, sent: Transcript, pairs: Sequence[tuple[Turn, Turn]], accept: Accept
) -> Positions:
    """Within each pair of turns, match the questions, then equal messages, then answers in other words."""
    found: Positions = [None] * len(sent.utterances)
    unmatched = []
    for old, new in pairs:
        if new.question is not None:
            found[new.question] = old.question
        matched = _match_equal(stored, sent, old, new, found)
        sent_answers = [at for at in sent.answers(new) if found[at] is None]
        if sent_answers and (stored_answers := stored.answers(old)):
            unmatched.append((stored_answers, sent_answers, matched))
    _match_paraphrased(stored, sent, unmatched, found, accept)
    return found


def _match_equal(stored: Transcript, sent: Transcript, old: Turn, new: Turn, found: Positions) -> set[int]:
    """Match the replies of two turns with equal words, those with the same client's id first.

    A message that a model logs, or that comes from a document, has no id. It may repeat one with any id.
    """
    by_id: dict[tuple[bytes, str | None], list[int]] = defaultdict(list)
    by_words: dict[bytes, list[int]] = defaultdict(list)
    for at in reversed(old.replies):
        reply = stored.utterances[at]
        by_id[reply.digest, reply.native_id].append(at)
        by_words[reply.digest].append(at)
    matched = set[int]()
    for at in new.replies:
        reply = sent.utterances[at]
        without_id = by_id[reply.digest, None] if reply.native_id else by_words[reply.digest]
        for same in (by_id[reply.digest, reply.native_id], without_id):
            while same and same[-1] in matched:
                same.pop()
            if found[at] is None and same:
                found[at] = position = same.pop()
                matched.add(position)
    return matched


def _match_paraphrased(
    stored: Transcript, sent: Transcript, unmatched: Sequence[_Unmatched], found: Positions, accept: Accept
) -> None:
    old_texts = stored.texts([at for stored_answers, _, _ in unmatched for at in stored_answers])
    new_texts = sent.texts([at for _, sent_answers, _ in unmatched for at in sent_answers])
    for stored_answers, sent_answers, matched in unmatched:
        pairs = product(stored_answers, sent_answers)
        scored = [(agreement(old_texts[old], new_texts[new]), old, new) for old, new in pairs]
        for score, old, new in sorted(scored, reverse=True):
            if found[new] is None and accept(old_texts[old], new_texts[new], score, old in matched):
                found[new] = old
                matched.add(old)


_WORD = re.compile(r"\w+")
_MIN_LETTERS = 20


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
