"""Find the channel of a client's session: the one it is known as, else one that a tool has named, else a new one.

A channel that is known to be a client's session has its id; one that a tool named has none, until it turns out which
session it is: by its native id, else by what was asked in it, within the same source, project and time. When unsure,
two channels are kept and linked, and looked at again when either gets a message.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, count
from typing import Any

from sqlalchemy import ColumnElement, case, or_, select, text

from registry.domain import Actor, Message, Role, Session, now, parse_time
from registry.ingest.alignment import Transcript, Utterance
from registry.ingest.dedup import stored_texts
from registry.ingest.merge_channels import merge_channels, merge_shortened
from registry.ingest.own_calls import NOTE
from registry.ingest.same_conversation import Evidence, Verdict, compare
from registry.ingest.save import Saved
from registry.project import Project
from registry.storage.conversations.channels import INFERRED, KNOWN, TIMES, ChannelRow, find_channel, open_channel
from registry.storage.conversations.messages import in_turns
from registry.storage.conversations.references import aliases_of, set_links
from registry.storage.database import ReadTransaction, WriteTransaction, take_turn
from registry.storage.records.extract_results import resumed_session
from registry.storage.safety.visibility import ask_all
from registry.storage.tables import channel, conversation


def channel_of_session(
    tx: ReadTransaction, sources: Sequence[str], session_id: str, agent: Session | None = None
) -> ChannelRow | None:
    """Return the channel that is known to be this session, of the first source before others.

    `agent`: a sub-agent's session. Its id is short, and sub-agents of other sessions may have the same.
    """
    query = select(channel).where(channel.c.session_id == session_id, channel.c.source.in_(sources))
    rows = tx.execute(query.order_by(case((channel.c.source == sources[0], 0), else_=1), channel.c.number))
    return next((row for row in rows if agent is None or _is_that_agent(tx, row, agent)), None)


def _is_that_agent(tx: ReadTransaction, row: ChannelRow, agent: Session) -> bool:
    """Return True if the channel works for the same session, or for a copy of it, whose messages have the same ids."""
    if row.meta.get("parent") in (None, agent.parent):
        return True
    ids = [message.native_id for message in agent.messages[:100]]
    query = select(conversation.c.number).where(
        conversation.c.channel_number == row.number, conversation.c.native_id.in_(filter(None, ids))
    )
    return tx.execute(query.limit(1)).first() is not None


@dataclass(frozen=True, slots=True)
class SessionChannel:
    """A session's channel as far as there is one, and the channels that tools have named and that may be the session.

    `named` is None for a session that is known already: then these are looked for when something new of it was stored.
    """

    known: ChannelRow | None
    named: Matches | None = None
    resumed: Resumed | None = None  # set for a session written by `ctxr resume`


IN_SESSION = "in_session"  # payload key of messages of a resumed session: the session's id


@dataclass(frozen=True, slots=True)
class Resumed:
    """A session of another client that a channel was resumed in. Several sessions may continue one channel."""

    source: str
    session_id: str
    questions: Sequence[bytes]  # digests of the questions written into it, in order
    written_at: datetime

    @property
    def rows(self) -> ColumnElement[bool]:
        """Return the stored messages that may be of this session: its own, and those its client logged by a tool."""
        in_session = conversation.c.payload[IN_SESSION].as_string()
        is_logged = conversation.c.native_id.is_(None) & (conversation.c.source == self.source)
        return or_(in_session == self.session_id, is_logged & in_session.is_(None))

    def said_in(self, messages: Iterable[Message]) -> list[Message]:
        return [replace(message, more={**message.more, IN_SESSION: self.session_id}) for message in messages]

    def said_since(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages of the session after it was written, marked as said in it.

        The questions that were written stand first, in their order. A later one with the same words is new, and so is
        whatever carries a time after the writing.
        """
        written = deque(self.questions)
        since: list[Message] = []
        is_new = False
        for message in messages:
            if message.role is Role.USER:
                digest = message.digest
                is_later = message.timestamp is not None and message.timestamp > self.written_at
                is_new = is_later or digest not in written
                while not is_new and written.popleft() != digest:
                    pass  # the client has dropped a question
            if is_new and not (message.role is Role.USER and message.text.startswith(NOTE)):
                since.append(message)
        return self.said_in(since)


def _resumed(tx: ReadTransaction, row: ChannelRow, source: str, session_id: str) -> Resumed:
    result = resumed_session(tx, session_id)
    if result is None:  # named by hand: nothing of it is ours
        return Resumed(source, session_id, (), row.created_at)
    questions = [bytes.fromhex(digest) for digest in result.metadata.get("questions", ())]
    return Resumed(source, session_id, questions or _questions_until(tx, row, result.timestamp), result.timestamp)


