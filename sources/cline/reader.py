"""Read the tasks of the extensions Cline and Roo Code, and the sessions of Cline's command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from registry.domain import Role, Session
from sources.base import FoundSession, Places, Skipped
from sources.clients import CLINE, ROO_CODE
from sources.cline.dialogue import ClineDialogue
from sources.cline.task import Task
from sources.kit import drafts
from sources.kit.files import File, document, small_text, status_of
from sources.kit.loose_json import Record, first_text, items, mapping, objects, read_json, string, text_at
from sources.kit.reader import FileReader, ParseFile, SessionFile
from sources.kit.workspace_files import user_folders

_VIEW, _MESSAGES = "ui_messages.json", ".messages.json"


class Cline(FileReader):
    """Reads `tasks/`, `sessions/` and the list of tasks. Keys lie beside them."""

    client = CLINE
    extension = "saoudrizwan.claude-dev"
    # the user's view has all times; the messages that the model was sent stand in if it is missing
    patterns = (f"tasks/*/{_VIEW}", "tasks/*/api_conversation_history.json", f"sessions/*/*{_MESSAGES}")
    beside = ("tasks/*/*", "sessions/*/*", "state/taskHistory.json")

    def roots(self, places: Places) -> Iterable[Path]:
        """Return the folder that the command line and the extension share, and the extension's own in each editor."""
        return places.named("CTXR_CLINE_DIR") or [CLINE.history_in(places), *self.in_editors(places)]

    def in_editors(self, places: Places) -> Iterator[Path]:
        """Yield the folder that each editor gives to the extension."""
        builds = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
        return (folder / "globalStorage" / self.extension for folder in user_folders(places, builds))

    def session_file(self, file: File) -> SessionFile:
        """Return the conversation; `folder` holds the path of the file that describes it."""
        folder, name = os.path.split(file.path)
        own, parent, key = os.path.basename(folder), None, folder
        described = os.path.join(folder, "history_item.json")
        if name.endswith(_MESSAGES):
            key, own = file.path, name.removesuffix(_MESSAGES)
            described = os.path.join(folder, f"{own}.json")
            parent = None if own == os.path.basename(folder) else os.path.basename(folder)
        return SessionFile(file, key, own, parent, described, f"|{status_of(described)}")

    def parser(self, store: Path) -> ParseFile:

        @cache
        def listed() -> dict[str, Record]:
            tasks = objects(read_json(small_text(store / "state" / "taskHistory.json")))
            return {string(task.get("id")): task for task in tasks}

        def parse(file: SessionFile) -> Iterator[FoundSession]:
            own = mapping(read_json(small_text(file.folder)))
            yield _parse(file, own or listed().get(file.session_id, {}))

        return parse


class RooCode(Cline):
    """Reads `tasks/` of Roo Code's extension. Settings lie beside it."""

    client = ROO_CODE
    extension = "rooveterinaryinc.roo-cline"

    def roots(self, places: Places) -> Iterable[Path]:
        return places.named("CTXR_ROO_CODE_DIR") or self.in_editors(places)


def _parse(file: SessionFile, about: Record) -> FoundSession:
    content = read_json(document(file.path))
    messages = content if isinstance(content, list) else mapping(content).get("messages")
    names = ("cwdOnTaskInitialization", "workspace", "workspace_root", "cwd", "shadowGitConfigWorkTree")
    folder = first_text(about, *names)
    reading = (Task if file.path.endswith(_VIEW) else ClineDialogue)(file.session_id, folder)
    for message in items(messages):
        reading.read(mapping(message))
    session = _session_of(reading, file.agent_of or string(about.get("parentTaskId")), about)
    skipped = () if isinstance(messages, list) else (Skipped(file.path, "no list of messages in it"),)
    return file.found(session, skipped + reading.skipped(), drafts.moment(about.get("ts")))


def _session_of(reading: Task | ClineDialogue, parent: str, about: Record) -> Session:
    asked = next((draft.parts[0] for draft in reading.drafts if draft.role is Role.USER and draft.parts), "")
    named = text_at(about, "metadata", "title").strip()
    return reading.build(
        named if named != asked else "",
        parent=parent,
        began=drafts.moment(about.get("started_at")) or about.get("ts"),
    )
