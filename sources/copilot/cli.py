"""Read the sessions of Copilot CLI: event logs, in the three places where it has kept them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from sources.base import FoundSession
from sources.clients import COPILOT_CLI
from sources.copilot.events import Events
from sources.kit.files import File, small_text, status_of
from sources.kit.loose_json import read_json, string
from sources.kit.reader import FileReader, SessionFile, parse_lines

_NOTE = "workspace.yaml"
_NOTED = re.compile(r"^(name|cwd):[ \t]*(\S.*)?$", re.MULTILINE)


class CopilotCli(FileReader):
    """Reads `session-state/` and `history-session-state/`. Secrets lie beside them."""

    client = COPILOT_CLI
    patterns = tuple(
        f"{folder}/{form}"
        for folder in ("session-state", "history-session-state")
        for form in ("*/events.jsonl", "*.jsonl")
    )
    beside = ("session-state/*/workspace.yaml",)

    def session_file(self, file: File) -> SessionFile:
        """Return the log; a session with a folder may be renamed in its note after it has ended."""
        folder, name = os.path.split(file.path)
        if name != "events.jsonl":
            return SessionFile(file, file.path, Path(name).stem)
        note_status = "+" + status_of(os.path.join(folder, _NOTE))
        return SessionFile(file, file.path, os.path.basename(folder), folder=folder, note_status=note_status)

    def parse(self, file: SessionFile) -> Iterator[FoundSession]:
        note = small_text(os.path.join(file.folder, _NOTE)) if file.folder else ""
        return parse_lines(file, Events(file.session_id, described=noted(note)))


def noted(text: str) -> dict[str, str]:
    """Return the name and folder in a `workspace.yaml`, which has one value a line. Pure."""
    return {key: _unquoted(value.strip()) for key, value in _NOTED.findall(text) if value.strip() not in ("", "null")}


def _unquoted(value: str) -> str:
    if value.startswith('"'):
        return string(read_json(value)) or value.strip('"')
    return value[1:-1].replace("''", "'") if value.startswith("'") and value.endswith("'") else value
