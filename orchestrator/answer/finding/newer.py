"""Find a later statement on the same thing, and tell whether it replaces what an earlier one says.

Near is enough to show a later statement (`newer`); an earlier one is called replaced only where a sentence says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from orchestrator.answer.delivery import Turn, cut_text
from orchestrator.answer.finding.relevance import Judged, turns_in
from registry.domain import Role, format_time, now
from registry.search.retrieval import SearchResult, corpus_of
from registry.search.sessions import surroundings
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow, by_numbers, turns_of
from registry.storage.database import ReadTransaction
from registry.storage.index.engines import index_of
from registry.text.analysis.analyzer import analyze
from registry.text.ranking.scores import weight_of
from registry.text.ranking.snippets import passage
from registry.text.request.understanding import Understood

Scored = tuple[ChannelRow, float]
FOLLOWING = 4  # messages after a hit in which a suggestion is taken up and carried out


class Change(NamedTuple):
    """A later statement as an answer shows it, and for the ids of messages that it replaces when it was made."""

    newer: dict[str, Any] | None
    replaced_on: Mapping[str, str]
    turn: Turn | None = None
    """The turn of this conversation that makes it."""


class Stretch(NamedTuple):
    """A hit, and the spoken messages of its turn and of those behind it."""

    hit: MessageRow
    around: Sequence[MessageRow]


NO_CHANGE = Change(None, {})


def _is_near(row: ChannelRow, score: float, chosen: ChannelRow, best: float) -> bool:
    """Return True if a conversation may speak of the same thing: in the same project, or scoring nearly as much."""
    return score >= (0.4 if row.project_path == chosen.project_path else 0.7) * best


def as_of_then(candidates: list[Scored], said: Understood) -> list[Scored]:
    """Put first the conversation that held at the time a request asks for: the last before a date that it names, or,
    asked for what was before a change, the one before the latest."""
    if len(candidates) < 2:
        return candidates
    (chosen, best), *others = candidates
    near = [row for row, score in others if _is_near(row, score, chosen, best)]
    end = max(_past_ends(said), default=None)
    older: list[ChannelRow] = []
    if end and chosen.created_at > end:
        older = [row for row in near if row.created_at <= end]
    if not older and said.in_the_past and not any(row.created_at > chosen.created_at for row in near):
        older = near
    first = [one for one in candidates if one[0] in older[:1]]
    return [*first, *(one for one in candidates if one not in first)]


def change_of(
    tx: ReadTransaction,
    chosen: ChannelRow,
    candidates: Sequence[Scored],
    found: SearchResult,
    kept: Sequence[Judged],
    said: Understood,
) -> Change:
    """Return the later statement on the same thing in another conversation, else in this one where it says so."""
    if said.in_the_past or _is_dated(chosen, said):
        return NO_CHANGE
    turns = turns_of(tx, turns_in(kept[:6]))
    hits = [row for row in turns if row.role in _SPOKEN and not _ASKS.search(row.text)]
    if not hits:
        return NO_CHANGE
    later = _in_later_conversation(tx, candidates, found, max(row.timestamp for row in hits))
    if later:
        is_same = _is_same_subject(found, chosen.number, later.hit.channel_number)
        replaced = _latest_turn(_replaced_by(tx, hits, later.around, found)) if is_same else []
        return Change(_newer(later, found), {row.id: format_time(later.hit.timestamp) for row in replaced})
    hit, replaced = _in_same_conversation(tx, hits, found, kept)
    if hit is None:
        return NO_CHANGE
    when = format_time(hit.timestamp)
    marked = {row.id: when for row in _latest_turn(replaced)}
    return Change(_newer(Stretch(hit, [hit]), found), marked, (chosen.number, hit.turn))


def _latest_turn(replaced: Sequence[MessageRow]) -> list[MessageRow]:
    """Return the messages of the last turn only: it settled what the ones before it were about."""
    last = max((row.turn for row in replaced), default=0)
    return [row for row in replaced if row.turn == last]


def _is_dated(chosen: ChannelRow, said: Understood) -> bool:
    """Return True if a date in the request asks for what held then, and does not only speak of that day."""
    return any(chosen.created_at <= end for end in _past_ends(said))


def _past_ends(said: Understood) -> list[datetime]:
    return [span.end for span in said.dates if span.end and span.end < now()]


def _in_later_conversation(
    tx: ReadTransaction, candidates: Sequence[Scored], found: SearchResult, after: datetime
) -> Stretch | None:
    """Return the stretch of the best later conversation; one of the same project goes first."""
    if not candidates:
        return None
    (chosen, best), *others = candidates
    near = [row for row, score in others if row.updated_at > after and _is_near(row, score, chosen, best)]
    for row in sorted(near, key=lambda row: row.project_path != chosen.project_path):
        stretch = _stretch(tx, [one.candidate.number for one in found.ranked if one.candidate.channel_id == row.number])
        if stretch and stretch.hit.timestamp > after:
            return stretch
    return None


def _stretch(tx: ReadTransaction, numbers: Sequence[int]) -> Stretch | None:
    """Return the stretch around the first of these messages that does not ask, else around the first of all."""
    rows = {row.number: row for row in by_numbers(tx, numbers[:3])}
    ordered = [rows[number] for number in numbers[:3] if number in rows]
    if not ordered:
        return None
    hit = next((row for row in ordered if not _ASKS.search(row.text)), ordered[0])
    around = surroundings(tx, {hit.channel_number: [hit.seq]}, FOLLOWING)[hit.channel_number]
    numbers = [row.number for row in around if row.role in _SPOKEN]
    spoken = [row for row in by_numbers(tx, numbers) if row.seq > hit.seq or row.turn == hit.turn]
    return Stretch(hit, sorted(spoken, key=lambda row: row.seq))


def _newer(stretch: Stretch, found: SearchResult) -> dict[str, Any]:
    """Return the hit and the last answer behind it, in which a suggestion that was taken up is carried out."""
    hit, later = stretch.hit, [row for row in stretch.around if row.seq > stretch.hit.seq]
    answers = [row for row in later if row.role == Role.ASSISTANT and not _ASKS.search(row.text)]
    shown = [hit, *answers[-1:]]
    line = " → ".join(cut_text(passage(row.text, found.query), 150 // len(shown)) for row in shown)
    return {
        "when": format_time(shown[-1].timestamp),
        "channel": hit.channel,
        "source": hit.source,
        "line": line,
        "message_id": shown[-1].id,
    }


def _in_same_conversation(
    tx: ReadTransaction, hits: Sequence[MessageRow], found: SearchResult, kept: Sequence[Judged]
) -> tuple[MessageRow | None, list[MessageRow]]:
    """Return a later message of the same conversation that says that it replaces a hit, and what it replaces.

    The user takes back something that an earlier message says; or, some turns later, a sentence that names a change
    holds two terms of the request.
    """
    asked = frozenset(term.token for term in found.terms)
    rows = by_numbers(tx, [one.ranked.candidate.number for one in kept[:12]])
    for later in sorted(rows, key=lambda row: (row.timestamp, row.number), reverse=True):
        if later.role not in _SPOKEN or _KEEPS.search(later.text):
            continue
        changed = frozenset(token for sentence in _changing(later.text) for token in analyze(sentence))
        is_taken_back = later.role == Role.USER and bool(_TAKES_BACK.search(later.text))
        replaced = [
            row
            for row in hits
            if row.turn < later.turn
            and (
                (is_taken_back and changed & frozenset(analyze(row.text)))
                or (len(changed & asked) >= 2 and later.turn - row.turn > 2)
            )
        ]
        if replaced:
            return later, replaced
    return None, []


def _is_same_subject(found: SearchResult, chosen: int, later: int) -> bool:
    """Return True if the later conversation holds most of the question's terms that the chosen one holds."""
    asked = found.held.get(chosen, 0) & found.wordings[0].bits
    both = asked & found.held.get(later, 0)
    return weight_of(both, found.weights) >= 0.5 * weight_of(asked, found.weights)


def _replaced_by(
    tx: ReadTransaction, earlier: Sequence[MessageRow], stretch: Sequence[MessageRow], found: SearchResult
) -> list[MessageRow]:
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
    corpus = corpus_of(tx)
    frequencies = index_of(tx).frequencies(tx, values, corpus.size)
    rare = {token for token in values if frequencies.get(token, 0) <= 2 + corpus.size // 100}
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
_TAKES_BACK = re.compile(
    r"\b(?:instead|rather than|actually|after all|changed my mind|scrap that|forget (?:the|that)"
    r"|(?:change|undo) (?:it|that))\b"
    r"|취소|말고|대신|빼고|아까|생각해 ?보니",
    re.IGNORECASE,
)
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
