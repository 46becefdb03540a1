"""Read the conversations of Cursor's agent on the command line and in other editors: databases and transcripts."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import md5
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple, Self

from registry.domain import Message, Role, Session, now
from registry.errors import StorageError
from sources.base import FoundSession, Paths, Skipped
from sources.clients import CURSOR_AGENT
from sources.cursor.conversations import counted
from sources.cursor.times import TimeFrame, dated, moment
from sources.cursor_agent.messages import AgentDialogue, known_model, paths_in, records_of_text
from sources.cursor_agent.store import AgentStore, Root
from sources.kit import drafts
from sources.kit.files import File, digest, fingerprint_at, read_small_text, system_reason
from sources.kit.jsonl import Damage, read_lines
from sources.kit.loose_json import Record, mapping, read_json, string
from sources.kit.reader import FileReader, SessionFile, file_records
from sources.kit.sqlite_store import BusyDatabase, ClientDatabase, last_change, stamp

DATABASE, DESCRIPTION = "store.db", "meta.json"
_OLD = ("agent-sessions", "conversations", "sessions")
# folders with one conversation each, in a database; a folder with a description only has no messages yet
_CHATS = ("chats/*", "chats/*/*", "acp-sessions/*", *(f"{old}/{chat}" for old in _OLD for chat in ("*", "*/*")))
CHATS = tuple(f"{folder}/{name}" for folder in _CHATS for name in (DATABASE, DESCRIPTION))
TRANSCRIPTS = tuple(
    f"{folder}/{name}{end}"
    for folder in ("projects/*/agent-transcripts", *_OLD)
    for name in ("*", "*/*", "*/subagents/*")
    for end in (".jsonl", ".txt")
)


def description_in(folder: str) -> Record:
    """Return the known fields of a conversation's `meta.json`; empty if it is missing or damaged."""
    given = mapping(read_json(read_small_text(os.path.join(folder, DESCRIPTION))))
    return {key: given[key] for key in ("createdAtMs", "updatedAtMs", "cwd", "title") if key in given}


