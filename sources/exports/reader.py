"""Exports of whole accounts, as Claude.ai and ChatGPT hand them out: `ctxr import` reads them, no sync finds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Protocol

from registry.domain import Session
from registry.errors import InvalidRequest, StorageError
from sources.base import FoundSession, Places, Skipped
from sources.exports import chatgpt as chatgpt_export
from sources.exports import claude as claude_export
from sources.exports.client import CHATGPT, CLAUDE
from sources.exports.files import UNREADABLE, ExportFile, is_zip, parts_of, reason
from sources.exports.json_stream import LONGEST, NoEnd, Utf8Source, records_in
from sources.exports.reading import Unknown, Version, is_known
from sources.kit.files import why_not
from sources.kit.jsonl import Record

_GENERATION = "1"
"""Part of every fingerprint: another number makes every conversation be read again."""
_LOOKED_AT = 20
"""So many objects at the beginning of a file tell what it holds."""
_BEGINNING = 2**16
_MARKS = (b'"chat_messages"', b'"mapping"')
"""Keys that every conversation of Claude.ai or ChatGPT has, and hardly anything else."""
_NAMED = 3
_EMPTY = "nothing was said in it"
_NONE = "no conversations in it"
_STRANGE = "not a conversation of this provider"
_EXPECTED = (
    "Expected: the zip from Claude.ai or ChatGPT (Settings, Data controls or Privacy, Export data), "
    "the folder it was unpacked to, or the conversations.json in it."
)

OnRead = Callable[[int], None]


class Provider(Protocol):
    """What is to be known of a provider's format; a module of functions."""

    PLACE: str

    def is_conversation(self, record: Record) -> bool: ...
    def identity(self, record: Record) -> str: ...
    def version(self, record: Record) -> Version: ...
    def project_name(self, record: Record) -> tuple[str, str] | None: ...
    def read(self, record: Record, projects: Mapping[str, str], unknown: Unknown) -> Session: ...


PROVIDERS: dict[str, Provider] = {CLAUDE.source: claude_export, CHATGPT.source: chatgpt_export}


