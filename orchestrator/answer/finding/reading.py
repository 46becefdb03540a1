"""Read the conversation that is meant: the turns that answer, a later change, its end; or its last messages alone."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from orchestrator.answer.delivery import MessageDict, Turn, message_dict
from orchestrator.answer.finding.beside import candidate, candidates_in_time, candidates_of
from orchestrator.answer.finding.choosing import Choice, latest
from orchestrator.answer.finding.elsewhere import About, nearest_about, note_of, nothing_then
from orchestrator.answer.finding.looking_up import Lookup
from orchestrator.answer.finding.newer import change_of
from orchestrator.answer.finding.relevance import Judged, turns_in
from orchestrator.requests.shapes import ExtractQuery
from registry.domain import Role
from registry.errors import NotFound
from registry.search.retrieval import SearchResult
from registry.search.sessions import read_messages_around
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import by_numbers, messages_of, seqs_of, turns_of
from registry.storage.database import ReadTransaction
from registry.storage.paging import place_of
from registry.text.ranking.confidence import Confidence
from registry.text.request.understanding import ParsedRequest

END = 80
"""Last messages of a channel that its state is read from."""
NEAR = 0.75  # share of the best message's score from which on a message is delivered
WHOLE = 400
"""A conversation of more messages is not tried whole."""


@dataclass(frozen=True, slots=True)
class KeptRanking:
    """Place in the ranking of an earlier extraction, for its next page."""

    result_id: str
    offset: int


@dataclass(frozen=True, slots=True)
class Extraction:
    """Messages read of one channel: `ranked` turns best first, and its last turns in order.

    `seqs` are the places of all its messages of the roles asked for. Without words `ranked` is empty and `has_older`
    says whether there is more before `end`.
    """

    channel: ChannelRow
    read: ParsedRequest
    ranked: list[list[MessageDict]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    hits: Mapping[int, int] = field(default_factory=dict)
    """The places in the ranking of the messages found, by number."""
    shares: Mapping[int, float] = field(default_factory=dict)
    """The score of each turn's best message as a share of the best of all."""
    end: list[list[MessageDict]] = field(default_factory=list)
    recent: list[MessageDict] = field(default_factory=list)
    seqs: Sequence[int] = ()
    result: SearchResult | None = None
    verdicts: list[Judged] = field(default_factory=list)
    confidence: Confidence | None = None
    candidates: list[dict[str, Any]] = field(default_factory=list)
    replaced_on: Mapping[str, str] = field(default_factory=dict)
    """For the ids of messages that a later statement replaces when that was made."""
    newer: dict[str, Any] | None = None
    """A later statement on the same thing, which may change what this conversation says."""
    relaxed: str = ""
    """Part of the request that was given up because nothing was found with it: its words, or its time."""
    note: str = ""
    has_older: bool = False
    is_paged: bool = False
    """A cursor may go on with what is older."""
    kept: KeptRanking | None = None
    relaxation: str = ""
    """Part of the request to give up next, if this is not sure enough (`Lookup.relaxation`)."""


class NothingRead(NamedTuple):
    """Result of a request that nothing answers; `relaxation` as above."""

    error: NotFound
    relaxation: str


def its_answer(asked: Lookup[ExtractQuery], choice: Choice, kept: Sequence[Judged], sure: Confidence) -> Extraction:
    """The turns that answer, what takes them back, the end, and what may be meant instead."""
    tx, query, said = asked.tx, asked.query, asked.said
    asked.run.recorder.explain(confidence=sure.value)
    found, row = choice.found, choice.channel
    change = change_of(asked, choice)
    turns = turns_in(kept)
    if change.turn:  # the turn that changes what the best one says is shown with it
        turns = list(dict.fromkeys([turns[0], change.turn, *turns[1:]]))
    best = kept[0].score or 1.0
    shares = {one.ranked.candidate.turn: one.score / best for one in reversed(kept)}
    if change.turn:
        shares[change.turn[1]] = 1.0
    end = _end_of(asked, row)
    hits = {one.ranked.candidate.number: place for place, one in enumerate(kept)}
    ranked = messages_in(tx, turns[: 2 * query.limit], query)
    return Extraction(
        channel=row,
        read=said,
        ranked=_with_following(tx, ranked, {one.ranked.candidate.seq for one in kept if one.score >= NEAR * best}, end),
        turns=turns,
        hits=hits,
        shares=shares,
        **end,
        result=found,
        verdicts=choice.inside,
        confidence=sure,
        replaced_on=change.replaced_on,
        newer=change.newer,
        candidates=candidates_of(tx, choice.candidates, found, sure),
    )


