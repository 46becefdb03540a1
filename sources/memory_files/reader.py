"""Read the memory files of Claude Code, Codex and Windsurf: each Markdown file is a session with one message.

An edit by the client therefore replaces the message.
"""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from registry.domain import Message, Role, Session, storable
from sources.base import FoundSession, Paths
from sources.clients import CLAUDE_CODE, CODEX, MEMORY_FILES, WINDSURF
from sources.kit.drafts import project_of
from sources.kit.files import read_document
from sources.kit.jsonl import Damage
from sources.kit.loose_json import string
from sources.kit.reader import FileReader, ParseFile, SessionFile, file_records


class MemoryFiles(FileReader):
    """Reads `projects/*/memory/` of Claude Code, `memories/` of Codex and Windsurf."""

    client = MEMORY_FILES
    is_rare = True
    patterns = ("projects/*/memory/*.md", "memories/*.md")

    def roots(self, paths: Paths) -> Iterable[Path]:
        return [client.history_in(paths) for client in (CLAUDE_CODE, CODEX, WINDSURF)]

    def parser(self, store: Path) -> ParseFile:
        return lambda file: [_parse(file, store)]


def _parse(file: SessionFile, store: Path) -> FoundSession:
    path = Path(file.path)
    text = read_document(file.path).decode("utf-8", errors="replace").strip()
    folders = _working_folders(path.parent.parent) if path.parent.name == "memory" else ()
    name_parts = path.relative_to(store).with_suffix("").parts
    session = Session(
        storable(".".join([store.name.lstrip("."), *name_parts])),
        (Message(Role.ASSISTANT, text, more={"native_id": "note"}),) if text else (),
        title=f"{path.name} ({store.name.lstrip('.')})",
        project=project_of(folders),
    )
    return file.found(session, ())


def _working_folders(project: Path) -> Iterator[str]:
    """Yield the working folders named in the transcripts of a project."""
    for transcript in sorted(project.glob("*.jsonl"), key=os.path.getmtime, reverse=True):
        records = islice(file_records(str(transcript), Damage()), 20)  # one of the first records names the folder
        yield from filter(None, (string(record.get("cwd")) for record in records))