@dataclass(slots=True)
class AccountExport:
    """What one provider's account holds in an export. A `Source` whose one store is the account, not the file:
    what an earlier export has told is known, whatever that file was called.

    `told` hears of every piece that was read, in bytes.
    """

    name: str
    parts: list[ExportFile]
    others: Sequence[ExportFile | Skipped] = ()
    told: OnRead = lambda _: None
    _unknown: Unknown = field(default_factory=Unknown)
    _passed_over: Counter[str] = field(default_factory=Counter)
    _is_damaged: bool = False
    _is_stopped: bool = False

    def stop(self) -> None:
        """End a reading that goes on in another thread, at its next piece."""
        self._is_stopped = True

    def _count(self, count: int) -> None:
        if self._is_stopped:
            raise NoEnd
        self.told(count)

    @property
    def size(self) -> int:
        """Bytes to be read, as `told` counts them."""
        return sum(part.size for part in self.parts)

    def find(self, _places: Places) -> Iterator[Path]:
        """The account that this export is of."""
        yield Path(PROVIDERS[self.name].PLACE)

    def stamp(self, store: Path) -> str:
        """The state of the files."""
        files = repr([(part.name, part.fingerprint, part.size) for part in self.parts])
        return f"{_GENERATION} {blake2b(files.encode('utf-8', 'replace'), digest_size=16).hexdigest()}"

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The conversations that no export had told of so far. StorageError at the end, if not all could be read."""
        damaged = [other for other in self.others if isinstance(other, Skipped)]
        self._is_damaged = bool(damaged)
        yield from damaged
        known, projects = dict(seen), self._projects()
        for part in self.parts:
            yield from self._conversations(part, known, projects)
        yield from (Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self._unknown.items())
        yield from (Skipped(f"{count} x a conversation", why) for why, count in self._passed_over.items())
        if self._is_damaged:
            raise StorageError("Not all of the export could be read.", "What could be read is kept.")

    def _conversations(
        self, part: ExportFile, known: dict[str, str], projects: Mapping[str, str]
    ) -> Iterator[FoundSession | Skipped]:
        provider = PROVIDERS[self.name]
        for number, record in enumerate(_records(part, self._count), 1):
            if isinstance(record, str):
                self._is_damaged = True
                yield Skipped(f"{part.name}, conversation {number}", record)
                continue
            key = provider.identity(record)
            if not provider.is_conversation(record) or not key:
                self._passed_over[_STRANGE] += 1
                continue
            fingerprint = provider.version(record).fingerprint(_GENERATION)
            if is_known(known.get(key), fingerprint):
                continue
            session = provider.read(record, projects, self._unknown)
            if not session.messages:
                self._passed_over[_EMPTY] += 1
                continue
            known[key] = fingerprint
            yield FoundSession(key, fingerprint, session)

    def _projects(self) -> dict[str, str]:
        """The names of projects by their ids, where the export tells them."""
        return dict(
            known
            for part in self.others
            if isinstance(part, ExportFile)
            for record in _records(part, lambda _: None)
            if isinstance(record, dict) and (known := PROVIDERS[self.name].project_name(record))
        )


def exports_in(path: Path, stack: ExitStack) -> list[AccountExport]:
    """What a file or folder is an export of, recognised by what is in it; open as long as the stack.

    InvalidRequest if it is none, which says what it is; StorageError if it cannot be read, or is so damaged that no
    conversation can.
    """
    try:
        if not (path.is_file() or path.is_dir()):
            raise InvalidRequest(f"There is no file or folder {path}.", _EXPECTED)
        found = list(parts_of(path, stack))
    except OSError as exc:
        raise StorageError(f"Could not read {path}.", why_not(exc)) from exc
    held: dict[str, list[ExportFile]] = {}
    others: list[ExportFile | Skipped] = []
    damage: list[Skipped] = []
    is_meant = False
    for part in found:
        if isinstance(part, Skipped):
            damage.append(part)
            others.append(part)
            continue
        provider, why = _provider_of(part)
        if provider:
            held.setdefault(provider, []).append(part)
            continue
        others.append(Skipped(part.name, why) if why else part)
        is_meant = is_meant or bool(why)
        if why not in ("", _NONE):
            damage.append(Skipped(part.name, why))
    if not held and damage and is_meant:
        raise StorageError(
            f"An export of an account, but damaged or encrypted: {path}",
            f"No conversation in it could be read ({_named(damage)}). Download it anew.",
        )
    if not held:
        kind = "a folder" if path.is_dir() else "a zip" if is_zip(path) else "a file"
        contents = f"with no conversations in it ({_named(others)})" if others else "without any JSON in it"
        raise InvalidRequest(f"Not an export of an account: {path}", f"Recognised: {kind} {contents}. {_EXPECTED}")
    return [AccountExport(name, parts, others) for name, parts in held.items()]


def _provider_of(part: ExportFile) -> tuple[str, str]:
    """Return the provider whose conversations a file holds; or why there are none although there should be."""
    why = _NONE
    for record in islice(_records(part, _at_most(4 * LONGEST)), _LOOKED_AT):
        if isinstance(record, str):
            why = record
            continue
        for name, provider in PROVIDERS.items():
            if provider.is_conversation(record):
                return name, ""
    return "", why if _is_meant(part) else ""


def _is_meant(part: ExportFile) -> bool:
    """Whether a file should hold conversations: by its name, or, for it may have any, by how it begins."""
    if part.should_hold_conversations:
        return True
    try:
        with part.open() as file:
            beginning = file.read(_BEGINNING)
    except UNREADABLE:
        return False
    return any(mark in beginning for mark in _MARKS)


def _at_most(size: int) -> OnRead:
    """Ends the reading of a file in which nothing is found for so many bytes."""
    left = [size]

    def told(count: int) -> None:
        left[0] -= count
        if left[0] < 0:
            raise NoEnd

    return told


def _records(part: ExportFile, told: OnRead) -> Iterator[Record | str]:
    try:
        with part.open() as file:
            yield from records_in(Utf8Source(file, told))
    except UNREADABLE as exc:
        yield f"{reason(exc)}; the rest was not read"


def _named(others: Sequence[ExportFile | Skipped]) -> str:
    """The first of them, and how many more there are."""
    named = [f"{one.what}: {one.why}" if isinstance(one, Skipped) else one.name for one in others]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"{', '.join(named[:_NAMED])}{more}"
