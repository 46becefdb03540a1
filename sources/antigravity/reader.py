"""Antigravity: the transcripts that it writes beside its own database, which nobody else can read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sources.antigravity.client import ANTIGRAVITY, FOLDERS
from sources.antigravity.transcript import Transcript
from sources.base import FoundSession, Places, Skipped
from sources.kit import drafts
from sources.kit.files import File, file_at, folders_in, read_changed, small_text, store_entries
from sources.kit.jsonl import Damage, read_lines, records_of, string

_BRAIN = "brain"
_LOGS = os.path.join(".system_generated", "logs")
_KEPT = ("transcript_full.jsonl", "transcript.jsonl", "overview.txt")
"""The best first: the second is shortened, the third is what older versions wrote."""
_PROMPTS = "history.jsonl"


@dataclass(frozen=True, slots=True)
class _Kept:
    file: File
    session: str


class Antigravity:
    """Reads `brain/<id>/.system_generated/logs/`. Tokens lie above, in `~/.gemini`."""

    name = ANTIGRAVITY.source

    def find(self, places: Places) -> Iterator[Path]:
        """The folders of the editor and of the command line that hold conversations."""
        named = places.environment.get("CTXR_ANTIGRAVITY_DIR")
        usual = [places.home / ".gemini" / folder for folder in FOLDERS]
        for store in [Path(named).expanduser()] if named else usual:
            if os.path.isdir(store / _BRAIN):
                yield store

    def stamp(self, store: Path) -> str:
        """Each file's own state is as cheap to look at: there is no stamp of the whole."""
        return ""

    def watched(self, store: Path) -> Iterable[Path]:
        """Only the conversations; beside them lie caches and a database."""
        return [store / _BRAIN]

    def sessions(self, store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
        """The changed conversations, newest first. A file without a conversation is found with no messages, so that
        it is not read again, and says so in its `skipped`. Raises StorageError."""
        folders = _worked_in(store)
        yield from read_changed(
            _conversations(store),
            lambda kept: seen.get(kept.session) != kept.file.fingerprint,
            lambda kept: [_read(kept, folders.get(kept.session, ""))],
        )


def _conversations(store: Path) -> Iterator[_Kept | Skipped]:
    for folder in folders_in(store_entries(store / _BRAIN)):
        found = (file_at(os.path.join(folder, _LOGS, name)) for name in _KEPT)
        best = next((file for file in found if file), None)
        if isinstance(best, File):
            yield _Kept(best, os.path.basename(folder))
        elif best:
            yield best


def _worked_in(store: Path) -> dict[str, str]:
    """The folder each of the command line's conversations was begun in: only the list of prompts has it."""
    lines = small_text(store / _PROMPTS).encode().splitlines(keepends=True)
    return {
        string(record.get("conversationId")): string(record.get("workspace"))
        for record in records_of(lines, Damage())
        if record.get("conversationId")
    }


def _read(kept: _Kept, folder: str) -> FoundSession:
    damage = Damage()
    transcript = Transcript(kept.session, folder)
    with open(kept.file.path, "rb") as file:
        for record in records_of(read_lines(file), damage):
            transcript.read(record)
    session = drafts.dated(transcript.session(), kept.file.modified_at)
    skipped = damage.skipped() + transcript.skipped()
    if not session.messages:
        skipped += (Skipped(kept.file.path, "no conversation in it"),)
    return FoundSession(kept.session, kept.file.fingerprint, session, skipped)