def _questions_until(tx: ReadTransaction, row: ChannelRow, moment: datetime) -> list[bytes]:
    query = select(conversation.c.digest).where(
        conversation.c.channel_number == row.number,
        conversation.c.role == Role.USER,
        conversation.c.received_at <= moment,
    )
    return [bytes(digest) for digest in tx.execute(query.order_by(conversation.c.place)).scalars()]


def channel_for(tx: WriteTransaction, source: str, session: Session) -> SessionChannel:
    """Find the channel of a client's session. Such decisions are serialised until the transaction ends."""
    decide_alone(tx, source)
    row = find_channel(tx, session.session_id)
    if row and session.session_id not in (row.name, row.session_id):  # an alias, given by `ctxr resume`
        return SessionChannel(row, resumed=_resumed(tx, row, source, session.session_id))
    agent = session if session.parent and session.meta.get("relation") == "sub-agent" else None
    known = channel_of_session(tx, [source, *family_of(source)], session.session_id, agent)
    if known:
        return SessionChannel(known)
    named = matching_named(tx, Circumstances.of(source, None, session), lambda: transcript_of(session.messages), None)
    return SessionChannel(named.same[0] if named.same else None, named)


def open_for(tx: WriteTransaction, source: str, session: Session, known: ChannelRow | None) -> ChannelRow:
    """Return the session's channel, made if new, locked."""
    return open_channel(tx, known.name if known else _new_name(tx, source, session), source, now())


def bring_together(tx: WriteTransaction, about: Circumstances, saved: Saved, found: SessionChannel) -> None:
    """Merge channels that tools have named into their session's channel; link those that may be the same."""
    if saved.new and (found.named is None or found.named.same):
        merge_shortened(tx, saved.channel_number)
    number = saved.channel_number
    named = found.named
    if named is None:
        named = matching_named(tx, about, lambda: stored_transcript(tx, number), number) if saved.new else Matches()
    for row in named.same:
        if row.number != number:
            merge_channels(tx, row.number, number)
    for row in named.perhaps:
        set_links(tx, row.number, [number])


def _new_name(tx: WriteTransaction, source: str, session: Session) -> str:
    name, own = names_for(source, session)
    names = chain([name, own], (f"{own}_{number}" for number in count(2)))
    return next(free for free in names if find_channel(tx, free) is None)


def names_for(source: str, session: Session) -> tuple[str, str]:
    """Return `{source}_session_{timestamp}`, and the same with the native id for a session of the same second."""
    began = next((message.timestamp for message in session.messages if message.timestamp), now())
    name = f"{source}_session_{began:%Y%m%d_%H%M%S}"
    return name, f"{name}_{session.session_id[:36]}"


def describing(session: Session) -> dict[str, Any]:
    """Return a session's metadata for its channel."""
    known = {
        "session_id": session.session_id,
        "title": session.title,
        "project": session.project,
        "parent": session.parent,
        **session.meta,
    }
    return {name: value for name, value in known.items() if value is not None}


def whose_times(session: Session, known: ChannelRow | None) -> dict[str, str]:
    """Return the note on a session's times: all inferred, or known by now."""
    if session.messages and all(message.more.get("time") == INFERRED for message in session.messages):
        return {TIMES: INFERRED}
    return {TIMES: KNOWN} if known and TIMES in known.meta else {}


NEAR = timedelta(hours=36)  # a channel with activity farther away is another conversation
MOST_NEAR = 1000

FAMILIES = {"cursor-agent": "cursor"}
"""Sources whose conversations come under another source's name, too: Cursor's rule says `cursor` in its CLI as well."""

_COMPARED = [conversation.c[name] for name in ("number", "role", "digest", "seq", "turn", "place")]
_PATIENCE = "SELECT set_config('lock_timeout', '2s', true) WHERE current_setting('lock_timeout') <> '0'"
"""Limits the wait for further locks while decisions are serialised, where there is a limit at all."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    source: str
    project: str | None
    first: datetime
    last: datetime

    @classmethod
    def of(cls, source: str, known: ChannelRow | None, session: Session) -> Circumstances:
        """Return those of a client's session, and of its channel if it has one."""
        moments = [message.timestamp for message in session.messages if message.timestamp]
        if known and known.message_count:
            moments += [parse_time(known.created_at), parse_time(known.updated_at)]
        moments = moments or [now()]
        return cls(source, session.project or (known.project_path if known else None), min(moments), max(moments))


@dataclass(frozen=True, slots=True)
class Matches:
    """Channels that are certainly the same conversation, best first, and channels that may be."""

    same: list[ChannelRow] = field(default_factory=list)
    perhaps: list[ChannelRow] = field(default_factory=list)


def family_of(source: str) -> list[str]:
    """Return the sources under which a conversation of this one may come."""
    head = FAMILIES.get(source, source)
    return [head, *(each for each, of in FAMILIES.items() if of == head)]


def decide_alone(tx: WriteTransaction, source: str) -> None:
    """Serialise decisions about a source's channels: two at once would make two channels.

    Taken before any channel is locked. SQLite has one writer anyway.
    """
    if tx.dialect.name == "postgresql":
        take_turn(tx, f"channels of {family_of(source)[0]}")
        ask_all(tx, text(_PATIENCE))


