"""Find the channel of a client's session: the one with its id, else one that a tool has named, else a new one.

A channel that a tool has named has no session id, until its session is found: by the native id, else by its questions,
within the same source, project and time. If that is uncertain, the two channels remain separate and are linked; they
are compared again when one of them gets a message.
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
from registry.ingest.same_conversation import Comparison, Verdict, compare
from registry.ingest.save import Saved
from registry.project import Project
from registry.storage.conversations.channels import INFERRED, KNOWN, TIMES, ChannelRow, find_channel, open_channel
from registry.storage.conversations.messages import in_turns
from registry.storage.conversations.references import aliases_of, set_links
from registry.storage.database import ReadTransaction, WriteTransaction, acquire_lock
from registry.storage.records.extract_results import resumed_session
from registry.storage.safety.visibility import ask_all
from registry.storage.tables import channel, conversation


def channel_of_session(
    tx: ReadTransaction, sources: Sequence[str], session_id: str, agent: Session | None = None
) -> ChannelRow | None:
    """Return the channel with this session id; the first source takes precedence.

    `agent`: the session, if it is a sub-agent's. Its id is short, and sub-agents of other sessions may have the same.
    """
    query = select(channel).where(channel.c.session_id == session_id, channel.c.source.in_(sources))
    rows = tx.execute(query.order_by(case((channel.c.source == sources[0], 0), else_=1), channel.c.number))
    return next((row for row in rows if agent is None or _is_that_agent(tx, row, agent)), None)


def _is_that_agent(tx: ReadTransaction, row: ChannelRow, agent: Session) -> bool:
    """Return True if the channel has the same parent session, or messages with the same ids (of a copied parent)."""
    if row.meta.get("parent") in (None, agent.parent):
        return True
    ids = [message.native_id for message in agent.messages[:100]]
    query = select(conversation.c.number).where(
        conversation.c.channel_number == row.number, conversation.c.native_id.in_(filter(None, ids))
    )
    return tx.execute(query.limit(1)).first() is not None


@dataclass(frozen=True, slots=True)
class SessionChannel:
    """A session's channel, if there is one, and the channels that tools have named and that may be the session.

    `named` is None if the channel has the session's id: then `merge_or_link` searches, after storing new messages.
    """

    known: ChannelRow | None
    named: ChannelMatches | None = None
    resumed: Resumed | None = None  # set for a session written by `ctxr resume`


IN_SESSION = "in_session"  # payload key of messages of a resumed session: the session's id


@dataclass(frozen=True, slots=True)
class Resumed:
    """A session of another client that resumes a channel. Several sessions may resume one channel."""

    source: str
    session_id: str
    questions: Sequence[bytes]  # digests of the questions that were written into it, in order
    written_at: datetime

    @property
    def rows(self) -> ColumnElement[bool]:
        """Return the condition for messages that may be of this session: its own, and those a model logged."""
        in_session = conversation.c.payload[IN_SESSION].as_string()
        is_logged = conversation.c.native_id.is_(None) & (conversation.c.source == self.source)
        return or_(in_session == self.session_id, is_logged & in_session.is_(None))

    def marked(self, messages: Iterable[Message]) -> list[Message]:
        return [replace(message, more={**message.more, IN_SESSION: self.session_id}) for message in messages]

    def added_since(self, messages: Iterable[Message]) -> list[Message]:
        """Return the messages that were added after the session was written, marked with its id.

        The written questions come first, in order. A later question with the same words is new, and so is a question
        whose time is after the writing.
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
        return self.marked(since)


def _resumed(tx: ReadTransaction, row: ChannelRow, source: str, session_id: str) -> Resumed:
    result = resumed_session(tx, session_id)
    if result is None:  # the alias was set by hand: we wrote no questions
        return Resumed(source, session_id, (), row.created_at)
    questions = [bytes.fromhex(digest) for digest in result.metadata.get("questions", ())]
    return Resumed(source, session_id, questions, result.timestamp)


def find_session(tx: WriteTransaction, source: str, session: Session) -> SessionChannel:
    """Find the channel of a client's session. Such searches are serialised until the transaction ends."""
    serialise_decisions(tx, source)
    row = find_channel(tx, session.session_id)
    if row and session.session_id not in (row.name, row.session_id):  # an alias, given by `ctxr resume`
        return SessionChannel(row, resumed=_resumed(tx, row, source, session.session_id))
    agent = session if session.parent and session.meta.get("relation") == "sub-agent" else None
    known = channel_of_session(tx, [source, *related_sources(source)], session.session_id, agent)
    if known:
        return SessionChannel(known)
    named = matching_named(tx, Criteria.of(source, None, session), lambda: transcript_of(session.messages), None)
    return SessionChannel(named.same[0] if named.same else None, named)


def open_session(tx: WriteTransaction, source: str, session: Session, known: ChannelRow | None) -> ChannelRow:
    """Create or lock the session's channel, and return it."""
    return open_channel(tx, known.name if known else _free_name(tx, source, session), source, now())


