"""Base classes of readers: for clients that keep each session in a file, and for those with a database."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

from registry.domain import Session, storable
from sources.base import EMPTY, FoundSession, Paths, Skipped, Source
from sources.client import Client
from sources.kit import drafts
from sources.kit.files import File, file_at, files_below, is_there, read_document, store_entries, system_reason
from sources.kit.jsonl import Damage, read_lines, records_of
from sources.kit.loose_json import Record, read_json
from sources.kit.sqlite_store import ClientDatabase, DamagedDatabase, stamp


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A session's file in a store.

    `key`: identifies the session in the sync. `agent_of`: the parent session of a sub-agent's file.
    `folder`: the folder that names the project. `note_status`: the fingerprint of a second file with metadata.
    """

    file: File
    key: str
    session_id: str
    agent_of: str | None = None
    folder: str = ""
    note_status: str = ""

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def fingerprint(self) -> str:
        return self.file.fingerprint + self.note_status

    def found(self, session: Session, skipped: tuple[Skipped, ...]) -> FoundSession:
        """Return the session, with the file's time if no message has one."""
        session = drafts.dated(session, self.file.modified_at)
        return found_session(self.key, self.fingerprint, session, skipped, self.path)

    def found_with_agents(
        self, main: Session, agents: Iterable[Session], skipped: tuple[Skipped, ...]
    ) -> Iterator[FoundSession]:
        """Yield the sessions of sub-agents, and last the main one, whose key marks the file as read."""
        for agent in agents:
            session = drafts.dated(agent, self.file.modified_at)
            yield FoundSession(f"{self.key}#{agent.session_id}", self.fingerprint, session)
        yield self.found(main, skipped)


def with_documents(
    files: Iterable[SessionFile | Skipped], *, only_newer: bool = False
) -> Iterator[SessionFile | Skipped]:
    """Yield the files, and next to logs the documents that the client converted to them and left behind.

    The conversion may have been interrupted, and an older version may have continued the document since.
    `only_newer`: only documents that are newer than their log, if the log does not keep undone messages: an older
    document would bring them back.
    """
    for file in files:
        yield file
        if isinstance(file, SessionFile) and file.path == f"{file.key}.jsonl":
            document = file_at(f"{file.key}.json")
            if isinstance(document, File) and (not only_newer or document.modified > file.file.modified):
                yield replace(file, file=document, key=document.path)


ParseFile = Callable[[SessionFile], Iterable[FoundSession]]


class FileReader(Source):
    """Reads the files that match `patterns` below a client's folder, and opens nothing else there."""

    client: ClassVar[Client]
    patterns: ClassVar[tuple[str, ...]]
    backup_extras: ClassVar[tuple[str, ...]] = ()  # patterns of other files that a backup needs
    # by pattern: files named like sessions that cannot be read, and why; reported unless another file has the session
    unreadable: ClassVar[Mapping[str, str]] = {}
    # True for files that most users of the client do not have: only folders with such a file are stores
    is_rare: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        cls.name = cls.client.source

    def find(self, paths: Paths) -> Iterator[Path]:
        """Yield the client's folders that exist and contain sessions."""
        for root in dict.fromkeys(self.roots(paths)):
            patterns = (*self.patterns, *self.unreadable)
            matching = (file for pattern in patterns for file in files_below(str(root), pattern))
            if any(map(is_there, self.watched(root))) and (not self.is_rare or any(matching)):
                yield root

    def roots(self, paths: Paths) -> Iterable[Path]:
        return [self.client.history_in(paths)]

    def backup_patterns(self) -> Iterable[str]:
        return (*self.patterns, *self.backup_extras)

    def count(self, store: Path) -> int:
        return sum(isinstance(file, SessionFile) for file in self.files(store))

    def watched(self, store: Path) -> list[Path]:
        """Return only the folders of sessions, not their siblings with caches, logs and secrets."""
        literal = (pattern.partition("*")[0].rpartition("/")[0] for pattern in (*self.patterns, *self.unreadable))
        return [store / folder for folder in dict.fromkeys(literal)]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the changed sessions, newest first. Raises StorageError."""
        changed = list[SessionFile]()
        for file in self.files(store):
            if isinstance(file, Skipped):
                yield file
            elif self.has_changed(file, seen):
                changed.append(file)
        parse, newest = self.parser(store), dict[str, int]()
        for file in changed:
            newest[file.session_id] = max(newest.get(file.session_id, 0), file.file.modified)
        # of a session with several files, such as copies by a migration, the newest is read last: it has the last word
        for file in sorted(changed, key=lambda file: (-newest[file.session_id], file.session_id, file.file.modified)):
            try:
                yield from parse(file)
            except OSError as exc:
                yield Skipped(file.path, system_reason(exc))

    def has_changed(self, file: SessionFile, seen: Mapping[str, str]) -> bool:
        """Return True if a session has changed since it was read."""
        return seen.get(file.key) != file.fingerprint

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the best session file for each key, without opening any. Raises StorageError."""
        for folder in self.watched(store):
            store_entries(folder)
        best, refused = dict[str, SessionFile](), set[Skipped]()
        for found in (file for pattern in self.patterns for file in files_below(str(store), pattern)):
            file = self.session_file(found) if isinstance(found, File) else None
            if file and not file.path.isprintable():  # names that are not UTF-8 cannot be stored
                file = replace(file, key=storable(file.key), session_id=storable(file.session_id))
            if file and (file.key not in best or self.is_better(file, best[file.key])):
                best[file.key] = file
            elif isinstance(found, Skipped) and found not in refused:
                refused.add(found)
                yield found
        yield from best.values()
        known = {file.session_id for file in best.values()}
        for pattern, why in self.unreadable.items():
            names = (Path(file.path).stem for file in files_below(str(store), pattern) if isinstance(file, File))
            if count := sum(name not in known for name in names):
                yield Skipped(f"{store / pattern} ({count})", why)

    def is_better(self, file: SessionFile, than: SessionFile) -> bool:
        """Return True if the session must be read from this file instead of an earlier one with the same key."""
        return False

    def session_file(self, file: File) -> SessionFile | None:
        """Return a file with its key and the data in its path; None if it contains no session."""
        return SessionFile(file, file.path, Path(file.path).stem)

    def parser(self, store: Path) -> ParseFile:
        """Return the function that parses one file; it may cache data that all files share."""
        return self.parse

    def parse(self, file: SessionFile) -> Iterable[FoundSession]:
        """Parse one file; not needed if a subclass overrides `sessions` or `parser`."""
        raise NotImplementedError


