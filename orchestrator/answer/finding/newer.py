"""Find a later statement on the same thing, and tell whether it replaces what an earlier one says.

Near is enough to show a later statement (`newer`); an earlier one is called replaced only where a sentence says so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from heapq import nlargest
from typing import Any, NamedTuple

from orchestrator.answer.delivery import Turn, within
from orchestrator.answer.finding.choosing import Choice, past_ends
from orchestrator.answer.finding.looking_up import Lookup
from orchestrator.answer.finding.relevance import Judged
from registry.domain import Role, format_time
from registry.search.candidates import place_of
from registry.search.retrieval import SearchResult
from registry.search.sessions import surroundings
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow, by_numbers
from registry.storage.database import ReadTransaction
from registry.storage.index.engines import index_of
from registry.text.analysis.analyzer import analyze
from registry.text.ranking.snippets import passage
from registry.text.ranking.term_weights import idf
from registry.text.request.understanding import Understood

STRETCH = 4  # messages in which a suggestion is made, taken up and carried out
RARE = 12  # tokens of a statement that a later one on the same thing is found by, besides the question's
NEAR = 0.6  # share of the best message's score at which an earlier one may be the statement that was changed
LATER = 40  # messages that hold most of them are read
LEAST = 0.3  # share of their weight, and of the score, that a later statement holds
SCORE = 0.3  # what the score of its conversation counts, as a share of the best one's
SAME = 0.2  # share of an earlier statement's weight in the best hit, if that is the later one
NAMED = 0.15  # what a sentence counts that names a change and the earlier value
LINE = 100  # characters of it that an answer leads with
SHOWN = 400  # characters of a message that are compared


class Change(NamedTuple):
    """A later statement as an answer shows it, and for the ids of messages that it replaces when it was made."""

    newer: dict[str, Any] | None
    replaced_on: Mapping[str, str]
    turn: Turn | None = None
    """The turn of this conversation that makes it."""


NO_CHANGE = Change(None, {})


def change_of(asked: Lookup[Any], choice: Choice) -> Change:
    """Return the later statement on the same thing, in another conversation in scope or later in this one."""
    chosen, kept = choice.channel, choice.kept
    tx, said = asked.tx, asked.said
    if said.in_the_past or _is_dated(chosen, said):
        return NO_CHANGE
    hits = [row for row in _rows(tx, kept[:6]) if row.role in _SPOKEN and not _ASKS.search(row.text)]
    if not hits:
        return NO_CHANGE
    hit, near = hits[0], {one.ranked.candidate.number for one in kept[:6] if one.score >= NEAR * kept[0].score}
    statement = _stretch(tx, hit.channel_number, hit.turn)
    later, alike = _best_later(asked, choice, statement) if statement else (None, 0.0)
    if later:
        return _changed(asked, choice, statement, later, is_alike=alike >= LEAST)
    return _change_by_hit(asked, choice, hit, [row for row in hits if row.number in near and row.turn < hit.turn])


def _change_by_hit(asked: Lookup[Any], choice: Choice, hit: MessageRow, earlier_hits: Sequence[MessageRow]) -> Change:
    """Return the change that the best hit itself makes to the first of the earlier hits, if it speaks of the same."""
    if not earlier_hits:
        return NO_CHANGE
    tx, earlier = asked.tx, min(earlier_hits, key=lambda row: int(row.seq))
    before = [row for row in _stretch(tx, hit.channel_number, earlier.turn) if row.seq < hit.turn]
    if hit.text in [row.text for row in before]:  # said again, not changed
        return NO_CHANGE
    weights = _subject(tx, choice.found, before)
    shared = sum(weights[token] for token in weights.keys() & set(analyze(hit.text[:SHOWN])))
    if shared < SAME * sum(weights.values()):
        return NO_CHANGE
    return _changed(asked, choice, before, hit, is_alike=True)


def _changed(
    asked: Lookup[Any], choice: Choice, statement: Sequence[Any], later: MessageRow, *, is_alike: bool
) -> Change:
    """Return the change that a later message makes."""
    tx, found = asked.tx, choice.found
    around = _stretch(tx, later.channel_number, later.seq)
    turn = (later.channel_number, later.turn) if later.channel_number == choice.channel.number else None
    if turn:
        around = [row for row in around if row.turn == later.turn]
    replaced = _latest_turn(_replaced_by(tx, statement, around, found)) if is_alike else []
    when = format_time(around[0].timestamp)
    return Change(_newer(later, around, found), {row.id: when for row in replaced}, turn)


def _rows(tx: ReadTransaction, judged: Sequence[Judged]) -> list[MessageRow]:
    """Return the rows of some messages, in that order."""
    rows = {row.number: row for row in by_numbers(tx, [one.ranked.candidate.number for one in judged])}
    return [rows[number] for one in judged if (number := one.ranked.candidate.number) in rows]


def _stretch(tx: ReadTransaction, channel_number: int, seq: int) -> list[Any]:
    """Return the spoken messages from a position on, in which a suggestion is taken up and carried out."""
    around = surroundings(tx, {channel_number: list(range(seq, seq + STRETCH))}, 0)[channel_number]
    return [row for row in around if row.role in _SPOKEN]


def _best_later(asked: Lookup[Any], choice: Choice, statement: Sequence[Any]) -> tuple[MessageRow | None, float]:
    """Return the later message whose stretch holds most of the question's terms and of the statement's rare ones; the
    search's own score speaks for it, too. Return also the share that it holds."""
    tx, last, scores = asked.tx, statement[-1], _scores(choice)
    weights = _subject(tx, choice.found, statement)
    values = weights.keys() - {token for word in choice.found.query.words for token in word.exact}
    place = place_of(tx, asked.scope)
    held: dict[int, set[str]] = defaultdict(set)
    for token, numbers in place.holding(list(weights), ()).items():
        for number in numbers:
            held[number].add(token)

    def share(numbers: Iterable[int]) -> float:
        tokens = set().union(*(held[number] for number in numbers))
        return sum(weights[token] for token in tokens) / sum(weights.values())

    others = held.keys() - {row.number for row in statement}
    by_channel: dict[int, list[MessageRow]] = defaultdict(list)
    for row in by_numbers(tx, nlargest(LATER, others, key=lambda number: (share([number]), number))):
        is_later = row.seq > last.seq if row.channel_number == last.channel_number else row.timestamp > last.timestamp
        if is_later and row.role in _SPOKEN:
            by_channel[row.channel_number].append(row)
    best, most, alike = None, LEAST, 0.0
    for number, rows in by_channel.items():
        is_same = number == choice.channel.number
        for row in rows:
            near = [one.number for one in rows if row.seq <= one.seq < row.seq + (2 if is_same else STRETCH)]
            shared = share(near)
            gained = shared + SCORE * max(scores.get(one, 0.0) for one in (near if is_same else [-number]))
            gained += NAMED if _names_a_value(row, values) else 0.0
            if gained > most:
                best, most, alike = row, gained, shared
    return best, alike


