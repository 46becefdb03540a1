"""Antigravity: the transcripts that it writes beside its own database, which nobody else can read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sources.antigravity.client import ANTIGRAVITY, FOLDERS
from sources.antigravity.transcript import Transcript
from sources.base import FoundSession, Places, Skipped
from sources.kit.files import File, file_at, folders_in, small_text, store_entries
from sources.kit.jsonl import Damage, records_of, string
from sources.kit.reader import FileReader, ParseFile, SessionFile, json_lines

_BRAIN = "brain"
_LOGS = os.path.join(".system_generated", "logs")
_TRANSCRIPTS = ("transcript_full.jsonl", "transcript.jsonl", "overview.txt")
"""The best first: the second is shortened, the third is what older versions wrote."""
_PROMPTS = "history.jsonl"


class Antigravity(FileReader):
    """Reads `brain/<id>/.system_generated/logs/`. Tokens lie above, in `~/.gemini`."""

    name = ANTIGRAVITY.source
    folders = (_BRAIN,)

    def find(self, places: Places) -> Iterator[Path]:
        """Yield the folders of the editor and of the command line that hold conversations."""
        named = places.environment.get("CTXR_ANTIGRAVITY_DIR")
        usual = [places.home / ".gemini" / folder for folder in FOLDERS]
        yield from self.with_sessions([Path(named).expanduser()] if named else usual)

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the best transcript of each conversation."""
        for folder in folders_in(store_entries(store / _BRAIN)):
            found = (file_at(os.path.join(folder, _LOGS, name)) for name in _TRANSCRIPTS)
            best, session_id = next((file for file in found if file), None), os.path.basename(folder)
            if isinstance(best, File):
                yield SessionFile(best, session_id, session_id)
            elif best:
                yield best

    def parser(self, store: Path) -> ParseFile:
        """Return the parser of one transcript."""
        projects = _projects(store)
        return lambda file: _parse(file, projects.get(file.session_id, ""))


def _projects(store: Path) -> dict[str, str]:
    """Return the project of each of the command line's conversations: only the list of prompts has it."""
    lines = small_text(store / _PROMPTS).encode().splitlines(keepends=True)
    return {
        string(record.get("conversationId")): string(record.get("workspace"))
        for record in records_of(lines, Damage())
        if record.get("conversationId")
    }


def _parse(file: SessionFile, project: str) -> Iterator[FoundSession]:
    damage, transcript = Damage(), Transcript(file.session_id, project)
    for record in json_lines(file.file.path, damage):
        transcript.read(record)
    yield file.found(transcript.session(), damage.skipped() + transcript.skipped())
