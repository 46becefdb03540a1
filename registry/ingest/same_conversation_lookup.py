"""One channel for one conversation, whichever way it comes: by tool, by hook, from the client's own store.

A channel that is known to be a client's session is `claimed`; one that a tool named is not, until it turns out which
session it is: by its native id, else by what was asked in it, within the same source, project and time. When unsure,
two channels are kept and linked, and looked at again when either grows (issue 3).
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, case, func, select

from registry.domain import Message, Project, Role, digest_of, storable
from registry.ingest.paraphrase_rows import in_turns
from registry.ingest.same_conversation import Evidence, Telling, Verdict, compare
from registry.ingest.turn_alignment import Line
from registry.storage.aliases import aliases_of
from registry.storage.channels import ChannelRow
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.tables import channel, conversation

NEAR = timedelta(hours=36)
"""A channel whose activity is farther away in time than this is another conversation."""
MOST_LOOKED_AT = 5
"""So many channels that share most questions are looked at closely."""
MOST_NEAR = 1000
MOST_QUESTIONS = 500
"""By so many of a conversation's last questions others are found that share some."""

_ENOUGH_IDS = 100

FAMILIES = {"cursor-agent": "cursor"}
"""Sources whose conversations are told under another source's name: a rule of Cursor's says `cursor` in its CLI too."""

PUSHED = "ao"
"""Who stored a message that was sent through a tool, as its `actor` (seed 004 §3.1)."""

_TOLD = [conversation.c[name] for name in ("number", "role", "digest", "seq", "turn", "place")]
_LOCK = 0x63747873


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Where and when a conversation took place."""

    source: str
    project: str | None
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Found:
    """The channels that are certainly the same conversation, best first, and those that may be."""

    same: list[ChannelRow] = field(default_factory=list)
    perhaps: list[ChannelRow] = field(default_factory=list)
    other: list[ChannelRow] = field(default_factory=list)


def family_of(source: str) -> list[str]:
    """The sources under which a conversation of this one may be told."""
    head = FAMILIES.get(source, source)
    return [head, *(each for each, of in FAMILIES.items() if of == head)]


def decide_alone(tx: WriteTransaction, source: str) -> None:
    """Who decides which channel a conversation belongs to waits for others who do: two would make two channels.

    Taken before any channel is locked. SQLite has one writer anyway.
    """
    if tx.dialect.name == "postgresql":
        key = zlib.crc32(family_of(source)[0].encode()) - 2**31
        tx.execute(select(func.pg_advisory_xact_lock(_LOCK, key)))


@dataclass(frozen=True, slots=True)
class Agent:
    """A sub-agent and the session it works for: its own id is short, and others may have the same."""

    of_session: str
    messages: Sequence[Message]


def channel_of_session(
    tx: ReadTransaction, sources: Sequence[str], session_id: str, agent: Agent | None = None
) -> ChannelRow | None:
    """The channel that is known to be this session; one of the first source before others."""
    query = select(channel).where(channel.c.session_id == session_id, channel.c.source.in_(sources))
    rows = tx.execute(query.order_by(case((channel.c.source == sources[0], 0), else_=1), channel.c.number))
    return next((row for row in rows if agent is None or _is_that_agent(tx, row, agent)), None)


def _is_that_agent(tx: ReadTransaction, row: ChannelRow, agent: Agent) -> bool:
    """Known to work for the same session, or for one whose copy this is: then its messages have the same ids."""
    if row.meta.get("parent") in (None, agent.of_session):
        return True
    ids = [message.more.get("native_id") for message in agent.messages[:_ENOUGH_IDS]]
    query = select(conversation.c.number).where(
        conversation.c.channel_number == row.number, conversation.c.native_id.in_(filter(None, ids))
    )
    return tx.execute(query.limit(1)).first() is not None


def telling_of(messages: Sequence[Message]) -> Telling:
    """Messages as they came."""
    lines = [Line(message.role, digest_of(message.role, storable(message.text))) for message in messages]
    return Telling(lines, lambda places: {at: messages[at].text for at in places})


def stored_telling(tx: ReadTransaction, number: int) -> Telling:
    """What a channel holds of what was said in it."""
    said = conversation.c.channel_number == number, conversation.c.role.in_((Role.USER, Role.ASSISTANT))
    rows = in_turns(tx.execute(select(*_TOLD).where(*said).order_by(conversation.c.place, conversation.c.number)).all())
    numbers = [row.number for row in rows]
    lines = [Line(row.role, bytes(row.digest)) for row in rows]
    return Telling(lines, lambda places: texts_of(tx, numbers, places))


def texts_of(tx: ReadTransaction, numbers: Sequence[int], places: Sequence[int]) -> Mapping[int, str]:
    """The texts of some of these messages, by their position among them."""
    if not places:
        return {}
    query = select(conversation.c.number, conversation.c.text)
    held = dict(tx.execute(query.where(conversation.c.number.in_([numbers[at] for at in places]))).all())
    return {at: held[numbers[at]] for at in places}


Tell = Callable[[], Telling]
"""Gives a telling when it is needed: mostly there is nothing to lay it beside."""


def sessions_told(tx: ReadTransaction, about: Circumstances, tell: Tell) -> Found:
    """The sessions that a conversation told by a tool may be. More than one that fits is none that is certain."""
    found = _look(tx, about, tell, channel.c.session_id.is_not(None))
    return found if len(found.same) <= 1 else Found([], [*found.same, *found.perhaps], found.other)


def tellings_of(tx: ReadTransaction, about: Circumstances, tell: Tell, session: int | None) -> Found:
    """The channels under which a tool has told of a session; `session` is its own channel's number, if it has one."""
    return _look(tx, about, tell, channel.c.session_id.is_(None), session)