@dataclass(slots=True)
class ProjectFolders:
    """Finds a project's folder by the hash or the slug that Cursor derives from its path."""

    chats: list[SessionFile]
    _known: list[str] | None = None

    def named(self, name: str, paths: list[str]) -> str:
        """Return the folder with that hash or slug, among the parents of `paths` and other conversations' folders.

        The slug alone is not enough, because several paths have the same.
        """
        for folder in self._candidates(paths) if name else ():
            with_small_drive = folder[:1].lower() + folder[1:] if re.match(r"[A-Z]:", folder) else folder
            slug = re.sub(r"[^A-Za-z0-9]", "-", with_small_drive).removeprefix("-")
            if name in (slug, md5(folder.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()):
                return folder
        return ""

    def _candidates(self, paths: list[str]) -> Iterator[str]:
        for path in paths:
            flavour = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
            if flavour.is_absolute():
                yield from map(str, (flavour, *flavour.parents))
        if self._known is None:
            named = (string(description_in(each.folder).get("cwd")) for each in self.chats)
            self._known = list(dict.fromkeys(filter(None, named)))
        yield from self._known


MAX_STEP = timedelta(seconds=20)  # longest time between estimates: a working agent writes at least this often
_FINGERPRINT = re.compile(r"(\w*)#(\d{1,9})@(\d{1,15})")


class Fingerprint(NamedTuple):
    """The contents of a fingerprint: a digest of files, number of messages, time of the latest one."""

    files: str = ""
    message_count: int = 0
    until: datetime | None = None

    @classmethod
    def parse(cls, fingerprint: str) -> Self:
        noted = _FINGERPRINT.fullmatch(fingerprint)
        return cls(noted[1], int(noted[2]), moment(int(noted[3]))) if noted else cls()

    def fingerprint(self) -> str:
        until_ms = round(self.until.timestamp() * 1000) if self.until else 0
        return f"{self.files}#{self.message_count}@{until_ms}"


def fill_times(messages: Sequence[Message], span: TimeFrame, earlier: Fingerprint) -> tuple[Message, ...]:
    """Estimate missing times, in ascending order.

    Times spread evenly over the conversation would be on days without activity. Estimates are therefore close to its
    beginning, except for the last turn if no message has a time. The registry never changes a stored time, so messages
    that are new since the `earlier` reading get later times than all stored ones.
    """
    if span.end and len(messages) > 1 and not any(message.timestamp for message in messages):
        messages = _with_last_turn_at(messages, span.end, span.start or span.end)
    done: list[Message] = []
    latest: datetime | None = None
    for index, message in enumerate(dated(messages, span, MAX_STEP)):
        if index == earlier.message_count:
            latest = max(filter(None, (latest, earlier.until)), default=None)
        if latest and message.timestamp and message.timestamp < latest:
            message = replace(message, timestamp=latest)
        latest = message.timestamp or latest
        done.append(message)
    return tuple(done)


def _with_last_turn_at(messages: Sequence[Message], end: datetime, start: datetime) -> list[Message]:
    """Estimate the times of the last turn backwards from the end; if there is one turn, of the last message only."""
    questions = [index for index, message in enumerate(messages) if message.role is Role.USER]
    begin = questions[-1] if len(questions) > 1 else len(messages) - 1
    step = min(MAX_STEP, max(end - start, timedelta()) / (len(messages) - 1))
    times = (end - step * (len(messages) - 1 - index) for index in range(begin, len(messages)))
    return [*messages[:begin], *map(drafts.with_inferred_time, messages[begin:], times)]


Skips = tuple[Skipped, ...]


class CursorAgent(FileReader):
    """Reads one configuration folder of Cursor: `chats`, `acp-sessions`, and the transcripts of its projects.

    It opens no other files, which have access keys and settings. A transcript is read only if the conversation has no
    readable database.
    """

    client = CURSOR_AGENT
    patterns = (*CHATS, *TRANSCRIPTS)
    backup_extras = tuple(f"{pattern.partition('/')[0]}/**/*" for pattern in patterns)

    def __init__(self, clock: Callable[[], datetime] = now) -> None:
        self._clock = clock

    def roots(self, paths: Paths) -> Iterable[Path]:
        named = (*paths.named("CTXR_CURSOR_AGENT_DIR"), *paths.named("CURSOR_CONFIG_DIR"))
        return named[:1] or (paths.home / ".cursor", paths.folder("XDG_CONFIG_HOME", ".config") / "cursor")

    def session_file(self, file: File) -> SessionFile:
        """Return a conversation in a database, or a transcript, whose `folder` is the project's slug."""
        path = Path(file.path)
        if path.name in (DATABASE, DESCRIPTION):
            status = f"+{stamp(path.with_name(DATABASE))}+{fingerprint_at(str(path.with_name(DESCRIPTION)))}"
            return SessionFile(file, str(path.parent), path.parent.name, folder=str(path.parent), note_status=status)
        folders = path.parent.parts
        slug = folders[folders.index("agent-transcripts") - 1] if "agent-transcripts" in folders else ""
        parent = folders[-2] if folders[-1] == "subagents" else None
        return SessionFile(file, f"transcripts/{path.stem}", path.stem, parent, slug)

    def is_better(self, file: SessionFile, than: SessionFile) -> bool:
        """Return True for the better transcript: JSON lines before text, then the newest."""
        if file.path.endswith((DATABASE, DESCRIPTION)):
            return False
        return (file.path.endswith(".jsonl"), file.file.modified) > (than.path.endswith(".jsonl"), than.file.modified)

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the changed conversations, newest first, databases before transcripts.

        An empty conversation is yielded without messages, so that it is not read again. Only the first locked database
        is waited for. Raises StorageError, also at the end if a database was locked, so that the store is read again.
        """
        chats, transcripts = list[SessionFile](), dict[str, SessionFile]()
        for file in self.files(store):
            if isinstance(file, Skipped):
                yield file
            elif file.path.endswith((DATABASE, DESCRIPTION)):
                chats.append(file)
            else:
                transcripts[file.session_id] = file
        reading = _Pass(seen, ProjectFolders(chats), transcripts, self._clock())
        for chat in sorted(chats, key=_last_change, reverse=True):
            yield from reading.read_database(chat)
        have_databases = {chat.session_id for chat in chats if chat.path.endswith(DATABASE)} - reading.unreadable
        without_database = [each for each in transcripts.values() if each.session_id not in have_databases]
        for transcript in sorted(without_database, key=lambda each: each.file.modified, reverse=True):
            yield from reading.read_transcript(transcript)
        yield from (Skipped(counted(count, "conversation"), why) for why, count in reading.skip_counts.items())
        if reading.busy:
            raise StorageError(f"{counted(len(reading.busy), 'conversation')} in use.", reading.busy[0].details)


@dataclass(slots=True)
class _Pass:
    """The state of one pass over a store."""

    seen: Mapping[str, str]
    workspaces: ProjectFolders
    transcripts: Mapping[str, SessionFile]
    now: datetime
    unreadable: set[str] = field(default_factory=set)
    busy: list[BusyDatabase] = field(default_factory=list)
    skip_counts: Counter[str] = field(default_factory=Counter)

    def read_database(self, chat: SessionFile) -> Iterator[FoundSession | Skipped]:
        earlier = Fingerprint.parse(self.seen.get(chat.key, ""))
        files = digest(chat.fingerprint)
        if chat.path.endswith(DESCRIPTION):
            self.skip_counts["not begun yet"] += 1
            return
        if earlier.files == files:
            return
        try:
            with ClientDatabase(Path(chat.folder, DATABASE), waits=not self.busy) as database:
                yield from self._conversation(chat, AgentStore(database), earlier, files)
        except BusyDatabase as exc:
            self.busy.append(exc)
        except StorageError as exc:
            self.unreadable.add(chat.session_id)
            yield Skipped(chat.key, exc.details)

    def _conversation(
        self, chat: SessionFile, store: AgentStore, earlier: Fingerprint, files: str
    ) -> Iterator[FoundSession | Skipped]:
        about = {**store.description(), **description_in(chat.folder)}
        named = string(about.get("latestRootBlobId"))
        latest = store.latest_root(named)
        if latest is None:
            self.unreadable.add(chat.session_id)
            yield Skipped(chat.key, "the state of the conversation is not stored")
            return
        root_id, root = latest
        conversation = _conversation_in(store, root_id, root, about)
        skipped = conversation.skipped()
        if named not in ("", root_id):
            skipped += (Skipped(chat.key, "its latest state is not stored; an earlier one was read"),)
        created = filter(None, (moment(about.get(key)) for key in ("createdAtMs", "createdAt")))
        updated = moment(about.get("updatedAtMs")) or drafts.moment(_last_change(chat))
        span = TimeFrame(min(created, default=None), updated, self.now)
        messages = fill_times(drafts.undated_messages_of(conversation.drafts), span, earlier)
        hashed = os.path.basename(os.path.dirname(chat.folder))
        project = conversation.folder or self.workspaces.named(hashed, paths_in(conversation.drafts))
        titles = (about.get(key) for key in ("title", "name") if about.get(key) != "New Agent")
        session = Session(
            session_id=string(about.get("agentId")) or chat.session_id,
            messages=messages,
            title=drafts.title_of(conversation.drafts, *titles),
            project=project or None,
            meta=drafts.without_empty({"mode": root.mode or string(about.get("mode")), "model": conversation.model}),
        )
        transcript = self.transcripts.get(chat.session_id)
        yield self._finish(chat.key, Fingerprint(files), session, transcript, skipped)

    def read_transcript(self, transcript: SessionFile) -> Iterator[FoundSession | Skipped]:
        key, files = transcript.key, digest(transcript.fingerprint)
        earlier = Fingerprint.parse(self.seen.get(key, ""))
        if earlier.files == files:
            return
        damage, conversation = Damage(), AgentDialogue()
        try:
            for name, record in _records_in(transcript.path, damage):
                conversation.read_line(name, record)
        except OSError as exc:
            yield Skipped(transcript.path, system_reason(exc))
            return
        folder = conversation.folder or self.workspaces.named(transcript.folder, paths_in(conversation.drafts))
        span = TimeFrame(None, transcript.file.modified_at, self.now)
        messages = fill_times(drafts.undated_messages_of(conversation.drafts), span, earlier)
        session = Session(
            transcript.session_id, messages, drafts.title_of(conversation.drafts), folder or None, is_copy=True
        )
        yield self._finish(key, Fingerprint(files), session, transcript, damage.skipped() + conversation.skipped())

    def _finish(
        self, key: str, noted: Fingerprint, session: Session, transcript: SessionFile | None, skipped: Skips
    ) -> FoundSession:
        if transcript and transcript.agent_of:  # the folder of a transcript names the parent of a sub-agent
            session = replace(session, parent=transcript.agent_of, meta={**session.meta, "relation": "sub-agent"})
        if all(message.role is Role.SYSTEM for message in session.messages):
            self.skip_counts["no messages in it"] += 1
            session = replace(session, messages=())
        until = max((message.timestamp for message in session.messages if message.timestamp), default=None)
        noted = noted._replace(message_count=len(session.messages), until=until)
        return FoundSession(key, noted.fingerprint(), session, skipped)


def _conversation_in(store: AgentStore, root_id: str, root: Root, about: Record) -> AgentDialogue:
    """Read the messages of a conversation. Raises StorageError."""
    conversation = AgentDialogue("", string(about.get("cwd")) or root.folder, known_model(about.get("lastUsedModel")))
    for element in store.elements(root_id, root):
        if element.message is None:
            conversation.skips[Skipped("message", element.why)] += 1
        else:
            conversation.read(element.name, element.message)
    if all(draft.role is Role.SYSTEM for draft in conversation.drafts):  # the prompt is missing
        for name, role, text in store.turns(root):
            if role is Role.TOOL:
                conversation.count_unknown("tool call", "outside of the prompt")
            else:
                conversation.add(name, role, text)
    question = next((draft for draft in reversed(conversation.drafts) if draft.role is Role.USER), None)
    if question:
        question.at = question.at or root.turn_began
    if not root.is_whole:
        conversation.skips[Skipped("list of messages", "incomplete: it is damaged")] += 1
    return conversation


def _last_change(chat: SessionFile) -> float:
    return last_change(Path(chat.folder, DATABASE))


def _records_in(path: str, damage: Damage) -> Iterator[tuple[str, Record]]:
    """Yield each record of a transcript with a name that it keeps when the file grows.

    A line of JSON is named by its content, and its number among equal ones: the file may also lose its first lines. The
    last record of a text grows, so it is named by its position.
    """
    if path.endswith(".txt"):
        with open(path, "rb") as file:
            lines = (line.decode("utf-8", "replace") for line in read_lines(file) if line is not None)
            yield from ((str(number), record) for number, record in enumerate(records_of_text(lines), 1))
        return
    equal = Counter[str]()
    for record in file_records(path, damage):
        content = digest(record)
        equal[content] += 1
        yield f"{content}.{equal[content]}", record