class DatabaseReader(Source):
    """Reads the sessions in a client's SQLite database, one at a time in memory.

    `needed`: the required columns by table; without them the version of the database is unknown to this reader.
    """

    needed: ClassVar[Mapping[str, frozenset[str]]]

    def stamp(self, store: Path) -> str:
        return stamp(store)

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the changed sessions, newest first. Raises StorageError."""
        with ClientDatabase(store) as database:
            if not all(columns <= database.columns(table) for table, columns in self.needed.items()):
                yield Skipped(str(store), "not a database version that this reader knows")
                return
            for key, fingerprint, row in self.rows(database, seen):
                if seen.get(key) != fingerprint:
                    name = f"session {key}"
                    try:
                        parser = self.parse(database, key, row)
                        skipped = parser.skipped(f" of {name}")
                        yield found_session(key, fingerprint, parser.session(), skipped, name)
                    except DamagedDatabase as exc:
                        yield Skipped(name, exc.details)

    @abstractmethod
    def rows(self, database: ClientDatabase, seen: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield key, fingerprint and description of each session, newest first."""

    @abstractmethod
    def parse(self, database: ClientDatabase, key: str, row: dict[str, Any]) -> drafts.Conversation:
        """Read one session. Raises DamagedDatabase."""


def found_session(
    key: str, fingerprint: str, session: Session, skipped: tuple[Skipped, ...], where: str
) -> FoundSession:
    """Return a session. An empty one is returned too, so that it is not read again."""
    if not session.messages:
        skipped += (Skipped(where, EMPTY),)
    return FoundSession(key, fingerprint, session, skipped)


class Parser(Protocol):
    """Builds the session of a file and the sessions of its sub-agents from its records."""

    def read(self, record: Record) -> None: ...
    def sessions(self) -> Iterable[Session]: ...
    def skipped(self) -> tuple[Skipped, ...]: ...


def parse_records(
    file: SessionFile, parser: Parser, parts_of: Callable[[Record], Iterable[Record]] = lambda record: [record]
) -> Iterator[FoundSession]:
    """Parse the records of a file, split by `parts_of`."""
    damage = Damage()
    for record in file_records(file.path, damage):
        for part in parts_of(record):
            parser.read(part)
    main, *agents = parser.sessions()
    yield from file.found_with_agents(main, agents, damage.skipped() + parser.skipped())


def file_records(path: str, damage: Damage) -> Iterator[Record]:
    """Yield the object of a `.json` file, or the objects of a JSON lines file one by one. Raises OSError."""
    if not path.endswith(".json"):
        with open(path, "rb") as file:
            yield from records_of(read_lines(file), damage)
        return
    value = read_json(read_document(path))
    if not isinstance(value, dict):
        damage.note(0, "not a JSON object")
    elif value:
        yield value