def judge_session(tx: ReadTransaction, session: int, told: int) -> Verdict:
    """What a session's channel, and one that was told by a tool, are to each other by now."""
    return _verdict(tx, session, compare(stored_telling(tx, session), stored_telling(tx, told)))


def _look(
    tx: ReadTransaction,
    about: Circumstances,
    tell: Tell,
    kind: ColumnElement[bool],
    session: int | None = None,
) -> Found:
    near = _near(tx, about, kind)
    if not near:
        return Found()
    telling = tell()
    found: dict[Verdict, list[tuple[ChannelRow, Evidence]]] = {verdict: [] for verdict in Verdict}
    for row in _most_alike(tx, near, telling):
        evidence = compare(telling, stored_telling(tx, row.number))
        claimed = session if row.session_id is None else row.number
        found[_verdict(tx, claimed, evidence)].append((row, evidence))
    same = found[Verdict.SAME]
    # Where several fit, the questions alone do not tell them apart: the same may be asked in two chats at once.
    sure = same if len(same) <= 1 else [pair for pair in same if pair[1].is_answered]
    unsure = [pair[0] for pair in same if pair not in sure] + _rows(found[Verdict.PERHAPS])
    return Found(_rows(sure), unsure, _rows(found[Verdict.OTHER]))


def _rows(pairs: Iterable[tuple[ChannelRow, Evidence]]) -> list[ChannelRow]:
    return [row for row, _ in pairs]


def _verdict(tx: ReadTransaction, claimed: int | None, evidence: Evidence) -> Verdict:
    """A session that was told under another name already is taken for a second one only if the answers agree too."""
    doubtful = evidence.verdict is Verdict.SAME and not evidence.is_answered
    return Verdict.PERHAPS if doubtful and claimed is not None and _is_told(tx, claimed) else evidence.verdict


def _is_told(tx: ReadTransaction, number: int) -> bool:
    pushed = conversation.c.channel_number == number, conversation.c.actor == PUSHED
    return bool(aliases_of(tx, number) or tx.execute(select(conversation.c.number).where(*pushed).limit(1)).first())


def _near(tx: ReadTransaction, about: Circumstances, kind: ColumnElement[bool]) -> dict[int, ChannelRow]:
    query = select(channel).where(
        kind,
        channel.c.source.in_(family_of(about.source)),
        channel.c.deleted.is_(False),
        channel.c.updated_at >= about.first - NEAR,
        channel.c.created_at <= about.last + NEAR,
    )
    latest = tx.execute(query.order_by(channel.c.updated_at.desc()).limit(MOST_NEAR))
    return {row.number: row for row in latest if _is_same_project(about.project, row.project_path)}


def _is_same_project(one: str | None, other: str | None) -> bool:
    """Where both are known; a model may give the folder's bare name (seed 004)."""
    if not one or not other:
        return True
    first, second = Project.from_path(one), Project.from_path(other)
    is_bare = first.path == first.name or second.path == second.name
    return first.path == second.path or (is_bare and first.name == second.name)


def _most_alike(tx: ReadTransaction, near: Mapping[int, ChannelRow], telling: Telling) -> list[ChannelRow]:
    """Those that share most questions, the latest first among equals."""
    asked = [line.digest for line in telling.lines if line.role == Role.USER]
    digests = list(dict.fromkeys(reversed(asked)))[:MOST_QUESTIONS]
    if not digests:
        return []
    query = select(conversation.c.channel_number, conversation.c.digest).where(
        conversation.c.channel_number.in_(near), conversation.c.digest.in_(digests)
    )
    shared = Counter(number for number, _ in tx.execute(query.distinct()))
    ranked = sorted(shared, key=lambda number: (shared[number], near[number].updated_at), reverse=True)
    return [near[number] for number in ranked[:MOST_LOOKED_AT]]