def _names_a_value(row: MessageRow, values: Set[str]) -> bool:
    """Return True if a sentence names a change, and a rare token of the earlier statement: "from Stripe to Redsys"."""
    return any(not values.isdisjoint(analyze(sentence)) for sentence in _changing(row.text))


def _scores(choice: Choice) -> dict[int, float]:
    """Return the scores of messages, and of channels by their negative numbers, as shares of the best."""
    scores = {-row.number: score / choice.candidates[0][1] for row, score in choice.candidates}
    inside = choice.inside
    return scores | {one.ranked.candidate.number: one.score / (inside[0].score or 1.0) for one in inside}


def _subject(tx: ReadTransaction, found: SearchResult, statement: Sequence[Any]) -> dict[str, float]:
    """Return the question's terms and the rarest tokens of a statement that occur elsewhere, with their rarity."""
    said = {token for row in statement for token in analyze(row.text[:SHOWN])}
    question = {token for word in found.query.words for token in word.exact}
    size = found.corpus.size
    frequencies = index_of(tx).frequencies(tx, said | question, size)
    often = [token for token in said - question if frequencies.get(token, 0) > 1]
    rare = sorted(often, key=lambda token: (frequencies[token], token))[:RARE]
    known = (token for token in (*question, *rare) if frequencies.get(token))
    return {token: idf(frequencies[token], size) for token in known}


def _latest_turn(replaced: Sequence[Any]) -> list[Any]:
    """Return the messages of the last turn only: it settled what the ones before it were about."""
    last = max((row.turn for row in replaced), default=0)
    return [row for row in replaced if row.turn == last]


def _is_dated(chosen: ChannelRow, said: Understood) -> bool:
    """Return True if a date in the request asks for what held then, and does not only speak of that day."""
    return any(chosen.created_at <= end for end in past_ends(said))