def transcript_of(messages: Sequence[Message]) -> Transcript:
    utterances = [Utterance(message.role, message.digest) for message in messages]
    return Transcript(utterances, lambda places: {at: messages[at].text for at in places})


def stored_transcript(tx: ReadTransaction, number: int) -> Transcript:
    said = conversation.c.channel_number == number, conversation.c.role.in_((Role.USER, Role.ASSISTANT))
    query = select(*_COMPARED).where(*said).order_by(conversation.c.place, conversation.c.number)
    rows = in_turns(tx.execute(query).all())
    return Transcript([Utterance(row.role, bytes(row.digest)) for row in rows], stored_texts(tx, rows))


Read = Callable[[], Transcript]  # reads a transcript if it is needed


def matching_sessions(tx: ReadTransaction, about: Circumstances, read: Read) -> Matches:
    """Return the sessions that a conversation sent by a tool may be. If several fit, none is certain."""
    found = _matches(tx, about, read, channel.c.session_id.is_not(None))
    return found if len(found.same) <= 1 else Matches([], [*found.same, *found.perhaps])


def matching_named(tx: ReadTransaction, about: Circumstances, read: Read, session: int | None) -> Matches:
    """Return the channels that a tool has named and that may be a session; `session` is its own channel, if any."""
    return _matches(tx, about, read, channel.c.session_id.is_(None), session)


def without_named(tx: ReadTransaction, source: str, about: Mapping[int, Circumstances]) -> list[int]:
    """Return the new sessions near which, in time, no tool has named a channel: there is nothing to merge with."""
    if not about:
        return []
    first, last = min(one.first for one in about.values()), max(one.last for one in about.values())
    near = _near(tx, Circumstances(source, None, first, last), channel.c.session_id.is_(None))
    if len(near) >= MOST_NEAR:
        return []
    spans = [(parse_time(row.created_at) - NEAR, parse_time(row.updated_at) + NEAR) for row in near.values()]
    return [
        key for key, one in about.items() if not any(begin <= one.last and one.first <= end for begin, end in spans)
    ]


def judge_session(tx: ReadTransaction, session: int, named: int) -> Verdict:
    return _verdict(tx, session, compare(stored_transcript(tx, session), stored_transcript(tx, named)))


def _matches(
    tx: ReadTransaction, about: Circumstances, read: Read, kind: ColumnElement[bool], session: int | None = None
) -> Matches:
    near = _near(tx, about, kind)
    if not near:
        return Matches()
    transcript = read()
    found: dict[Verdict, list[tuple[ChannelRow, Evidence]]] = {verdict: [] for verdict in Verdict}
    for row in _most_alike(tx, near, transcript):
        evidence = compare(transcript, stored_transcript(tx, row.number))
        claimed = session if row.session_id is None else row.number
        found[_verdict(tx, claimed, evidence)].append((row, evidence))
    same = found[Verdict.SAME]
    # Where several fit, the questions alone do not tell them apart: the same may be asked in two chats at once.
    sure = same if len(same) <= 1 else [pair for pair in same if pair[1].is_answered]
    unsure = [pair for pair in same if pair not in sure] + found[Verdict.PERHAPS]
    return Matches([row for row, _ in sure], [row for row, _ in unsure])


def _verdict(tx: ReadTransaction, claimed: int | None, evidence: Evidence) -> Verdict:
    """Take a session that was logged under another name for a second one only if the answers agree too."""
    if claimed is None or evidence.verdict is not Verdict.SAME or evidence.is_answered:
        return evidence.verdict
    sent = conversation.c.channel_number == claimed, conversation.c.actor == Actor.TOOL
    is_logged = aliases_of(tx, claimed) or tx.execute(select(conversation.c.number).where(*sent).limit(1)).first()
    return Verdict.PERHAPS if is_logged else evidence.verdict


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
    if not one or not other:
        return True
    first, second = Project.from_path(one), Project.from_path(other)
    is_bare = first.path == first.name or second.path == second.name
    return first.path == second.path or (is_bare and first.name == second.name)


def _most_alike(tx: ReadTransaction, near: Mapping[int, ChannelRow], transcript: Transcript) -> list[ChannelRow]:
    asked = [each.digest for each in transcript.utterances if each.role == Role.USER]
    # the last questions are enough to find others that share some
    digests = list(dict.fromkeys(reversed(asked)))[:500]
    if not digests:
        return []
    query = select(conversation.c.channel_number, conversation.c.digest).where(
        conversation.c.channel_number.in_(near), conversation.c.digest.in_(digests)
    )
    shared = Counter(number for number, _ in tx.execute(query.distinct()))
    ranked = sorted(shared, key=lambda number: (shared[number], near[number].updated_at), reverse=True)
    return [near[number] for number in ranked[:5]]  # only the channels that share most questions are compared
