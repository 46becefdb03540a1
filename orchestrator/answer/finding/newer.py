"""Find a later statement on the same thing, and tell whether it replaces what an earlier one says.

A later conversation that holds much of the question is shown (`newer`); an earlier message is called replaced only
where a sentence says so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from orchestrator.answer.delivery import Turn, within
from orchestrator.answer.finding.choosing import Choice, past_ends
from orchestrator.answer.finding.looking_up import Lookup
from registry.domain import Role, format_time
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
# share of the question, by rarity, that a later conversation on the same thing holds: 0.69 of strangers' changes do,
# and 0.28 of conversations that change nothing (`benchmarks/RESULTS.md`)
COVERED = 0.35
NEAR = 0.5  # share of the best message's score from which on another one of the conversation is on the same thing
LINE = 120  # characters of a later statement that an answer leads with
READ = 20  # messages of a conversation that are compared
RARE_WORDS = 2  # words of an earlier statement, as common as a rare one may be, that a sentence on a change repeats


class Change(NamedTuple):
    """A later statement as an answer shows it, and for the ids of messages that it replaces when it was made."""

    newer: dict[str, Any] | None
    replaced_on: Mapping[str, str]
    turn: Turn | None = None
    """The turn of this conversation that makes it."""


NO_CHANGE = Change(None, {})


def change_of(asked: Lookup[Any], choice: Choice) -> Change:
    """Return the later statement on the same thing, in another conversation in scope or later in this one."""
    tx, said = asked.tx, asked.said
    if said.in_the_past or _is_dated(choice.channel, said):
        return NO_CHANGE
    best = choice.kept[0].score if choice.kept else 0.0
    spoken = _spoken(tx, [one.ranked.candidate.number for one in choice.kept[:READ] if one.score >= NEAR * best])
    if not spoken:
        return NO_CHANGE
    hit, near = spoken[0], sorted((row for row in spoken if not _ASKS.search(row.text)), key=lambda row: row.seq)
    first, last = (near[0], near[-1]) if near else (hit, hit)
    candidates = _best_spoken(tx, choice)
    later = (
        _that_names_a_change(tx, choice.everywhere, candidates, hit)
        or _in_a_later_conversation(choice.everywhere, candidates, hit)
        or (last if last.seq >= hit.seq + STRETCH else None)
    )
    if later:
        return _changed(tx, choice.found, hit, later)
    if first.turn < hit.turn:  # the best hit itself may be the change
        change = _changed(tx, choice.found, first, hit)
        return change if change.replaced_on else NO_CHANGE
    return NO_CHANGE


def _spoken(tx: ReadTransaction, numbers: Sequence[int]) -> list[MessageRow]:
    """Return those of some messages that a user or a model said, in the order given."""
    rows = {row.number: row for row in by_numbers(tx, numbers) if row.role in _SPOKEN}
    return [rows[number] for number in numbers if number in rows]


def _best_spoken(tx: ReadTransaction, choice: Choice) -> dict[int, list[MessageRow]]:
    """Return what users and models said in each candidate and the one that is meant (by channel number), best first."""
    numbers: dict[int, list[int]] = {row.number: [] for row in (choice.channel, *(row for row, _ in choice.candidates))}
    for one in choice.everywhere.ranked:
        inside = numbers.get(one.candidate.channel_id)
        if inside is not None and len(inside) < READ:
            inside.append(one.candidate.number)
    spoken = {row.number: row for row in _spoken(tx, list(chain.from_iterable(numbers.values())))}
    return {channel: [spoken[one] for one in some if one in spoken] for channel, some in numbers.items()}


def _that_names_a_change(
    tx: ReadTransaction, found: SearchResult, candidates: Mapping[int, Sequence[MessageRow]], hit: MessageRow
) -> MessageRow | None:
    """Return the later message of a user whose sentence on a change repeats rare words of the hit's turn.

    "We moved off Sidekiq and Redis" holds no word of "what runs our jobs?", but what the earlier answer says.
    """
    size = found.corpus.size
    here = hit.channel_number, hit.turn
    turn = _stretch(tx, *here)
    rare = _rare(tx, {token for row in turn for token in analyze(row.text)}, size)
    best, most = None, RARE_WORDS * idf(_rare_up_to(size), size)
    for row in chain.from_iterable(candidates.values()):
        if row.role != Role.USER or row.timestamp <= hit.timestamp or (row.channel_number, row.turn) == here:
            continue
        repeated = (rare.keys() & analyze(sentence) for sentence in _changing(row.text))
        weight = max((sum(map(rare.__getitem__, tokens)) for tokens in repeated), default=0.0)
        if weight >= most:
            best, most = row, weight
    return best


def _in_a_later_conversation(
    found: SearchResult, candidates: Mapping[int, Sequence[MessageRow]], hit: MessageRow
) -> MessageRow | None:
    """Return the best message after `hit`, no question, of the best other candidate that holds enough."""
    for number, spoken in candidates.items():
        if number == hit.channel_number or found.covered(number) < COVERED:
            continue
        for one in spoken:
            if one.timestamp > hit.timestamp and not _ASKS.search(one.text):
                return one
    return None


def _changed(tx: ReadTransaction, found: SearchResult, earlier: MessageRow, later: MessageRow) -> Change:
    """Return the change that a later message makes to an earlier one."""
    statement = [row for row in _stretch(tx, earlier.channel_number, earlier.turn) if row.number != later.number]
    around = _stretch(tx, later.channel_number, later.turn)
    turn = None
    if later.channel_number == earlier.channel_number:
        turn = (later.channel_number, later.turn)
        statement = [row for row in statement if row.turn != later.turn]
    replaced = _latest_turn(_replaced_by(tx, statement, around, found))
    when = format_time(around[0].timestamp)
    return Change(_newer(later, around, found), {row.id: when for row in replaced}, turn)


def _stretch(tx: ReadTransaction, channel_number: int, seq: int) -> list[Any]:
    """Return the spoken messages from a position on, in which a suggestion is taken up and carried out."""
    around = surroundings(tx, {channel_number: list(range(seq, seq + STRETCH))}, 0)[channel_number]
    return [row for row in around if row.role in _SPOKEN]


def _latest_turn(replaced: Sequence[Any]) -> list[Any]:
    """Return the messages of the last turn only: it settled what the ones before it were about."""
    last = max((row.turn for row in replaced), default=0)
    return [row for row in replaced if row.turn == last]


def _is_dated(chosen: ChannelRow, said: Understood) -> bool:
    """Return True if a date in the request asks for what held then, and does not only speak of that day."""
    return any(chosen.created_at <= end for end in past_ends(said))


def _newer(hit: MessageRow, around: Sequence[Any], found: SearchResult) -> dict[str, Any]:
    """Return the turn of the hit: what its user said, the hit, and the last answer behind it, in which a suggestion
    that was taken up is carried out."""
    answers = [row for row in around if row.seq > hit.seq and row.role == Role.ASSISTANT and not _ASKS.search(row.text)]
    opening = [row for row in around if row.seq == hit.turn and row.seq < hit.seq]
    shown = [*opening, hit, *answers[-1:]]
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
    a word of the question, and a rare word of the earlier message that was not asked for (the old value).

    Nothing is replaced where the user keeps it, or limits the change.
    """
    if any(row.role == Role.USER and _KEEPS.search(row.text) for row in stretch):
        return []
    asked_for = {token for wording in found.wordings for word in wording.query.words for token in word.exact}
    sentences = (frozenset(analyze(sentence)) for row in stretch for sentence in _changing(row.text))
    changed = frozenset[str]().union(*(tokens for tokens in sentences if tokens & asked_for))
    said = {row.id: changed.intersection(analyze(row.text)) for row in earlier}
    rare = _rare(tx, frozenset[str]().union(*said.values()) - asked_for, found.corpus.size)
    return [row for row in earlier if rare.keys() & said[row.id]]


def _rare(tx: ReadTransaction, tokens: Collection[str], size: int) -> dict[str, float]:
    """Return those of some tokens that few messages hold, with their weights."""
    known = index_of(tx).frequencies(tx, tokens, size)
    return {token: idf(count, size) for token, count in known.items() if count <= _rare_up_to(size)}


def _rare_up_to(size: int) -> int:
    """Return how many messages of a registry may hold a word that is rare."""
    return 2 + size // 100


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
