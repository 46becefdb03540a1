"""Later turns that take back what was found, though they were not found: here, or in another conversation."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from orchestrator.answer.relevance import Judged
from orchestrator.answer.reversals import sentences_that_take_back
from registry.search.retrieval import SearchResult, Wording
from registry.storage.database import ReadTransaction
from registry.storage.messages import MessageRow, by_numbers
from registry.text.analysis.analyzer import analyze
from registry.text.ranking.scores import Candidate, weight_of

HITS = 3
"""So many of the best messages are asked whether they still hold."""
SHARED = 0.3
"""So much of a wording must stand in both messages."""
LATER = 12
"""So many of the later messages that share most are read."""
SPOKEN = ("user", "assistant")


def second_thoughts(
    tx: ReadTransaction, found: SearchResult, best: Sequence[Judged], among: Collection[int]
) -> dict[str, MessageRow]:
    """For the ids of the best messages, later ones in these channels that take them back."""
    taken: dict[str, MessageRow] = {}
    for one in best[:HITS]:
        shared = _sharing(found, one.ranked.candidate, among)
        numbers = sorted(shared, key=lambda number: (-shared[number][0], -number))[:LATER]
        rows = by_numbers(tx, [one.ranked.candidate.number, *numbers]) if numbers else []
        earlier = next((row for row in rows if row.number == one.ranked.candidate.number), None)
        later = [row for row in rows if earlier and _is_later(row, earlier) and _speaks_of(row, shared[row.number][1])]
        if earlier and later:
            taken[earlier.id] = max(later, key=lambda row: (row.timestamp, row.number))
    return taken


def _sharing(found: SearchResult, hit: Candidate, among: Collection[int]) -> dict[int, tuple[float, frozenset[str]]]:
    """The messages that share enough of a wording with a hit: how much, and by which tokens."""
    sharing: dict[int, tuple[float, frozenset[str]]] = {}
    for wording in found.wordings:
        own = wording.candidates.get(hit.number)
        for other in wording.candidates.values() if own else ():
            held = own.held & other.held if own else 0
            share = weight_of(held, wording.weights) / wording.full if other.channel_id in among else 0.0
            if other.number != hit.number and share >= max(SHARED, sharing.get(other.number, (0.0,))[0]):
                sharing[other.number] = share, _tokens(wording, held)
    return sharing


def _tokens(wording: Wording, held: int) -> frozenset[str]:
    return frozenset(term.token for place, term in enumerate(wording.terms) if held >> place & 1)


def _is_later(row: MessageRow, earlier: MessageRow) -> bool:
    return row.role in SPOKEN and (row.timestamp, row.number) > (earlier.timestamp, earlier.number)


def _speaks_of(row: MessageRow, tokens: frozenset[str]) -> bool:
    return any(not tokens.isdisjoint(analyze(sentence)) for sentence in sentences_that_take_back(row.text))
