"""Read the chosen conversation: matching turns, a later statement and its end, or its last messages only."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from orchestrator.answer.delivery import MessageDict, message_dict
from orchestrator.answer.finding.alternatives import alternative, alternatives_in_time, alternatives_of
from orchestrator.answer.finding.choosing import Choice, latest_channels
from orchestrator.answer.finding.elsewhere import OtherTimeMatch, empty_scope_error, nearest_other_time, other_time_note
from orchestrator.answer.finding.lookup import Lookup
from orchestrator.answer.finding.newer import find_later_statement
from orchestrator.answer.finding.relevance import JudgedMessage
from orchestrator.requests.shapes import ExtractQuery
from registry.domain import Role
from registry.errors import NotFound
from registry.search.retrieval import SearchResult
from registry.search.sessions import read_messages_around
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import (
    by_numbers,
    messages_of,
    messages_of_turns,
    seqs_of,
    superseded_among,
)
from registry.storage.database import ReadTransaction
from registry.storage.paging import position_of
from registry.text.ranking.confidence import Confidence
from registry.text.request.understanding import ParsedRequest

MAX_END = 80  # last messages of a channel from which its state is derived
MIN_SCORE_SHARE = 0.75  # share of the best message's score from which a message is delivered
MAX_WHOLE = 400  # messages; a longer conversation is never sent whole


@dataclass(frozen=True, slots=True)
class Extraction:
    """Messages read from one channel: `ranked` turns best first, and `end`, its last turns in order.

    `seqs`: positions of all its messages of the requested roles. Without query words, `ranked` is empty and `has_older`
    is True if there are messages before `end`.
    """

    channel: ChannelRow
    parsed: ParsedRequest
    ranked: list[list[MessageDict]] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)  # seqs of their first messages
    hits: Mapping[int, int] = field(default_factory=dict)
    """Rank of each message found, by number."""
    shares: Mapping[int, float] = field(default_factory=dict)
    """Score of each turn's best message as a share of the best score."""
    end: list[list[MessageDict]] = field(default_factory=list)
    recent: list[MessageDict] = field(default_factory=list)
    seqs: Sequence[int] = ()
    result: SearchResult | None = None
    verdicts: list[JudgedMessage] = field(default_factory=list)
    confidence: Confidence | None = None
    candidates: list[dict[str, Any]] = field(default_factory=list)
    replaced_on: Mapping[str, str] = field(default_factory=dict)
    """Time of the later statement for each id of a message that it replaces."""
    newer: dict[str, Any] | None = None
    """A later statement on the same subject, which may replace this conversation's."""
    relaxed: str = ""
    """Part of the request that was dropped because nothing matched it: its words or its time."""
    note: str = ""
    has_older: bool = False
    is_paged: bool = False
    """True if a cursor may continue with older messages."""
    position: Mapping[str, Any] | None = None
    """The position in the recorded ranking of an earlier extraction, for its next page: {x: its id, o: turns shown}."""
    relaxation: str = ""
    """Part of the request to drop next, if this is not sure enough (`Lookup.relaxation`)."""


class NothingFound(NamedTuple):
    """Result of a request without an answer; `relaxation` as above."""

    error: NotFound
    relaxation: str


def read_answer(
    lookup: Lookup[ExtractQuery], choice: Choice, judged: Sequence[JudgedMessage], sure: Confidence
) -> Extraction:
    """Read the matching turns (valid ones first), a later statement that replaces them, the end, and alternatives."""
    tx, query, parsed = lookup.tx, lookup.query, lookup.parsed
    superseded = superseded_among(tx, [one.ranked.candidate.number for one in judged])
    judged = sorted(judged, key=lambda one: one.ranked.candidate.number in superseded)
    lookup.run.recorder.explain(confidence=sure.value)
    found, row = choice.found, choice.channel
    change = find_later_statement(lookup, choice)
    turns = list(dict.fromkeys(one.ranked.candidate.turn for one in judged))
    if change.turn is not None:  # show the turn with the later statement next to the best turn
        turns = list(dict.fromkeys([turns[0], change.turn, *turns[1:]]))
    best = judged[0].score or 1.0
    shares = {one.ranked.candidate.turn: one.score / best for one in reversed(judged)}
    if change.turn is not None:
        shares[change.turn] = 1.0
    end = _last_turns(lookup, row)
    rank_of = {one.ranked.candidate.number: rank for rank, one in enumerate(judged)}
    ranked = read_turns(tx, row.number, turns[: 2 * query.limit], query)
    best_seqs = {one.ranked.candidate.seq for one in judged if one.score >= MIN_SCORE_SHARE * best}
    return Extraction(
        channel=row,
        parsed=parsed,
        ranked=_add_following(tx, ranked, best_seqs, end),
        turns=turns,
        hits=rank_of,
        shares=shares,
        **end,
        result=found,
        verdicts=choice.verdicts,
        confidence=sure,
        replaced_on=change.replaced_on,
        newer=change.newer,
        candidates=alternatives_of(tx, choice.candidates, found, sure),
    )


