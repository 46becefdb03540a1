"""Read the rollouts of Codex's command line, desktop app and editor extension."""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sources.base import FoundSession, Skipped
from sources.clients import CODEX
from sources.codex.records import parent_of
from sources.codex.rollout import Rollout
from sources.kit import drafts
from sources.kit.files import File, system_reason
from sources.kit.jsonl import Damage, read_lines, records_of
from sources.kit.loose_json import Record, mapping, string, text_at, value_at
from sources.kit.reader import FileReader, SessionFile, file_records, found_session
from sources.kit.zst import DECOMPRESSION_ERRORS, open_decompressed

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_ROLLOUT = re.compile(rf"rollout-(?:.*?-({_UUID})(?:_({_UUID}))?|.*)\.jsonl(?:\.zst)?")


class Codex(FileReader):
    """Reads `sessions/`, `archived_sessions/` and the list of thread names. Never open their siblings: secrets."""

    client = CODEX
    patterns = tuple(
        f"{folder}/**/rollout-*.jsonl{end}" for folder in ("sessions", "archived_sessions") for end in ("", ".zst")
    )

    def session_file(self, file: File) -> SessionFile:
        named = _ROLLOUT.fullmatch(os.path.basename(file.path))
        return SessionFile(file, _stem(file), (named and named[1]) or _stem(file))

    def is_better(self, file: SessionFile, than: SessionFile) -> bool:
        """Return False for the compressed copy of a file."""
        return than.path.endswith(".zst") or not file.path.endswith(".zst")

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """Yield the changed threads, newest first. Raises StorageError."""
        found: dict[str, dict[str, File]] = defaultdict(dict)
        for each in self.files(store):
            if isinstance(each, Skipped):
                yield each
            else:
                found[each.session_id][each.key] = each.file
        threads = _Threads({thread: [files[key] for key in sorted(files)] for thread, files in found.items()})
        changed = [id for id in threads.files if seen.get(id) != threads.fingerprint(id, seen.get(id, ""))]
        changed.sort(key=lambda id: max(file.modified for file in threads.files[id]), reverse=True)
        with suppress(OSError):
            names = file_records(str(store / "session_index.jsonl"), Damage()) if changed else ()
            threads.names = {string(record.get("id")): string(record.get("thread_name")) for record in names}
        for thread in changed:
            try:
                yield threads.read(thread)
            except OSError as exc:
                yield Skipped(threads.files[thread][0].path, system_reason(exc))


@dataclass(slots=True)
class _Threads:
    """The files of each thread by thread id; a rewound or long thread has several. `names`: the user's names.

    `parts`: each file by its own id, by which forks name it: that of the thread for its first file.
    """

    files: dict[str, list[File]]
    names: dict[str, str] = field(default_factory=dict)
    parts: dict[str, File] = field(init=False)

    def __post_init__(self) -> None:
        self.parts = {_part_id(file): file for files in self.files.values() for file in files}

    def fingerprint(self, thread: str, seen: str = "") -> str:
        """Return the fingerprint of all files; `seen` if the thread was read without a base that is still missing."""
        fingerprint = "+".join(file.fingerprint for file in self.files[thread])
        missing = seen.removeprefix(fingerprint + "?")
        return seen if missing != seen and missing not in self.parts else fingerprint

    def read(self, thread: str) -> FoundSession:
        damage, first = Damage(), self.files[thread][0]
        head = next(_records(self.files[thread], Damage()), {})
        meta = mapping(head.get("payload")) or head
        parent, relation = parent_of(meta)
        origin = [] if "subagent_history_start_ordinal" in meta else self.files.get(parent or "", [])
        copied = {text_at(record, "payload", "turn_id") for record in _records(origin, Damage())} - {""}
        is_agent, name = relation == "sub-agent", self.names.get(thread, "")
        rollout = Rollout(thread, copied=copied, is_agent=is_agent, name=name)
        for record in self._records(self.files[thread], damage, frozenset((_part_id(first),))):
            rollout.read(record)
        skipped, fingerprint = rollout.skipped(), self.fingerprint(thread)
        base = text_at(meta, "history_base", "thread_id")
        if base and base not in self.parts:
            skipped += (Skipped(f"the beginning of {thread}", f"it is in thread {base}, which is not here"),)
            fingerprint += f"?{base}"
        session = drafts.dated(rollout.session(), first.modified_at)
        return found_session(thread, fingerprint, session, damage.skipped() + skipped, first.path)

    def _records(self, files: list[File], damage: Damage, visited: frozenset[str]) -> Iterator[Record]:
        """Yield the records of files, preceded by records of their base if they have only the new part."""
        records = _records(files, damage)
        head = next(records, None)
        if head is None:
            return
        yield head
        base = mapping(value_at(head, "payload", "history_base"))
        origin, end = string(base.get("thread_id")), base.get("end_ordinal_exclusive")
        if origin in self.parts and origin not in visited and isinstance(end, int):
            for record in self._records([self.parts[origin]], Damage(), visited | {origin}):
                ordinal = record.get("ordinal")
                if isinstance(ordinal, int) and ordinal < end:
                    yield record
        yield from records


def _stem(file: File) -> str:
    return os.path.basename(file.path).removesuffix(".zst").removesuffix(".jsonl")


def _part_id(file: File) -> str:
    """Return the file's own id: the last one in its name."""
    named = _ROLLOUT.fullmatch(os.path.basename(file.path))
    return (named and (named[2] or named[1])) or _stem(file)


def _records(files: list[File], damage: Damage) -> Iterator[Record]:
    for file in files:
        with open_decompressed(file.path) as content:
            try:
                yield from records_of(read_lines(content), damage)
            except DECOMPRESSION_ERRORS:
                damage.note(0, "the compressed file is damaged")