def merge_or_link(tx: WriteTransaction, criteria: Criteria, saved: Saved, found: SessionChannel) -> None:
    """Merge channels that tools have named into their session's channel; link those that may be the same."""
    if saved.new and (found.named is None or found.named.same):
        merge_shortened(tx, saved.channel_number)
    number = saved.channel_number
    named = found.named or ChannelMatches()
    if saved.new and found.named is None:
        named = matching_named(tx, criteria, lambda: stored_transcript(tx, number), number)
    for row in named.same:
        if row.number != number:
            merge_channels(tx, row.number, number)
    for row in named.perhaps:
        set_links(tx, row.number, [number])


def _free_name(tx: WriteTransaction, source: str, session: Session) -> str:
    name, name_with_id = possible_names(source, session)
    names = chain([name, name_with_id], (f"{name_with_id}_{number}" for number in count(2)))
    return next(free for free in names if find_channel(tx, free) is None)


def possible_names(source: str, session: Session) -> tuple[str, str]:
    """Return `{source}_session_{timestamp}`, and the same with the native id, for a session of the same second."""
    began = next((message.timestamp for message in session.messages if message.timestamp), now())
    name = f"{source}_session_{began:%Y%m%d_%H%M%S}"
    return name, f"{name}_{session.session_id[:36]}"


def metadata_of(session: Session) -> dict[str, Any]:
    """Return a session's metadata for its channel."""
    known = {
        "session_id": session.session_id,
        "title": session.title,
        "project": session.project,
        "parent": session.parent,
        **session.meta,
    }
    return {name: value for name, value in known.items() if value is not None}


def times_note(session: Session, known: ChannelRow | None) -> dict[str, str]:
    """Return the metadata on a session's times: all inferred, or known now after they were inferred."""
    if session.messages and all(message.more.get("time") == INFERRED for message in session.messages):
        return {TIMES: INFERRED}
    return {TIMES: KNOWN} if known and TIMES in known.meta else {}


MAX_GAP = timedelta(hours=36)  # a channel whose activity is further away is another conversation
MAX_CANDIDATES = 1000  # channels, the most recent ones

FAMILIES = {"cursor-agent": "cursor"}
"""Sources whose conversations may also be sent under another source: Cursor's rule says `cursor` in its CLI as well."""

_TRANSCRIPT_COLUMNS = [conversation.c[name] for name in ("number", "role", "digest", "seq", "turn", "place")]
_SET_LOCK_TIMEOUT = "SELECT set_config('lock_timeout', '2s', true) WHERE current_setting('lock_timeout') <> '0'"
"""Shortens the lock timeout, if there is one, while other writers wait for this transaction."""


@dataclass(frozen=True, slots=True)
class Criteria:
    source: str
    project: str | None
    first: datetime
    last: datetime

    @classmethod
    def of(cls, source: str, known: ChannelRow | None, session: Session) -> Criteria:
        """Return the criteria of a client's session, including the project and times of its channel if it has one."""
        times = [message.timestamp for message in session.messages if message.timestamp]
        if known and known.message_count:
            times += [parse_time(known.created_at), parse_time(known.updated_at)]
        times = times or [now()]
        return cls(source, session.project or (known.project_path if known else None), min(times), max(times))


@dataclass(frozen=True, slots=True)
class ChannelMatches:
    """Channels that are certainly the same conversation, best first, and channels that may be."""

    same: list[ChannelRow] = field(default_factory=list)
    perhaps: list[ChannelRow] = field(default_factory=list)


def related_sources(source: str) -> list[str]:
    """Return the sources under which a conversation of this source may be sent."""
    head = FAMILIES.get(source, source)
    return [head, *(each for each, of in FAMILIES.items() if of == head)]


def serialise_decisions(tx: WriteTransaction, source: str) -> None:
    """Lock a source until the transaction ends, because two writers at once would create two channels.

    Call it before any channel is locked. SQLite has a single writer anyway.
    """
    if tx.dialect.name == "postgresql":
        acquire_lock(tx, f"channels of {related_sources(source)[0]}")
        ask_all(tx, text(_SET_LOCK_TIMEOUT))


def transcript_of(messages: Sequence[Message]) -> Transcript:
    utterances = [Utterance(message.role, message.digest) for message in messages]
    return Transcript(utterances, lambda positions: {at: messages[at].text for at in positions})


def stored_transcript(tx: ReadTransaction, number: int) -> Transcript:
    is_text = conversation.c.channel_number == number, conversation.c.role.in_((Role.USER, Role.ASSISTANT))
    query = select(*_TRANSCRIPT_COLUMNS).where(*is_text).order_by(conversation.c.place, conversation.c.number)
    rows = in_turns(tx.execute(query).all())
    return Transcript([Utterance(row.role, bytes(row.digest)) for row in rows], stored_texts(tx, rows))


GetTranscript = Callable[[], Transcript]  # called only if a transcript is needed


