"""What is read of the conversation that is meant: its turns that answer, what takes them back, and its end; or its last
messages alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import nlargest
from typing import Any, NamedTuple

from orchestrator.answer.delivery import MessageDict, Turn, message_dict
from orchestrator.answer.finding.beside import beside, beside_in_time, candidate, newer_of
from orchestrator.answer.finding.choosing import Choice, latest
from orchestrator.answer.finding.elsewhere import About, nearest_about, note_of, nothing_found, nothing_then
from orchestrator.answer.finding.looking_up import Lookup
from orchestrator.answer.finding.relevance import Judged, turns_in
from orchestrator.requests.queries import ExtractQuery
from registry.errors import NotFound
from registry.search.retrieval import SearchResult
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow, by_numbers, messages_of, seqs_of, turns_of
from registry.storage.database import ReadTransaction
from registry.storage.paging import place_of
from registry.text.analysis.analyzer import analyze
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.scores import Candidate
from registry.text.request.query import is_sentence
from registry.text.request.understanding import Understood

END = 80
"""So many of a channel's last messages say where it stands."""
WHOLE = 400
"""A conversation of more messages is not tried whole."""


@dataclass(frozen=True, slots=True)
class KeptRanking:
    """Where an earlier extraction's ranking goes on, so that its next page is what it would have been then."""

    result_id: str
    offset: int


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was read of one channel: `ranked` turns best first, and its last turns in order.

    `seqs` are the places of all its messages of the roles asked for. Where nothing was asked by words, `ranked` is
    empty and `has_older` says whether there is more before `end`.
    """

    channel: ChannelRow
    read: Understood
    ranked: list[list[MessageDict]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    hits: Mapping[int, int] = field(default_factory=dict)
    """The places in the ranking of the messages found, by number."""
    end: list[list[MessageDict]] = field(default_factory=list)
    recent: list[MessageDict] = field(default_factory=list)
    seqs: Sequence[int] = ()
    result: SearchResult | None = None
    verdicts: list[Judged] = field(default_factory=list)
    confidence: Confidence | None = None
    candidates: list[dict[str, Any]] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    taken_back: Mapping[str, str] = field(default_factory=dict)
    """For the ids of messages those of the later ones that take them back."""
    newer: dict[str, Any] | None = None
    """A later conversation on the same thing, which may change what this one says."""
    relaxed: str = ""
    """What of the request was given up because nothing was found with it: its words, or its time."""
    note: str = ""
    has_older: bool = False
    is_paged: bool = False
    """A cursor may go on with what is older."""
    kept: KeptRanking | None = None
    relaxation: str = ""
    """What to give up next, because this is not sure enough (`orchestrator.answer.finding.relaxing`)."""


class NothingRead(NamedTuple):
    """Nothing answers; `relaxation` as above."""

    error: NotFound
    relaxation: str


def its_answer(asked: Lookup[ExtractQuery], choice: Choice, kept: Sequence[Judged], sure: Confidence) -> Extraction:
    """The turns that answer, what takes them back, the end, and what may be meant instead."""
    tx, query, said = asked.tx, asked.query, asked.said
    asked.run.recorder.explain(confidence=sure.value)
    found, row, candidates = choice.found, choice.channel, choice.candidates
    later = second_thoughts(tx, found, kept, {row.number})
    meanwhile = second_thoughts(tx, found, kept, {other.number for other, _ in candidates[1:]})
    turns = _with_later(turns_in(kept), later)
    around = beside(tx, candidates, found, sure, meanwhile.values(), is_narrowed=said.is_narrowed)
    is_doubtful = sure is Confidence.LOW and bool(candidates) and bool(said.search.when_words)
    about = nearest_about(asked) if is_doubtful else None
    return Extraction(
        channel=row,
        read=said,
        ranked=messages_in(tx, turns[: 2 * query.limit], query),
        turns=turns,
        hits={one.ranked.candidate.number: place for place, one in enumerate(kept)},
        **_end_of(asked, row),
        result=found,
        verdicts=choice.inside,
        confidence=sure,
        taken_back={earlier: one.id for earlier, one in _latest_of(meanwhile, later).items()},
        newer=None if said.in_the_past or said.is_narrowed or said.dates else newer_of(tx, candidates, found),
        note=f"Nearest of another time: {about.spoken(query.utc_offset_minutes)}." if about else "",
        **(with_nearest(around, about, row) if about else around),
    )


def its_end(asked: Lookup[ExtractQuery], choice: Choice, sure: Confidence) -> Extraction:
    """The end of a conversation of which no message says what was asked: as a guess it is more than nothing, for a
    question may say in other words what its channel says."""
    query, said = asked.query, asked.said
    is_question = is_sentence(query.text or "") and not choice.found.is_strict
    is_meant = said.search.when_words or said.sources or choice.candidates or said.goes_on or is_question
    if not is_meant or query.least_coverage is not None:
        raise nothing_found(query.text)
    ended = last_messages(asked, choice.channel, relaxed="words", is_chosen=bool(choice.candidates))
    return ended if said.is_narrowed else replace(ended, confidence=sure)


def last_messages(
    asked: Lookup[ExtractQuery], row: ChannelRow | None, *, relaxed: str = "", is_chosen: bool = False
) -> Extraction:
    """A channel's last messages in the time and place that are meant: nothing, or nothing there, is asked by words."""
    tx, query, scope = asked.tx, asked.query, asked.scope
    names_time = bool(asked.said.search.when_words)
    others: list[ChannelRow] = []
    if row is None:
        row, *others = latest(asked, relaxed=relaxed)
    elif is_chosen and names_time:  # all that was said then may be meant
        others = [one for one in latest(asked, relaxed=relaxed) if one.number != row.number]
    asked.run.recorder.channel = row.name
    before = place_of(query.cursor) if query.cursor else None
    rows = messages_of(
        tx, row.number, limit=query.limit + 1, roles=query.roles, from_=scope.from_, to=scope.to, before=before
    )
    if not rows:
        raise nothing_then(replace(asked, scope=replace(scope, channel_number=row.number)))
    about = nearest_about(asked) if relaxed and names_time else None
    asked.run.recorder.explain(channel=row.name, by="the channel's last messages", candidates=len(rows))
    shown = [message_dict(one) for one in rows[-query.limit :]]
    recent = [message_dict(one) for one in messages_of(tx, row.number, limit=END)]
    return Extraction(
        channel=row,
        read=asked.said,
        end=_in_turns(shown),
        recent=recent,
        seqs=seqs_of(tx, row.number, query.roles),
        relaxed=relaxed,
        note=note_of(about, scope, query.utc_offset_minutes) if relaxed and names_time else "",
        has_older=len(rows) > query.limit,
        is_paged=True,
        **with_nearest(beside_in_time(tx, others, scope, query.roles), about, row),
    )


