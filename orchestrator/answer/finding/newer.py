"""Find a later statement on the same thing, and tell whether it replaces what an earlier one says.

What a user said later is shown (`newer`) if it repeats rare words of the earlier conversation; an earlier message is
called replaced only where a sentence says so.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from orchestrator.answer.delivery import Turn
from orchestrator.answer.finding.choosing import Choice, past_ends
from orchestrator.answer.finding.looking_up import Lookup
from registry.domain import Role, format_time
from registry.search.retrieval import SearchResult
from registry.search.sessions import read_messages_around
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow, by_numbers, messages_of
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import index_of
from registry.text.analysis.analyzer import analyze
from registry.text.ranking.snippets import passage
from registry.text.ranking.term_weights import idf
from registry.text.request.query import ParsedQuery
from registry.text.request.understanding import ParsedRequest

STRETCH = 4  # messages in which a suggestion is made, taken up and carried out
# weight of the repeated rare words, in a conversation that holds the whole request and scores as the best, from which
# on it is about the same thing: `benchmarks/RESULTS.md`
ABOUT_IT = 1.0
NEAR = 0.5  # share of the best message's score from which on another one of the conversation is on the same thing
LINE = 200  # characters of a later statement that an answer leads with
READ = 40  # messages of a conversation that are compared


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
    if said.is_about_past or _is_dated(choice.channel, said):
        return NO_CHANGE
    best = choice.kept[0].score if choice.kept else 0.0
    spoken = _spoken(tx, [one.ranked.candidate.number for one in choice.kept[:READ] if one.score >= NEAR * best])
    if not spoken:
        return NO_CHANGE
    hit, near = spoken[0], sorted(spoken, key=lambda row: row.seq)
    first, last = near[0], near[-1]
    later = _repeats_most(tx, choice, hit) or (last if last.seq >= hit.seq + STRETCH else None)
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


def _repeats_most(tx: ReadTransaction, choice: Choice, hit: MessageRow) -> MessageRow | None:
    """Return what a user said after `hit` that repeats most of the rare words of the request and of the hit's
    conversation: their weight, times the share of the request and of the best score that its conversation has.

    "We moved off Sidekiq and Redis" holds no word of "what runs our jobs?", but what the earlier conversation says.
    The hit's own conversation, which repeats itself anyway, comes second, and must name a change.
    """
    found, own = choice.everywhere, hit.channel_number
    scores = {row.number: score for row, score in choice.candidates} or {own: 1.0}
    shares = {number: found.coverage(number) * score / max(scores.values()) for number, score in scores.items()}
    later = [
        (row, frozenset(analyze(row.text)))
        for number in scores
        for row in messages_of(tx, number, limit=READ, roles=[Role.USER], from_=hit.timestamp)
        if number != own or (row.turn != hit.turn and any(_changing(row.text)))
    ]
    earlier = read_messages_around(tx, {own: [hit.seq]}, READ // 2)[own]
    said = {*_asked_for(found), *chain.from_iterable(analyze(row.text) for row in earlier if row.role in _SPOKEN)}
    rare = _rare(tx, said.intersection(chain.from_iterable(tokens for _, tokens in later)), found.corpus.size)
    best, rank = None, (False, 0.0)
    for row, tokens in later:
        weight = shares[row.channel_number] * sum(map(rare.__getitem__, rare.keys() & tokens))
        this = row.channel_number != own, weight
        if weight >= ABOUT_IT and this > rank:
            best, rank = row, this
    return best


def _changed(tx: ReadTransaction, found: SearchResult, earlier: MessageRow, later: MessageRow) -> Change:
    """Return the change that a later message makes to an earlier one."""
    statement = [row for row in _stretch(tx, earlier.channel_number, earlier.turn) if row.number != later.number]
    further = _stretch(tx, later.channel_number, later.turn, 2 * STRETCH)  # a proposal may be rejected further on
    around = [row for row in further if row.seq < later.turn + STRETCH]
    turn = None
    if later.channel_number == earlier.channel_number:
        turn = (later.channel_number, later.turn)
        statement = [row for row in statement if row.turn != later.turn]
    replaced = [] if _is_rejected(further) else _replaced_by(tx, statement, around, found)
    when = format_time(around[0].timestamp)
    return Change(_newer(later, around, found.query), {row.id: when for row in replaced}, turn)


def _stretch(tx: ReadTransaction, channel_number: int, seq: int, length: int = STRETCH) -> list[Any]:
    """Return the spoken messages from a position on, in which a suggestion is taken up and carried out."""
    around = read_messages_around(tx, {channel_number: list(range(seq, seq + length))})[channel_number]
    return [row for row in around if row.role in _SPOKEN]


def _is_dated(chosen: ChannelRow, said: ParsedRequest) -> bool:
    """Return True if a date in the request asks for what held then, and does not only speak of that day."""
    return any(chosen.created_at <= end for end in past_ends(said))


def _newer(hit: MessageRow, around: Sequence[Any], words: ParsedQuery) -> dict[str, Any]:
    """Return the hit and what came of it."""
    shown = [hit, *_outcome([row for row in around if row.seq > hit.seq])]
    line = " → ".join(passage(row.text, words, LINE // len(shown)) for row in shown)
    return {
        "when": format_time(shown[-1].timestamp),
        "channel": hit.channel,
        "source": hit.source,
        "line": line,
        "message_id": shown[-1].id,
    }


def _outcome(behind: Sequence[Any]) -> list[Any]:
    """Return what the user replies to a question that follows, and the last answer, in which a suggestion that was
    taken up is carried out."""
    is_asked = bool(behind) and behind[0].role == Role.ASSISTANT and bool(_ASKS.search(behind[0].text))
    replies = [row for row in behind[1:2] if is_asked and row.role == Role.USER]
    return [*replies, *[row for row in behind if row.role == Role.ASSISTANT and not _ASKS.search(row.text)][-1:]]


def _is_rejected(stretch: Sequence[Any]) -> bool:
    """Return True if the user says that what was proposed is not done."""
    said = chain.from_iterable(_sentences(row.text) for row in stretch if row.role == Role.USER)
    return any(_REJECTS.search(sentence) and not _CHANGES.search(sentence) for sentence in said)


def _replaced_by(tx: ReadTransaction, earlier: Sequence[Any], stretch: Sequence[Any], found: SearchResult) -> list[Any]:
    """Return the earlier messages of which the stretch says that something else holds now: a sentence names a change,
    a word of the question, and a rare word of the earlier message that was not asked for (the old value).

    Nothing is replaced where the user keeps it, or limits the change.
    """
    if any(row.role == Role.USER and _KEEPS.search(row.text) for row in stretch):
        return []
    asked_for = _asked_for(found)
    sentences = (frozenset(analyze(sentence)) for row in stretch for sentence in _changing(row.text))
    changed = frozenset[str]().union(*(tokens for tokens in sentences if tokens & asked_for))
    said = {row.id: changed.intersection(analyze(row.text)) for row in earlier}
    rare = _rare(tx, frozenset[str]().union(*said.values()) - asked_for, found.corpus.size)
    return [row for row in earlier if rare.keys() & said[row.id]]


def _asked_for(found: SearchResult) -> set[str]:
    return {token for wording in found.wordings for word in wording.query.words for token in word.exact}


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
      | 대신|말고|그만두|폐지|바꿨|바꾸자(?!는)|바꿔\ ?줘|바뀌었|바뀐|변경했|변경하자(?!는)
      | 변경해\ ?줘|옮겼|옮기자(?!는)|이전\ ?완료|전환했|갈아탔|교체했|취소|철회|되돌[렸리]|걷어[냈내]|늘리자|늘렸
      | 줄이자|줄였|올리자|올렸|내리자|내렸|빼고|뺐|없던\ 걸로""",
    re.VERBOSE | re.IGNORECASE,
)
"""Says that something else holds than before."""
_KEEPS = re.compile(
    r"""\b(?:leave\ (?:it|the|them|as)|keep\ (?:it|what|the|using)|stay(?:ing)?\ with|stick(?:ing)?\ with|as\ it\ is
        |not\ worth|never\ ?mind|for\ now|temporar\w+|only|except|until|till|just\ (?:for|this|the)
        |staging|dev(?:elopment)?|local(?:ly|host)?|laptop|sandbox|qa)\b
      | 스테이징|개발\ ?환경|로컬
      | 그대로|안\ (?:바꾸|바꿀|할래|해)|하지\ 말|놔두|에만|까지만|임시|당분간|일단
      | (?:[일주달번간안흘새]|이틀)만(?![가-힣])""",
    re.VERBOSE | re.IGNORECASE,
)
"""Says that a change is not made, or only for a time or in an environment that is rarely asked for."""
_REJECTS = re.compile(
    r"""\b(?:not\ (?:doing|adopting|going\ (?:ahead|for|with))|off\ the\ table|voted\ against
        |(?:turned|voted|shot)\ (?:it\ |that\ |this\ )?down|(?:was|were|got|been)\ (?:rejected|declined|shelved))\b
      | 부결|기각|무산|보류|않기로|안\ ?하기로""",
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?。])\s+|\n")


def _changing(text: str) -> Iterator[str]:
    """Yield the sentences of a text that name a change, without questions."""
    return (one for one in _sentences(text) if _CHANGES.search(one) and not _ASKS.search(one))


def _sentences(text: str) -> list[str]:
    return _SENTENCES.split(text)