def _newer(hit: MessageRow, around: Sequence[Any], found: SearchResult) -> dict[str, Any]:
    """Return the hit and the last answer behind it, in which a suggestion that was taken up is carried out."""
    answers = [row for row in around if row.seq > hit.seq and row.role == Role.ASSISTANT and not _ASKS.search(row.text)]
    shown = [hit, *answers[-1:]]
    line = " → ".join(within(passage(row.text, found.query), LINE // len(shown)) for row in shown)
    return {
        "when": format_time(shown[-1].timestamp),
        "channel": hit.channel,
        "source": hit.source,
        "line": line,
        "message_id": shown[-1].id,
    }


def _replaced_by(tx: ReadTransaction, earlier: Sequence[Any], stretch: Sequence[Any], found: SearchResult) -> list[Any]:
    """Return the earlier messages of which the stretch says that something else holds now: a sentence names a change,
    and a rare word of the earlier message that was not asked for (the old value).

    Nothing is replaced where the user keeps it, or limits the change.
    """
    if any(row.role == Role.USER and _KEEPS.search(row.text) for row in stretch):
        return []
    changed = frozenset(token for row in stretch for sentence in _changing(row.text) for token in analyze(sentence))
    said = {row.id: changed.intersection(analyze(row.text)) for row in earlier}
    values = frozenset[str]().union(*said.values()) - {term.token for term in found.terms}
    if not values:
        return []
    size = found.corpus.size
    frequencies = index_of(tx).frequencies(tx, values, size)
    rare = {token for token in values if frequencies.get(token, 0) <= 2 + size // 100}
    return [row for row in earlier if rare & said[row.id]]


_SPOKEN = (Role.USER, Role.ASSISTANT)
_ASKS = re.compile(r"[?？]\s*$")
_CHANGES = re.compile(
    r"""\b(?:instead\ of|no\ longer|(?:not|n['’]t)\b.{1,60}\bany\ ?more|replac(?:e|ed|ing)|switch(?:ed|ing)|swapp?ed
        |mov(?:e|ed|es|ing)\b.{1,60}\b(?:to|off|away)|migrat(?:ed|ing)|rais(?:ed|ing)|lower(?:ed|ing)|chang(?:ed|ing)
        |drop(?:ped|ping)|ditch(?:ed|ing)|retired|got\ rid\ of
        |(?:kick|rip|throw|take)(?:ed|ped|ing|ping)?\ (?:.{1,40}\ )?out
        |(?:go|going|went)\ back\ to|rolled\ back|revert(?:ed|ing)|since\ \d|cancel(?:led|ed)|rather\ than
        |let['’]?s\ (?:do|use|go\ with|switch|make\ it)\b.{1,60}\binstead|scrap(?:ped)?\ that
        |changed\ (?:my|our)\ mind)\b
      | 대신|말고|그만두|폐지|바꿨|바꾸자|바꿔\ ?줘|바뀌었|바뀐|변경했|변경하자
      | 변경해\ ?줘|옮겼|옮기자|이전\ ?완료|전환했|갈아탔|교체했|취소|철회|되돌[렸리]|걷어[냈내]|늘리자|늘렸|줄이자|줄였
      | 올리자|올렸|내리자|내렸|빼고|뺐|없던\ 걸로""",
    re.VERBOSE | re.IGNORECASE,
)
"""Says that something else holds than before."""
_KEEPS = re.compile(
    r"""\b(?:leave\ (?:it|the|them|as)|keep\ (?:it|what|the|using)|stay(?:ing)?\ with|stick(?:ing)?\ with|as\ it\ is
        |not\ worth|never\ ?mind|for\ now|temporar\w+|only|except|until|till|just\ (?:for|this|the))\b
      | 그대로|안\ (?:바꾸|바꿀|할래|해)|하지\ 말|놔두|에만|동안만|까지만|임시|당분간|이번\ ?(?:주|달)만|일단""",
    re.VERBOSE | re.IGNORECASE,
)
"""Says that a change is not made, or only for a time or a place."""
_PLACES = re.compile(
    r"\b(?:staging|dev(?:elopment)?|local(?:ly|host)?|laptop|sandbox|qa|only|except)\b"
    r"|스테이징|개발 ?환경|로컬|임시|에만",
    re.IGNORECASE,
)
"""Limits a change to one environment; what is asked for is rarely that one."""
_CODE = re.compile(r"```.*?```", re.DOTALL)
_SENTENCES = re.compile(r"(?<=[.!?。])\s+|\n")


def _changing(text: str) -> Iterator[str]:
    """Yield the sentences of a text that name a change, without code, questions, and what is limited to a place."""
    for sentence in _SENTENCES.split(_CODE.sub("\n", text)):
        if _CHANGES.search(sentence) and not _ASKS.search(sentence) and not _PLACES.search(sentence):
            yield sentence