def messages_in(tx: ReadTransaction, turns: Sequence[Turn], query: ExtractQuery) -> list[list[MessageDict]]:
    """The messages of some turns, of the roles asked for, in the order of the turns."""
    rows = (one for one in turns_of(tx, turns) if one.role in query.roles and not one.payload.get("injected"))
    by_turn: dict[Turn, list[MessageDict]] = {turn: [] for turn in turns}
    for one in rows:
        by_turn[(one.channel_number, one.turn)].append(message_dict(one))
    return [messages for messages in by_turn.values() if messages]


def _with_later(turns: Sequence[Turn], later: Mapping[str, MessageRow]) -> list[Turn]:
    """The turns, and right behind the best one those that take something of the best back."""
    newer = [(row.channel_number, row.turn) for row in later.values()]
    return list(dict.fromkeys([*turns[:1], *newer, *turns[1:]]))


def _latest_of(some: Mapping[str, MessageRow], others: Mapping[str, MessageRow]) -> dict[str, MessageRow]:
    """Of what takes the same message back the latest."""
    given = sorted([*some.items(), *others.items()], key=lambda one: (one[1].timestamp, one[1].number))
    return dict(given)


def _end_of(asked: Lookup[ExtractQuery], row: ChannelRow) -> dict[str, Any]:
    """The channel's last turns; all of it where somebody wants to go on with it and it is not too long."""
    tx, roles, goes_on = asked.tx, asked.query.roles, asked.said.goes_on
    rows = messages_of(tx, row.number, limit=END)
    recent = list(map(message_dict, rows))
    spoken = [message for message in recent if message["role"] in roles]
    wanted = (WHOLE if goes_on else END) - len(spoken)
    if wanted and len(rows) == END:
        place = rows[0].timestamp, rows[0].number
        earlier = messages_of(tx, row.number, limit=wanted, roles=roles, before=place)
        spoken = [*map(message_dict, earlier), *spoken]
    return {
        "end": _in_turns([message for message in spoken if not message["payload"].get("injected")]),
        "recent": recent,
        "seqs": seqs_of(tx, row.number, roles),
    }


