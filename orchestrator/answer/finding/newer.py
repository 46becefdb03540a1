"""Find a later statement on the same subject, and decide whether it replaces an earlier one.

A later user message is shown (`newer`) if it repeats rare words of the earlier conversation. An earlier message is
marked as replaced only if a sentence says so.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from orchestrator.answer.finding.choosing import MAX_CHOICES, Choice, past_ends
from orchestrator.answer.finding.lookup import Lookup
from orchestrator.answer.finding.relevance import best_channels
from registry.domain import Role, format_time
from registry.search.retrieval import SearchResult
from registry.search.sessions import read_messages_around
from registry.storage.conversations.messages import MessageRow, by_numbers, messages_of
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import index_of
from registry.text.analysis.analyzer import analyze
from registry.text.ranking.snippets import passage
from registry.text.ranking.term_weights import idf
from registry.text.request.query import ParsedQuery

EXCHANGE_TURNS = 2  # turns in which a suggestion is made, accepted and carried out
FAR_APART = 2 * EXCHANGE_TURNS  # messages between two exchanges of one conversation
# weight of the repeated rare words, times the conversation's share of the request and of the best score, from which a
# message is on the same subject: `benchmarks/RESULTS.md`
MIN_REPEATED_WEIGHT = 1.0
MIN_SCORE_SHARE = 0.5  # share of the best message's score from which another message is on the same subject
LINE_WIDTH = 200  # characters of the later statement that an answer begins with
MAX_READ = 40  # messages of a conversation that are compared


class LaterStatement(NamedTuple):
    """A later statement as the answer shows it, and its time for each id of a message that it replaces."""

    newer: dict[str, Any] | None
    replaced_on: Mapping[str, str]
    turn: int | None = None
    """The turn with the statement, if it is in the same conversation."""


NO_LATER_STATEMENT = LaterStatement(None, {})


def find_later_statement(lookup: Lookup[Any], choice: Choice) -> LaterStatement:
    """Return a later statement on the same subject, in another conversation in scope or later in this one."""
    tx, parsed = lookup.tx, lookup.parsed
    is_as_of_date = any(choice.channel.created_at <= end for end in past_ends(parsed))
    if parsed.is_about_past or is_as_of_date:
        return NO_LATER_STATEMENT
    best = choice.hits[0].score if choice.hits else 0.0
    numbers = [one.ranked.candidate.number for one in choice.hits[:MAX_READ] if one.score >= MIN_SCORE_SHARE * best]
    hits = _conversation_messages(tx, numbers)
    if not hits:
        return NO_LATER_STATEMENT
    hit, in_order = hits[0], sorted(hits, key=lambda row: (row.timestamp, row.number))
    first, last = in_order[0], in_order[-1]
    later = _most_repeating(lookup, choice, hit) or (last if abs(last.seq - hit.seq) >= FAR_APART else None)
    earlier, later = (hit, later) if later else (first, hit)  # the best hit itself may be the later statement
    if earlier.turn == later.turn and earlier.channel_number == later.channel_number:
        return NO_LATER_STATEMENT
    change = _compare(tx, choice.found, earlier, later)
    # the answer shows a continued conversation's end, and a hit next to an earlier one
    is_shown = parsed.is_continuation or (later is hit and hit.seq - first.seq < FAR_APART)
    return NO_LATER_STATEMENT if is_shown and change.turn is not None and not change.replaced_on else change


def _conversation_messages(tx: ReadTransaction, numbers: Sequence[int]) -> list[MessageRow]:
    """Return the valid messages of user and assistant among these, in the given order."""
    valid = (row for row in by_numbers(tx, numbers) if not row.payload.get("superseded"))
    rows = {row.number: row for row in valid if row.role in _CONVERSATION_ROLES}
    return [rows[number] for number in numbers if number in rows]


def _most_repeating(lookup: Lookup[Any], choice: Choice, hit: MessageRow) -> MessageRow | None:
    """Return the user message after `hit` that repeats most rare words of the request and the hit's conversation.

    The weight of these words counts times its conversation's share of the request and of the best score. "We moved off
    Sidekiq and Redis" has no word of "what runs our jobs?", but words of the earlier conversation. A message of the
    hit's own conversation, which repeats itself anyway, must name a change and repeat a rare word of the hit's
    turn, as "scrap the ULID" does; then it comes first.
    """
    tx, own_channel = lookup.tx, hit.channel_number
    found, scores = _scored_channels(lookup, choice)
    shares = {number: found.coverage(number) * score / max(scores.values()) for number, score in scores.items()}
    read = partial(messages_of, tx, limit=MAX_READ, roles=[Role.USER], from_=hit.timestamp, only_valid=True)
    questions = {number: read(number) for number in {**scores, own_channel: 0}}
    own = {row.digest for row in questions[own_channel]}  # a fork has copies of them
    later = [
        (row, frozenset(analyze(row.text)))
        for number in scores
        for row in questions[number]
        if (
            row.turn != hit.turn and any(_change_sentences(row.text))
            if number == own_channel
            else row.digest not in own
        )
    ]
    around = read_messages_around(tx, {own_channel: [hit.seq]}, MAX_READ // 2, MAX_READ // 2)[own_channel]
    earlier = [(row.turn, analyze(row.text)) for row in around if row.role in _CONVERSATION_ROLES]
    earlier_tokens = {*_request_tokens(found), *chain.from_iterable(tokens for _, tokens in earlier)}
    own_turn = set(chain.from_iterable(tokens for turn, tokens in earlier if turn == hit.turn))
    repeated = earlier_tokens.intersection(chain.from_iterable(tokens for _, tokens in later))
    rare = _rare_tokens(tx, repeated, found.corpus.size)
    best, rank = None, (False, 0.0)
    for row, tokens in later:
        is_own, shared = row.channel_number == own_channel, rare.keys() & tokens
        weight = shares[row.channel_number] * sum(map(rare.__getitem__, shared))
        is_candidate = weight >= MIN_REPEATED_WEIGHT and not (is_own and shared.isdisjoint(own_turn))
        if is_candidate and (is_own, weight) > rank:
            best, rank = row, (is_own, weight)
    return best


def _scored_channels(lookup: Lookup[Any], choice: Choice) -> tuple[SearchResult, dict[int, float]]:
    """Return the result of a search in all channels, and the scores of the best; a named channel is one of them."""
    if choice.candidates:
        return choice.everywhere, {row.number: score for row, score in choice.candidates}
    found = replace(lookup, scope=replace(lookup.scope, channel_number=None)).find()
    scores = dict(best_channels(found)[:MAX_CHOICES])
    return found, {choice.channel.number: max(scores.values(), default=1.0)} | scores


def _compare(tx: ReadTransaction, found: SearchResult, earlier: MessageRow, later: MessageRow) -> LaterStatement:
    """Return the later statement, and the messages around the earlier one that it replaces."""
    statement = [row for row in _exchange_from(tx, earlier.channel_number, earlier.turn) if row.number != later.number]
    # twice as long, because a proposal may be rejected further on
    further = _exchange_from(tx, later.channel_number, later.turn, 2 * EXCHANGE_TURNS)
    exchange = _first_turns(further, EXCHANGE_TURNS)
    is_answered = any(row.role == Role.ASSISTANT for row in exchange)
    if not is_answered and not any(_change_sentences(later.text)):
        return NO_LATER_STATEMENT  # a prompt that waits for its answer
    turn = None
    if later.channel_number == earlier.channel_number:
        turn = later.turn
        statement = [row for row in statement if row.turn != later.turn]
    replaced = [] if _is_rejected(further) else _replaced_by(tx, statement, exchange, found)
    when = format_time((exchange or [later])[0].timestamp)
    subject = _request_tokens(found).union(*(analyze(row.text) for row in statement))
    return LaterStatement(_as_result(later, exchange, found.query, subject), {row.id: when for row in replaced}, turn)


def _exchange_from(tx: ReadTransaction, channel_number: int, seq: int, turns: int = EXCHANGE_TURNS) -> list[Any]:
    """Return the valid messages of user and assistant of the turns that begin at a position, without earlier messages
    that arrived after it."""
    rows = read_messages_around(tx, {channel_number: [seq]}, after=MAX_READ)[channel_number]
    begin = min((row.seq, row.timestamp) for row in rows)[1] if rows else None
    later = [row for row in rows if row.timestamp >= begin]
    return _first_turns([row for row in later if row.role in _CONVERSATION_ROLES and not row.superseded], turns)


def _first_turns(rows: Sequence[Any], turns: int) -> list[Any]:
    first = list(dict.fromkeys(row.turn for row in rows))[:turns]
    return [row for row in rows if row.turn in first]


def _as_result(hit: MessageRow, exchange: Sequence[Any], words: ParsedQuery, subject: set[str]) -> dict[str, Any]:
    """Return the statement and its outcome as the answer shows them."""
    shown = [hit, *_outcome([row for row in exchange if row.seq > hit.seq], subject)]
    line = " → ".join(passage(row.text, words, LINE_WIDTH // len(shown)) for row in shown)
    return {
        "when": format_time(shown[-1].timestamp),
        "channel": hit.channel,
        "source": hit.source,
        "line": line,
        "message_id": shown[-1].id,
    }


def _outcome(following: Sequence[Any], subject: set[str]) -> list[Any]:
    """Return the answer with most words of the subject, which may carry the statement out, and the user's last message
    before it. Other answers tell what the assistant does next.

    A question of the assistant is no answer; the user's reply to it is returned alone.
    """
    if all(row.role == Role.USER for row in following):
        return []
    answers = [row for row in following if row.role == Role.ASSISTANT and not _ASKS.search(row.text)]
    best = sorted(answers, key=lambda row: len(subject.intersection(analyze(row.text))))[-1:]
    asked = [row for row in following if row.role == Role.USER and not (best and row.seq > best[0].seq)]
    return [*asked[-1:], *best]


def _is_rejected(exchange: Sequence[Any]) -> bool:
    """Return True if the user rejects the proposal."""
    sentences = chain.from_iterable(_sentences(row.text) for row in exchange if row.role == Role.USER)
    return any(_REJECTS.search(sentence) and not _CHANGES.search(sentence) for sentence in sentences)


def _replaced_by(
    tx: ReadTransaction, earlier: Sequence[Any], exchange: Sequence[Any], found: SearchResult
) -> list[Any]:
    """Return the earlier messages that the exchange replaces.

    A sentence must name a change, contain a word of the request, and repeat a rare word of the earlier message that is
    not in the request (the old value). Nothing is replaced if the user keeps the old value or limits the change.
    """
    if any(row.role == Role.USER and _KEEPS.search(row.text) for row in exchange):
        return []
    request_tokens = _request_tokens(found)
    sentences = (frozenset(analyze(sentence)) for row in exchange for sentence in _change_sentences(row.text))
    changed = frozenset[str]().union(*(tokens for tokens in sentences if tokens & request_tokens))
    shared_tokens = {row.id: changed.intersection(analyze(row.text)) for row in earlier}
    rare = _rare_tokens(tx, frozenset[str]().union(*shared_tokens.values()) - request_tokens, found.corpus.size)
    return [row for row in earlier if rare.keys() & shared_tokens[row.id]]


def _request_tokens(found: SearchResult) -> set[str]:
    return {token for wording in found.wordings for word in wording.query.words for token in word.exact}


def _rare_tokens(tx: ReadTransaction, tokens: Collection[str], size: int) -> dict[str, float]:
    """Return the rare tokens among these, with their weights."""
    most = 2 + size // 100  # the largest document frequency of a rare word
    known = index_of(tx).count(tx, tokens)
    return {token: idf(count, size) for token, count in known.items() if count <= most}


_CONVERSATION_ROLES = (Role.USER, Role.ASSISTANT)
_ASKS = re.compile(r"[?？]\s*$")
_CHANGES = re.compile(
    r"""\b(?:instead\ of|no\ longer|(?:not|n['’]t)\b.{1,60}\bany\ ?more|replac(?:e|ed|ing)|switch(?:ed|ing)|swapp?ed
        |mov(?:e|ed|es|ing)\b.{1,60}\b(?:to|off|away)|migrat(?:ed|ing)|rais(?:ed|ing)|lower(?:ed|ing)|chang(?:ed|ing)
        |(?:drop|scrap)(?:ped|ping)?|ditch(?:ed|ing)?|undo|is\ (?:off|out)|never\ ?mind|forget\ (?:the|about)
        |no\ more|from\ now|retired|got\ rid\ of
        |(?:kick|rip|throw|take)(?:ed|ped|ing|ping)?\ (?:.{1,40}\ )?out
        |(?:go|going|went)\ back\ to|rolled\ back|revert(?:ed|ing)|since\ \d|cancel(?:led|ed)|rather\ than
        |let['’]?s\ (?:do|use|go\ with|switch|make\ it)\b.{1,60}\binstead
        |changed\ (?:my|our)\ mind)\b
      | 대신|말고|그만두|폐지|바꿨|바꾸자(?!는)|바꿔\ ?줘|바뀌었|바뀐|바뀜|버리고|버렸|변경했|변경하자(?!는)
      | 변경해\ ?줘|옮겼|옮기자(?!는)|이전\ ?완료|전환했|갈아탔|교체했|철회|되돌[렸리]|걷어[냈내]|늘리자|늘렸
      | 취소(?!하면|되면|하는|되는|[할될]\ )
      | 줄이자|줄였|올리자|올렸|내리자|내렸|빼고|뺐|없던\ 걸로""",
    re.VERBOSE | re.IGNORECASE,
)
"""Sentences that name a change."""
_KEEPS = re.compile(
    r"""\b(?:leave\ (?:it|the|them|as)|keep\ (?:it|what|the|using)|stay(?:ing)?\ with|stick(?:ing)?\ with|as\ it\ is
        |not\ worth|never\ ?mind|for\ now|temporar\w+|only|except|until|till|just\ (?:for|this|the)
        |staging|dev(?:elopment)?|local(?:ly|host)?|laptop|sandbox|qa)\b
      | 스테이징|개발\ ?환경|로컬
      | 그대로|안\ (?:바꾸|바꿀|할래|해)|하지\ 말|놔두|에만|까지만|임시|당분간|일단
      | (?:[일주달번간안흘새]|이틀)만(?![가-힣])""",
    re.VERBOSE | re.IGNORECASE,
)
"""Texts that reject a change, or limit it to a time or to an environment that is rarely asked about."""
_REJECTS = re.compile(
    r"""\b(?:not\ (?:doing|adopting|going\ (?:ahead|for|with))|off\ the\ table|voted\ against
        |(?:turned|voted|shot)\ (?:it\ |that\ |this\ )?down|(?:was|were|got|been)\ (?:rejected|declined|shelved))\b
      | 부결|기각|무산|보류|않기로|안\ ?하기로""",
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!?。])\s+|\n")


def _change_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text that name a change and are no questions."""
    return (one for one in _sentences(text) if _CHANGES.search(one) and not _ASKS.search(one))


def _sentences(text: str) -> list[str]:
    return _SENTENCES.split(text)