def read_last_messages(
    lookup: Lookup[ExtractQuery], row: ChannelRow | None, *, relaxed: str = "", is_chosen: bool = False
) -> Extraction:
    """Read a channel's last messages in scope, for a request without query words or without matches."""
    tx, query, scope = lookup.tx, lookup.query, lookup.scope
    names_time = bool(lookup.parsed.search.when_words)
    others: list[ChannelRow] = []
    if row is None:
        row, *others = latest_channels(lookup, relaxed=relaxed)
        if others and not names_time and lookup.parsed.is_before_last:
            row, others[0] = others[0], row
    elif is_chosen and names_time:  # any conversation of that time may be the one
        others = [one for one in latest_channels(lookup, relaxed=relaxed) if one.number != row.number]
    lookup.run.recorder.channel = row.name
    before = position_of(query.cursor) if query.cursor else None
    rows = messages_of(
        tx,
        row.number,
        limit=query.limit + 1,
        roles=query.roles,
        from_=scope.from_,
        to=scope.to,
        before=before,
        only_valid=True,
    )
    if not rows:
        raise empty_scope_error(replace(lookup, scope=replace(scope, channel_number=row.number)))
    other_time = nearest_other_time(lookup) if relaxed and names_time else None
    lookup.run.recorder.explain(channel=row.name, by="the channel's last messages", candidates=len(rows))
    shown = [message_dict(one) for one in rows[-query.limit :]]
    recent = [message_dict(one) for one in messages_of(tx, row.number, limit=MAX_END)]
    undone = {message["seq"] for message in recent if message["superseded"]}
    return Extraction(
        channel=row,
        parsed=lookup.parsed,
        end=_group_turns(shown),
        recent=recent,
        seqs=[seq for seq in seqs_of(tx, row.number, query.roles) if seq not in undone],
        relaxed=relaxed,
        note=other_time_note(other_time, scope, query.utc_offset_minutes) if relaxed and names_time else "",
        has_older=len(rows) > query.limit,
        is_paged=True,
        candidates=with_nearest_time(alternatives_in_time(tx, others, scope, query.roles), other_time, row),
    )


def read_turns(
    tx: ReadTransaction, channel_number: int, turns: Sequence[int], query: ExtractQuery
) -> list[list[MessageDict]]:
    """Read the messages of some turns, with the requested roles, in the order of the turns."""
    by_turn: dict[int, list[MessageDict]] = {turn: [] for turn in turns}
    for one in messages_of_turns(tx, channel_number, turns):
        if one.role in query.roles and not one.payload.get("injected"):
            by_turn[one.turn].append(message_dict(one))
    return [messages for messages in by_turn.values() if messages]


def _add_following(
    tx: ReadTransaction, ranked: list[list[MessageDict]], hit_seqs: Collection[int], end: Mapping[str, Any]
) -> list[list[MessageDict]]:
    """Add the two messages after each of these hits (seqs) to its turn, and a third if the second is the user's: the
    solution of an error may be in the next turn."""
    seqs: Sequence[int] = end["seqs"]
    index = {seq: at for at, seq in enumerate(seqs)}
    shown = {message["seq"] for turn in ranked for message in turn}
    following = {seq: seqs[index[seq] + 1 : index[seq] + 4] for seq in shown.intersection(hit_seqs) if seq in index}
    wanted = sorted({seq for some in following.values() for seq in some})
    if not (wanted and ranked):
        return ranked
    number = ranked[0][0]["channel_number"]
    around = read_messages_around(tx, {number: wanted})[number]
    rows = {row.seq: message_dict(row) for row in by_numbers(tx, [one.number for one in around])}
    return [[*turn, *_following(turn, following, rows)] for turn in ranked]


def _following(
    turn: Sequence[MessageDict], seqs_after: Mapping[int, Sequence[int]], rows: Mapping[int, MessageDict]
) -> list[MessageDict]:
    """Return the messages after the hits of a turn that are not in the turn."""
    seqs_of_turn = {message["seq"] for message in turn}
    following: dict[int, MessageDict] = {}
    for seq in seqs_of_turn & seqs_after.keys():
        some = [rows[one] for one in seqs_after[seq] if one in rows and not rows[one]["payload"].get("injected")]
        most = 3 if len(some) > 2 and some[1]["role"] == Role.USER else 2
        following |= {one["seq"]: one for one in some[:most] if one["seq"] not in seqs_of_turn}
    return [following[seq] for seq in sorted(following)]


def _last_turns(lookup: Lookup[ExtractQuery], row: ChannelRow) -> dict[str, Any]:
    """Read the channel's last turns, or all of them to continue a conversation that is not too long."""
    tx, roles, is_continuation = lookup.tx, lookup.query.roles, lookup.parsed.is_continuation
    rows = messages_of(tx, row.number, limit=MAX_END)
    recent = list(map(message_dict, rows))
    messages = [message for message in recent if message["role"] in roles]
    wanted = (MAX_WHOLE if is_continuation else MAX_END) - len(messages)
    if wanted and len(rows) == MAX_END:
        first = rows[0].timestamp, rows[0].number
        earlier = messages_of(tx, row.number, limit=wanted, roles=roles, before=first)
        messages = [*map(message_dict, earlier), *messages]
    undone = {message["seq"] for message in messages if message["superseded"]}
    return {
        "end": _group_turns([one for one in messages if not (one["superseded"] or one["payload"].get("injected"))]),
        "recent": recent,
        "seqs": [seq for seq in seqs_of(tx, row.number, roles) if seq not in undone],
    }


def _group_turns(messages: Sequence[MessageDict]) -> list[list[MessageDict]]:
    turns: dict[int, list[MessageDict]] = {}
    for message in messages:
        turns.setdefault(message["turn"], []).append(message)
    return list(turns.values())


def with_nearest_time(
    candidates: list[dict[str, Any]], other_time: OtherTimeMatch | None, row: ChannelRow
) -> list[dict[str, Any]]:
    """Put the matching conversation of another time first among the alternatives."""
    if other_time is None or other_time.channel.number == row.number:
        return candidates
    others = [one for one in candidates if one["channel"] != other_time.channel.name]
    return [alternative(other_time.channel, [other_time.message._asdict()] if other_time.message else []), *others]
