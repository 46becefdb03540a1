"""What is read of the conversation that is meant: its turns that answer and its end, or its last messages alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.answer.composing import Extraction
from orchestrator.answer.delivery import Turn, message_dict
from orchestrator.answer.finding.choosing import Choice, latest
from orchestrator.answer.finding.looking_up import Lookup
from orchestrator.answer.finding.other_channels import beside, beside_in_time
from orchestrator.answer.finding.other_times import nearest_about, note_of, nothing_found, nothing_then, with_nearest
from orchestrator.answer.finding.relevance import Judged, turns_in
from orchestrator.answer.finding.reversals import second_thoughts
from orchestrator.answer.selection import MessageDict
from orchestrator.queries import ExtractQuery
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import MessageRow, messages_of, seqs_of, turns_of
from registry.storage.database import ReadTransaction
from registry.storage.paging import place_of, seal_of
from registry.text.ranking.confidence import Confidence
from registry.text.request.query import is_sentence

END = 80
"""So many of a channel's last messages say where it stands."""
WHOLE = 400
"""A conversation of more messages is not tried whole."""


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
    seal = seal_of(tx)
    before = place_of(query.cursor, seal) if query.cursor else None
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
        seal=seal,
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
    spoken = recent = messages_of(tx, row.number, limit=END)
    if goes_on or any(one.role not in roles for one in recent):
        spoken = messages_of(tx, row.number, limit=WHOLE if goes_on else END, roles=roles)
    told = {one.number: message_dict(one) for one in (*recent, *spoken)}
    return {
        "end": _in_turns([told[one.number] for one in spoken if not one.payload.get("injected")]),
        "recent": [told[one.number] for one in recent],
        "seqs": seqs_of(tx, row.number, roles),
    }


def _in_turns(messages: Sequence[MessageDict]) -> list[list[MessageDict]]:
    turns: dict[int, list[MessageDict]] = {}
    for message in messages:
        turns.setdefault(message["turn"], []).append(message)
    return list(turns.values())
