"""The Cursor agent on the command line and in other editors: its databases, and the transcripts it shares with the IDE.

`files` and `store` know where things stand, the other modules what they mean.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from registry.domain import Role, Session, now, parse_time
from registry.errors import StorageError
from sources.base import FoundSession, Places, Skipped
from sources.cursor.conversations import counted
from sources.cursor.times import Span, moment
from sources.cursor_agent.client import CURSOR_AGENT
from sources.cursor_agent.files import DATABASE, FOLDERS, Stored, Workspaces, Written, description_in, walk
from sources.cursor_agent.messages import Talk
from sources.cursor_agent.sessions import stored_session, talk_in, title_of
from sources.cursor_agent.store import AgentStore
from sources.cursor_agent.times import Told, timed
from sources.cursor_agent.tools import paths_in
from sources.cursor_agent.transcript import Transcript, records_of_text
from sources.kit.drafts import undated_messages_of
from sources.kit.files import why_not
from sources.kit.jsonl import Damage, Record, read_lines, records_of, string
from sources.kit.sqlite_store import WAIT_S, BusyDatabase, ClientDatabase

_GENERATION = "1"
"""Part of every fingerprint: another number makes every conversation be read again."""

_SETTINGS = ("CTXR_CURSOR_AGENT_DIR", "CURSOR_CONFIG_DIR")


@dataclass(slots=True)
class CursorAgent:
    """Reads one configuration folder of Cursor: `chats`, `acp-sessions`, and the transcripts of its projects.

    Opens nothing else there: access keys and settings lie beside them. Where a conversation has a database, its
    transcript is not read.
    """

    name: str = CURSOR_AGENT.source
    wait_s: float = WAIT_S
    clock: Callable[[], datetime] = field(default=now)

    def find(self, places: Places) -> Iterator[Path]:
        """The configuration folders that hold conversations."""
        setting = next(filter(places.environment.get, _SETTINGS), _SETTINGS[0])
        roots = [places.folder(setting, ".cursor")]
        if not places.environment.get(setting):
            roots.append(places.folder("XDG_CONFIG_HOME", ".config") / "cursor")
        yield from (root for root in dict.fromkeys(roots) if any(os.path.isdir(root / name) for name in FOLDERS))

    def stamp(self, store: Path) -> str:
        """The same as long as nothing was written in any conversation: one look at each file's status."""
        try:
            kept = walk(store)
        except StorageError:
            return ""  # `sessions` says why
        states = sorted((each.key, each.fingerprint) for each in kept.stored)
        states += sorted((each.file.path, each.file.fingerprint) for each in kept.written.values())
        return _digest(_GENERATION, states, kept.skipped)

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed conversations, newest first, databases before transcripts. One in which nothing was said is
        FoundSession with no messages, so that it is not read again.

        Waits for locked databases `wait_s` seconds in all. Raises StorageError, also at the end if any was still in
        use: then all of it is to be looked at again.
        """
        kept = walk(store)
        yield from kept.skipped
        reading = _Pass(seen, Workspaces(kept.stored), kept.written, self.clock(), self.wait_s)
        for stored in sorted(kept.stored, key=lambda each: each.modified, reverse=True):
            yield from reading.stored(stored)
        have_databases = {stored.session_id for stored in kept.stored if stored.modified} - reading.unread
        alone = [each for each in kept.written.values() if each.session_id not in have_databases]
        for written in sorted(alone, key=lambda each: each.file.modified, reverse=True):
            yield from reading.written(written)
        yield from (Skipped(counted(count, "conversation"), why) for why, count in reading.passed_over.items())
        if reading.busy:
            raise StorageError(f"{counted(len(reading.busy), 'conversation')} in use.", reading.busy[0].details)


@dataclass(slots=True)
class _Pass:
    """One look through a store."""

    seen: Mapping[str, str]
    workspaces: Workspaces
    transcripts: Mapping[str, Written]
    now: datetime
    patience_s: float
    unread: set[str] = field(default_factory=set)
    busy: list[BusyDatabase] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)

    def stored(self, kept: Stored) -> Iterator[FoundSession | Skipped]:
        """A conversation in a database, if it has changed."""
        known = _Known.of(self.seen.get(kept.key, ""))
        files = _digest(_GENERATION, kept.fingerprint)
        if not kept.modified:
            self.passed_over["not begun yet"] += 1
        if known.files == files or not kept.modified:
            return
        began = time.monotonic()
        try:
            with ClientDatabase(Path(kept.folder, DATABASE), self.patience_s) as database:
                yield from self._conversation(kept, AgentStore(database), known, files)
        except BusyDatabase as exc:
            self.busy.append(exc)
            self.patience_s = max(0.0, self.patience_s - (time.monotonic() - began))
        except StorageError as exc:
            self.unread.add(kept.session_id)
            yield Skipped(kept.key, exc.details)

    def _conversation(
        self, kept: Stored, store: AgentStore, known: _Known, files: str
    ) -> Iterator[FoundSession | Skipped]:
        """Files also change when nothing was said: the state of the conversation tells."""
        about = {**store.description(), **description_in(kept.folder)}
        named = string(about.get("latestRootBlobId"))
        latest = store.latest_root(named)
        if latest is None:
            self.unread.add(kept.session_id)
            yield Skipped(kept.key, "the state of the conversation is not stored")
            return
        content = _digest(latest[0], [string(about.get(key)) for key in ("title", "name", "cwd")])
        if content == known.content:
            return
        talk, skipped = talk_in(store, *latest, about)
        if named not in ("", latest[0]):
            skipped += (Skipped(kept.key, "its latest state is not stored; an earlier one was read"),)
        messages = timed(undated_messages_of(talk.drafts), _span(kept, about, self.now), known.told)
        session = stored_session(kept, about, latest[1], talk, messages)
        yield self._found(kept.key, f"{files}.{content}", self._completed(session, kept, talk), skipped)

    def _completed(self, session: Session, kept: Stored, talk: Talk) -> Session:
        """With what other files say about it."""
        hashed = os.path.basename(os.path.dirname(kept.folder))
        written = self.transcripts.get(kept.session_id)
        project = session.project or self.workspaces.by_hash(hashed, paths_in(talk.drafts)) or None
        return replace(session, project=project, **_origin(session, written))

    def written(self, kept: Written) -> Iterator[FoundSession | Skipped]:
        """A transcript, if it has changed."""
        key, files = f"transcripts/{kept.session_id}", _digest(_GENERATION, kept.file.fingerprint)
        known = _Known.of(self.seen.get(key, ""))
        if known.files == files:
            return
        damage = Damage()
        try:
            transcript = _read(kept.file.path, damage)
        except OSError as exc:
            yield Skipped(kept.file.path, why_not(exc))
            return
        folder = transcript.folder or self.workspaces.by_slug(kept.slug, paths_in(transcript.drafts))
        span = Span(None, datetime.fromtimestamp(kept.file.modified / 1e9, UTC), self.now)
        messages = timed(undated_messages_of(transcript.drafts), span, known.told)
        session = Session(kept.session_id, messages, title_of("", messages), folder or None, is_copy=True)
        session = replace(session, **_origin(session, kept))
        yield self._found(key, f"{files}.", session, damage.skipped() + transcript.skipped())

    def _found(self, key: str, fingerprint: str, session: Session, skipped: tuple[Skipped, ...]) -> FoundSession:
        if all(message.role is Role.SYSTEM for message in session.messages):
            self.passed_over["nothing was said"] += 1
            session = replace(session, messages=())
        return FoundSession(key, fingerprint + Told.of(session.messages).mark(), session, skipped)


class _Known(NamedTuple):
    """What the fingerprint of an earlier reading tells: of the files, of what they say, of the times given."""

    files: str
    content: str
    told: Told

    @classmethod
    def of(cls, fingerprint: str) -> _Known:
        files, _, rest = fingerprint.partition(".")
        return cls(files, rest.partition("#")[0], Told.from_mark(rest))


def _span(kept: Stored, about: Record, now: datetime) -> Span:
    created = filter(None, (moment(about.get(key)) for key in ("createdAtMs", "createdAt")))
    updated = moment(about.get("updatedAtMs")) or datetime.fromtimestamp(kept.modified, UTC)
    return Span(min(created, default=None), parse_time(updated), now)


def _origin(session: Session, written: Written | None) -> dict[str, Any]:
    """Whose sub-agent it is; the folder of its transcript tells."""
    if written is None or written.parent is None:
        return {}
    return {"parent": written.parent, "meta": {**session.meta, "relation": "sub-agent"}}


def _read(path: str, damage: Damage) -> Transcript:
    transcript = Transcript()
    with open(path, "rb") as file:
        lines = read_lines(file)
        is_text = path.endswith(".txt")
        for record in records_of_text(_text_of(lines)) if is_text else records_of(lines, damage):
            transcript.read(record)
    return transcript


def _text_of(lines: Iterable[bytes | None]) -> Iterator[str]:
    return (line.decode("utf-8", "replace") for line in lines if line is not None)


def _digest(*parts: object) -> str:
    return blake2b(repr(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()