def _in_turns(messages: Sequence[MessageDict]) -> list[list[MessageDict]]:
    turns: dict[int, list[MessageDict]] = {}
    for message in messages:
        turns.setdefault(message["turn"], []).append(message)
    return list(turns.values())


def with_nearest(beside: Mapping[str, Any], about: About | None, row: ChannelRow) -> dict[str, Any]:
    """The candidates, first of them the conversation of another time that holds the words."""
    if about is None or about.channel.number == row.number:
        return dict(beside)
    others = [one for one in beside["candidates"] if one["channel"] != about.channel.name]
    lines = [{"text": about.evidence}] if about.evidence else []
    return {**beside, "candidates": [candidate(about.channel, lines=lines), *others]}


# A later message that takes an earlier one back ("use sessions instead of JWT"), where words alone can tell.

SHARED = 2
"""So many significant tokens of the earlier message stand in the one that takes it back."""
_FIGURE = r"[^.!?]{0,40}(?:\ from\ \S+|(?<!\d))\ to\ \d+"
"""What has another figure, and the figure; "lines 3 to 7" is a span."""
_IN_ENGLISH = re.compile(
    rf"""\b(?:instead(?:\ of)?|actually|after\ all|no\ longer|not\ anymore|any\ ?more|changed?\ (?:my|our)\ minds?
        |scrap(?:ped)?(?:\ that)?|ditch(?:ed|ing)?|abandon(?:ed|ing)?
        |(?:kick|rip|throw|thrown|threw|take|took|pull)(?:ed|ped|ing)?\ (?:\w+\ )?out|g[eo]t(?:ting)?\ rid\ of
        |(?:go|going|went)\ back\ to|back\ to\ \w+\ (?:then|again)
        |switch(?:ed|ing)?\ (?:back\ |over\ )?(?:to|from)|move[ds]?\ (?:away|off|over|back)?\ ?(?:from|to)
        |swap(?:ped)?\ (?:\w+\ )?(?:for|out)|migrat(?:e|ed|ing)\ (?:\w+\ )?(?:from|to|off)
        |revert(?:ed|ing)?|roll(?:ed)?\ back|postpone[sd]?|push(?:ed)?\ back
        |drop(?:ped|ping)?\ (?:the|that)|forget\ (?:the|that|about)|rather\ than|reconsider(?:ed)?|replac(?:e|ed|ing)
        |called?\ (?:it\ )?off|cancel(?:led|ed|ling)?|please\ undo|just\ undo|let['’]?s\ undo
        |undo\ (?:that|this|it|the|those|these|them|what|our|my|your|all|both|everything)
        |let['’]?s\ (?:\w+\ )?(?:drop|lower|reduce|cut|raise|increase|bump|change|set)\b{_FIGURE}
        |changed(?:(?<=\bwe\ changed)|(?<=\bi\ changed)|(?!\ from\b)){_FIGURE}  # a build changes from 4 to 5
        |turn(?:s|ed)\ out|wrong\ about|you\ were\ right|correction
        )\b""",
    re.VERBOSE,
)
_IN_KOREAN = re.compile(
    r"""대신|말고|바꾸|바꿨|바꿔|바꿀|변경하|취소|철회|되돌|번복|안\ ?하기로|않기로|없던
      | 돌아가자|돌아가기로|돌아갔|다시\ .{0,20}?(?:로|으로)\ ?돌[아려렸]
      | 결국|접고|접었|버리고|버렸|걷어내
      | 옮기|옮겼|옮긴|미루|미뤘|미룬|전환하|전환했|갈아타|갈아탔
      | 다시\ 생각|생각해\ ?보니|사실은|알고\ ?보니|그만두|포기|접기로|물렀""",
    re.VERBOSE,
)
_BLOCKS = re.compile(r"```.*?```", re.DOTALL)
_UNSAID = re.compile(r"`[^`\n]*`|[Nn](?<![Ww]hy n)(?:ot|['’]t|ever) (?!any|actually|after|instead)\w+")
"""What says nothing: code names things (`planner.undo`), and what is not to be done takes nothing back."""
_SENTENCES = re.compile(r"(?<=[.!?。])\s+|\n")