def its_end(asked: Lookup[ExtractQuery], choice: Choice, sure: Confidence) -> Extraction:
    """Return the end of a conversation that is called so, though no message of it speaks of it."""
    ended = last_messages(asked, choice.channel, relaxed="words", is_chosen=bool(choice.candidates))
    return ended if asked.said.is_narrowed else replace(ended, confidence=sure)


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
        candidates=with_nearest(candidates_in_time(tx, others, scope, query.roles), about, row),
    )


def messages_in(tx: ReadTransaction, turns: Sequence[Turn], query: ExtractQuery) -> list[list[MessageDict]]:
    """The messages of some turns, of the roles asked for, in the order of the turns."""
    rows = (one for one in turns_of(tx, turns) if one.role in query.roles and not one.payload.get("injected"))
    by_turn: dict[Turn, list[MessageDict]] = {turn: [] for turn in turns}
    for one in rows:
        by_turn[(one.channel_number, one.turn)].append(message_dict(one))
    return [messages for messages in by_turn.values() if messages]


def _with_following(
    tx: ReadTransaction, ranked: list[list[MessageDict]], near: Collection[int], end: Mapping[str, Any]
) -> list[list[MessageDict]]:
    """Add the two messages behind each near hit (seqs) to its turn, and the answer if the second asks: an error's cure
    may come in the next turn."""
    seqs: Sequence[int] = end["seqs"]
    place = {seq: at for at, seq in enumerate(seqs)}
    shown = {message["seq"] for turn in ranked for message in turn}
    behind = {seq: seqs[place[seq] + 1 : place[seq] + 4] for seq in shown.intersection(near) if seq in place}
    wanted = sorted({seq for some in behind.values() for seq in some})
    if not (wanted and ranked):
        return ranked
    number = ranked[0][0]["channel_number"]
    around = read_messages_around(tx, {number: wanted})[number]
    rows = {row.seq: message_dict(row) for row in by_numbers(tx, [one.number for one in around])}
    return [[*turn, *_behind(turn, behind, rows)] for turn in ranked]


def _behind(
    turn: Sequence[MessageDict], behind: Mapping[int, Sequence[int]], rows: Mapping[int, MessageDict]
) -> list[MessageDict]:
    """Return what follows the hits of a turn and does not belong to it."""
    held = {message["seq"] for message in turn}
    following: dict[int, MessageDict] = {}
    for seq in held & behind.keys():
        some = [rows[one] for one in behind[seq] if one in rows and not rows[one]["payload"].get("injected")]
        most = 3 if len(some) > 2 and some[1]["role"] == Role.USER else 2
        following |= {one["seq"]: one for one in some[:most] if one["seq"] not in held}
    return [following[seq] for seq in sorted(following)]


def _end_of(asked: Lookup[ExtractQuery], row: ChannelRow) -> dict[str, Any]:
    """The channel's last turns; all of it where somebody wants to go on with it and it is not too long."""
    tx, roles, is_continuation = asked.tx, asked.query.roles, asked.said.is_continuation
    rows = messages_of(tx, row.number, limit=END)
    recent = list(map(message_dict, rows))
    spoken = [message for message in recent if message["role"] in roles]
    wanted = (WHOLE if is_continuation else END) - len(spoken)
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


def with_nearest(candidates: list[dict[str, Any]], about: About | None, row: ChannelRow) -> list[dict[str, Any]]:
    """Put the conversation of another time that holds the words first among the candidates."""
    if about is None or about.channel.number == row.number:
        return candidates
    others = [one for one in candidates if one["channel"] != about.channel.name]
    return [candidate(about.channel, [about.message._asdict()] if about.message else []), *others]