def matching_sessions(tx: ReadTransaction, criteria: Criteria, read: GetTranscript) -> ChannelMatches:
    """Return the sessions that may be the conversation that a tool sent. If several match, none is certain."""
    found = _matches(tx, criteria, read, channel.c.session_id.is_not(None))
    return found if len(found.same) <= 1 else ChannelMatches([], [*found.same, *found.perhaps])


def matching_named(tx: ReadTransaction, criteria: Criteria, read: GetTranscript, session: int | None) -> ChannelMatches:
    """Return the channels that a tool has named and that may be a session; `session`: the session's channel, if any."""
    return _matches(tx, criteria, read, channel.c.session_id.is_(None), session)


def without_named_nearby(tx: ReadTransaction, source: str, criteria: Mapping[int, Criteria]) -> list[int]:
    """Return the keys of new sessions without a named channel within MAX_GAP: these cannot need a merge."""
    if not criteria:
        return []
    first, last = min(one.first for one in criteria.values()), max(one.last for one in criteria.values())
    named = _candidates(tx, Criteria(source, None, first, last), channel.c.session_id.is_(None))
    if len(named) >= MAX_CANDIDATES:
        return []
    spans = [(parse_time(row.created_at) - MAX_GAP, parse_time(row.updated_at) + MAX_GAP) for row in named.values()]
    return [
        key for key, one in criteria.items() if not any(begin <= one.last and one.first <= end for begin, end in spans)
    ]


def judge_session(tx: ReadTransaction, session: int, named: int) -> Verdict:
    return _verdict(tx, session, compare(stored_transcript(tx, session), stored_transcript(tx, named)))


def _matches(
    tx: ReadTransaction, criteria: Criteria, read: GetTranscript, kind: ColumnElement[bool], session: int | None = None
) -> ChannelMatches:
    candidates = _candidates(tx, criteria, kind)
    if not candidates:
        return ChannelMatches()
    transcript = read()
    found: dict[Verdict, list[tuple[ChannelRow, Comparison]]] = {verdict: [] for verdict in Verdict}
    for row in _best(tx, candidates, transcript):
        evidence = compare(transcript, stored_transcript(tx, row.number))
        claimed = session if row.session_id is None else row.number
        found[_verdict(tx, claimed, evidence)].append((row, evidence))
    same = found[Verdict.SAME]
    # if several channels match, their questions alone are not enough: two chats may have the same ones
    sure = same if len(same) <= 1 else [pair for pair in same if pair[1].is_answered]
    unsure = [pair for pair in same if pair not in sure] + found[Verdict.PERHAPS]
    return ChannelMatches([row for row, _ in sure], [row for row, _ in unsure])


def _verdict(tx: ReadTransaction, claimed: int | None, evidence: Comparison) -> Verdict:
    """Return the verdict; PERHAPS if only questions agree, and the session was logged under another name already."""
    if claimed is None or evidence.verdict is not Verdict.SAME or evidence.is_answered:
        return evidence.verdict
    sent = conversation.c.channel_number == claimed, conversation.c.actor == Actor.TOOL
    is_logged = aliases_of(tx, claimed) or tx.execute(select(conversation.c.number).where(*sent).limit(1)).first()
    return Verdict.PERHAPS if is_logged else evidence.verdict


def _candidates(tx: ReadTransaction, criteria: Criteria, kind: ColumnElement[bool]) -> dict[int, ChannelRow]:
    query = select(channel).where(
        kind,
        channel.c.source.in_(related_sources(criteria.source)),
        channel.c.deleted.is_(False),
        channel.c.updated_at >= criteria.first - MAX_GAP,
        channel.c.created_at <= criteria.last + MAX_GAP,
    )
    latest = tx.execute(query.order_by(channel.c.updated_at.desc()).limit(MAX_CANDIDATES))
    return {row.number: row for row in latest if _is_same_project(criteria.project, row.project_path)}


def _is_same_project(one: str | None, other: str | None) -> bool:
    if not one or not other:
        return True
    first, second = Project.from_path(one), Project.from_path(other)
    is_bare = first.path == first.name or second.path == second.name
    return first.path == second.path or (is_bare and first.name == second.name)


def _best(tx: ReadTransaction, candidates: Mapping[int, ChannelRow], transcript: Transcript) -> list[ChannelRow]:
    """Return the five candidates that share most of the last 500 questions."""
    questions = [each.digest for each in transcript.utterances if each.role == Role.USER]
    digests = list(dict.fromkeys(reversed(questions)))[:500]
    if not digests:
        return []
    query = select(conversation.c.channel_number, conversation.c.digest).where(
        conversation.c.channel_number.in_(candidates), conversation.c.digest.in_(digests)
    )
    shared = Counter(number for number, _ in tx.execute(query.distinct()))
    ranked = sorted(shared, key=lambda number: (shared[number], candidates[number].updated_at), reverse=True)
    return [candidates[number] for number in ranked[:5]]