class Said(NamedTuple):
    """A message found: its id, its place in time, its text, the significant tokens of the request it holds, and the
    turn that it belongs to."""

    id: str
    place: tuple[str, int]
    text: str
    tokens: Collection[str]
    turn: tuple[int, int] | None = None


def takes_back(text: str) -> bool:
    """Whether a text speaks of something else than before."""
    return bool(sentences_that_take_back(text))


@lru_cache(256)
def sentences_that_take_back(text: str) -> Sequence[str]:
    """The sentences of a text that speak of something else than before, without blocks of code."""
    spoken = _BLOCKS.sub("\n", text)
    return tuple(filter(_is_otherwise, _SENTENCES.split(spoken))) if _is_otherwise(spoken) else ()  # few do


def _is_otherwise(sentence: str) -> bool:
    """One pattern for both languages that ignores case would try all that it knows at every letter."""
    spoken = _UNSAID.sub(" ", sentence)
    return bool(_IN_ENGLISH.search(spoken.lower()) or _IN_KOREAN.search(spoken))


def taken_back(messages: Sequence[Said]) -> dict[str, str]:
    """For the id of a message the id of the later one that takes it back; the latest such one."""
    found: dict[str, str] = {}
    ordered = sorted(messages, key=lambda said: said.place)
    held = [frozenset(said.tokens) for said in ordered]
    for at, later in enumerate(ordered):
        about = [
            earlier
            for earlier, tokens in zip(ordered[:at], held, strict=False)
            if len(tokens & held[at]) >= SHARED and (earlier.turn is None or earlier.turn != later.turn)
        ]
        if about and takes_back(later.text):
            found.update((earlier.id, later.id) for earlier in about)
    return found


HITS = 3
"""So many of the best messages are asked whether they still hold."""
SHARE = 0.3
"""So much of a wording must stand in both messages."""
SHARE_OF_ALL = 0.2
"""Of a request that is mostly words nobody used: the other message holds all of it that the hit does."""
LATER = 12
"""So many of the later messages that share most are read."""
SPOKEN = ("user", "assistant")


def second_thoughts(
    tx: ReadTransaction, found: SearchResult, best: Sequence[Judged], among: Collection[int]
) -> dict[str, MessageRow]:
    """For the ids of the best messages, later ones in these channels that take them back."""
    if not (among and best):
        return {}
    hits = [one.ranked.candidate for one in best[:HITS]]
    sharing = {hit.number: shared for hit in hits if (shared := _sharing_most(found, hit, among))}
    rows = by_numbers(tx, list({*sharing}.union(*sharing.values())))
    known = {row.number: row for row in rows}
    taken: dict[str, MessageRow] = {}
    for earlier, shared in ((known[number], shared) for number, shared in sharing.items() if number in known):
        later = (row for row in reversed(rows) if row.number in shared and _is_later(row, earlier))
        if latest := next((row for row in later if _speaks_of(row, shared[row.number][1])), None):
            taken[earlier.id] = latest
    return taken


Shared = tuple[float, frozenset[str]]
"""How much of a wording two messages share, and by which tokens."""


def _sharing_most(found: SearchResult, hit: Candidate, among: Collection[int]) -> dict[int, Shared]:
    """Return the messages in these channels that share most with a hit, of equal ones the newest, by number."""
    sharing: dict[int, Shared] = {}
    for number, channel_id, *_, held in found.candidates.values():
        both = held & hit.held
        if channel_id in among and number != hit.number and both:
            share = max(found.share(both, wording) for wording in found.wordings)
            if share >= (SHARE_OF_ALL if both == hit.held else SHARE):
                tokens = frozenset(term.token for place, term in enumerate(found.terms) if both >> place & 1)
                sharing[number] = share, tokens
    most = nlargest(LATER, sharing, key=lambda number: (sharing[number][0], number))
    return {number: sharing[number] for number in most}


def _is_later(row: MessageRow, earlier: MessageRow) -> bool:
    """What answers a question does not take it back."""
    is_answer = (row.channel_number, row.turn) == (earlier.channel_number, earlier.turn)
    return row.role in SPOKEN and not is_answer and (row.timestamp, row.number) > (earlier.timestamp, earlier.number)


def _speaks_of(row: MessageRow, tokens: frozenset[str]) -> bool:
    return any(not tokens.isdisjoint(analyze(sentence)) for sentence in sentences_that_take_back(row.text))
