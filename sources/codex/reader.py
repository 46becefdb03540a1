"""Codex: the rollouts of its command line, desktop app and editor extension."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from registry.domain import parse_time
from sources.base import FoundSession, Places, Skipped
from sources.codex.client import CODEX
from sources.codex.records import parent_of
from sources.codex.rollout import Rollout
from sources.kit import drafts
from sources.kit.files import File, entries, look_at, store_entries, why_not
from sources.kit.jsonl import Damage, Record, mapping, read_lines, records_of, string
from sources.kit.zst import DAMAGED, open_plain

_SETTINGS = ("CTXR_CODEX_DIR", "CODEX_HOME")
_FOLDERS = ("sessions", "archived_sessions")
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_ROLLOUT = re.compile(rf"rollout-(?:.*?-({_UUID})(?:_{_UUID})?|.*)\.jsonl(?:\.zst)?")

_TIME = re.compile(r"rollout-(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)")


@dataclass(slots=True)
class _Threads:
    """The files of each thread, by thread id; a long thread has several."""

    files: dict[str, list[File]]
    names: dict[str, str] = field(default_factory=dict)

    def fingerprint(self, thread: str, seen: str = "") -> str:
        """Of all files together. One that was read without its beginning stays so until the beginning is here."""
        own = "+".join(file.fingerprint for file in self.files[thread])
        missing = seen.removeprefix(own + "?")
        return seen if missing != seen and missing not in self.files else own


class Codex:
    """Reads `sessions/` and `archived_sessions/`. Opens nothing outside of them but the list of thread names."""

    name = CODEX.source

    def find(self, places: Places) -> Iterator[Path]:
        """The client's home folder, if it holds sessions."""
        root = places.folder(_SETTINGS, ".codex")
        if any(os.path.isdir(root / folder) for folder in _FOLDERS):
            yield root

    def stamp(self, store: Path) -> str:
        """Each file's own state is as cheap to look at: there is no stamp of the whole."""
        return ""

    def count(self, store: Path) -> int:
        """The rollouts there are; a few threads have several."""
        return sum(isinstance(each, File) for folder in _FOLDERS for each in _walk(str(store / folder)))

    def watched(self, store: Path) -> Iterable[Path]:
        """Only the sessions; beside them lie logs and packages."""
        return [store / folder for folder in _FOLDERS]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed threads, newest first. A thread without a conversation is found with no messages, so that
        it is not read again, and says so in its `skipped`. Raises StorageError."""
        files: dict[str, list[File]] = defaultdict(list)
        for folder in _FOLDERS:
            store_entries(store / folder)
            for each in _walk(str(store / folder)):
                if isinstance(each, File):
                    files[_thread_of(each)].append(each)
                else:
                    yield each
        threads = _Threads({thread: _each_once(parts) for thread, parts in files.items()})
        changed = [id for id in threads.files if seen.get(id) != threads.fingerprint(id, seen.get(id, ""))]
        changed.sort(key=lambda id: max(file.modified for file in threads.files[id]), reverse=True)
        threads.names = _names(store) if changed else {}
        for thread in changed:
            try:
                yield _read(thread, threads)
            except OSError as exc:
                yield Skipped(threads.files[thread][0].path, why_not(exc))


# What is there


def _walk(folder: str, deeper: int = 3) -> Iterator[File | Skipped]:
    """The rollouts in `YYYY/MM/DD/` or directly in the folder."""
    try:
        listing = entries(folder)
    except OSError as exc:
        yield Skipped(folder, why_not(exc))
        return
    for entry in listing:
        if _ROLLOUT.fullmatch(entry.name):
            yield look_at(entry)
        elif deeper and entry.is_dir():
            yield from _walk(entry.path, deeper - 1)


def _thread_of(file: File) -> str:
    named = _ROLLOUT.fullmatch(os.path.basename(file.path))
    return (named and named[1]) or _stem(file)


def _stem(file: File) -> str:
    return os.path.basename(file.path).removesuffix(".zst").removesuffix(".jsonl")


def _each_once(files: list[File]) -> list[File]:
    """In order of time; where a file stands beside its compressed copy, the file."""
    by_stem = {_stem(file): file for file in sorted(files, key=lambda file: file.path.endswith(".zst"), reverse=True)}
    return [by_stem[stem] for stem in sorted(by_stem)]


def _names(store: Path) -> dict[str, str]:
    """Thread id to the name that the user gave it."""
    try:
        with open(store / "session_index.jsonl", "rb") as file:
            records = list(records_of(read_lines(file), Damage()))
    except OSError:
        return {}
    return {string(record.get("id")): string(record.get("thread_name")) for record in records}


# What it says


def _read(thread: str, threads: _Threads) -> FoundSession:
    damage = Damage()
    head = next(_records(threads.files[thread], Damage()), {})
    meta = mapping(head.get("payload")) or head
    parent, relation = parent_of(meta)
    copied = relation == "sub-agent" and "subagent_history_start_ordinal" not in meta
    rollout = Rollout(thread, _turns(threads.files.get(parent or "", [])) if copied else ())
    rollout.name = threads.names.get(thread, "")
    for record in _whole(thread, threads, damage, frozenset()):
        rollout.read(record)
    return _found(thread, threads, rollout, damage, string(mapping(meta.get("history_base")).get("thread_id")))


def _found(thread: str, threads: _Threads, rollout: Rollout, damage: Damage, base: str) -> FoundSession:
    first = threads.files[thread][0]
    session = drafts.dated(rollout.session(), _time_in_name(first), first.modified_at)
    skipped = damage.skipped() + rollout.skipped()
    if not session.messages:
        skipped += (Skipped(first.path, "no conversation in it"),)
    fingerprint = threads.fingerprint(thread)
    if base and base not in threads.files:
        skipped += (Skipped(f"the beginning of {thread}", f"it is in thread {base}, which is not here"),)
        fingerprint += f"?{base}"
    return FoundSession(thread, fingerprint, session, skipped)


def _time_in_name(file: File) -> datetime | None:
    """When a rollout began, as its file is named: in local time."""
    if named := _TIME.match(os.path.basename(file.path)):
        with suppress(ValueError, OverflowError, OSError):
            return parse_time(datetime.strptime(named[1], "%Y-%m-%dT%H-%M-%S").astimezone())
    return None


def _whole(thread: str, threads: _Threads, damage: Damage, above: frozenset[str]) -> Iterator[Record]:
    """The records of a thread; one that holds only its new part has the part before it from its base."""
    records = _records(threads.files[thread], damage)
    head = next(records, None)
    if head is None:
        return
    yield head
    base = mapping(mapping(head.get("payload")).get("history_base"))
    origin, end = string(base.get("thread_id")), base.get("end_ordinal_exclusive")
    if origin in threads.files and origin not in above and origin != thread and isinstance(end, int):
        for record in _whole(origin, threads, Damage(), above | {thread}):
            ordinal = record.get("ordinal")
            if isinstance(ordinal, int) and ordinal < end:
                yield record
    yield from records


def _turns(files: list[File]) -> set[str]:
    """The turns of a thread."""
    found = (string(mapping(record.get("payload")).get("turn_id")) for record in _records(files, Damage()))
    return set(filter(None, found))


def _records(files: list[File], damage: Damage) -> Iterator[Record]:
    for file in files:
        with open_plain(file.path) as content:
            try:
                yield from records_of(read_lines(content), damage)
            except DAMAGED:
                damage.note(0, "the compressed file is damaged")
