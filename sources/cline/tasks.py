"""The folders of Cline and its kin: tasks of the extensions, sessions of the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from registry.domain import Role, Session, preview_of
from sources.base import FoundSession, Skipped
from sources.cline.dialogue import Dialogue
from sources.cline.task import Task
from sources.kit import drafts
from sources.kit.files import File, document, entries, file_at, folders_in, read_changed, small_text, status_of, why_not
from sources.kit.jsonl import Record, items, mapping, string
from sources.kit.loose_json import read_json

TITLE_WIDTH = 80
_VIEW, _SENT = "ui_messages.json", "api_conversation_history.json"
_MESSAGES = ".messages.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """A conversation in a folder of its own. `beside`: the file that describes it, where it has one."""

    file: File
    session_id: str
    beside: str
    parent: str | None = None

    @property
    def fingerprint(self) -> str:
        """Changes with the conversation and with its description."""
        return f"{self.file.fingerprint}|{status_of(self.beside)}"


def conversations(store: Path, seen: Mapping[str, str]) -> Iterator[FoundSession | Skipped]:
    """The changed ones of `tasks/` and `sessions/`, newest first; one without messages says so in its `skipped`."""
    listed = _Listed(store)
    yield from read_changed(
        [*_each(store / "tasks", _task), *_each(store / "sessions", _session)],
        lambda kept: seen.get(kept.file.path) != kept.fingerprint,
        lambda kept: [_read(kept, listed)],
    )


def _each(folder: Path, look: Callable[[str], Iterator[Kept | Skipped]]) -> Iterator[Kept | Skipped]:
    try:
        for path in folders_in(entries(folder)):
            yield from look(path)
    except OSError as exc:
        yield Skipped(str(folder), why_not(exc))


def _task(folder: str) -> Iterator[Kept | Skipped]:
    """What its user saw has all times; what the model was sent stands in where it is missing."""
    file = file_at(os.path.join(folder, _VIEW)) or file_at(os.path.join(folder, _SENT))
    if isinstance(file, File):
        yield Kept(file, os.path.basename(folder), os.path.join(folder, "history_item.json"))
    elif file:
        yield file


def _session(folder: str) -> Iterator[Kept | Skipped]:
    """A session, and the agents that worked for it."""
    own = os.path.basename(folder)
    try:
        names = [entry.name for entry in entries(folder) if entry.name.endswith(_MESSAGES)]
    except OSError as exc:
        yield Skipped(folder, why_not(exc))
        return
    for name in sorted(names):
        stem, file = name.removesuffix(_MESSAGES), file_at(os.path.join(folder, name))
        if isinstance(file, File):
            beside = os.path.join(folder, f"{stem}.json")
            yield Kept(file, stem, beside, None if stem == own else own)
        elif file:
            yield file


class _Listed:
    """What is told of tasks outside of their folders: their projects."""

    def __init__(self, store: Path) -> None:
        self._file = store / "state" / "taskHistory.json"
        self._tasks: dict[str, Record] | None = None

    def of(self, kept: Kept) -> Record:
        """What describes a conversation, its own file first."""
        own = mapping(read_json(small_text(kept.beside)))
        if own:
            return own
        if self._tasks is None:
            listed = items(read_json(small_text(self._file)))
            self._tasks = {string(mapping(each).get("id")): mapping(each) for each in listed}
        return self._tasks.get(kept.session_id, {})


def _read(kept: Kept, listed: _Listed) -> FoundSession:
    told, content = listed.of(kept), read_json(document(kept.file.path))
    messages = content if isinstance(content, list) else mapping(content).get("messages")
    if not isinstance(messages, list):
        skipped: tuple[Skipped, ...] = (Skipped(kept.file.path, "no list of messages in it"),)
        return FoundSession(kept.file.path, kept.fingerprint, Session(kept.session_id, ()), skipped)
    folder = _folder(told)
    reading = Task(folder) if kept.file.path.endswith(_VIEW) else Dialogue(folder)
    for message in messages:
        reading.read(mapping(message))
    session = drafts.dated(_session_of(kept, told, reading), drafts.moment(told.get("ts")), kept.file.modified_at)
    skipped = tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in reading.unknown.items())
    if not session.messages:
        skipped += (Skipped(kept.file.path, "no conversation in it"),)
    return FoundSession(kept.file.path, kept.fingerprint, session, skipped)


def _folder(told: Record) -> str:
    names = ("cwdOnTaskInitialization", "workspace", "workspace_root", "cwd", "shadowGitConfigWorkTree")
    return next(filter(None, (string(told.get(name)) for name in names)), "")


def _session_of(kept: Kept, told: Record, reading: Task | Dialogue) -> Session:
    asked = next((draft.parts[0] for draft in reading.found if draft.role is Role.USER and draft.parts), "")
    named = string(mapping(told.get("metadata")).get("title")).strip()
    title_from, title = ("name", named) if named and named != asked else ("first words", asked)
    parent = kept.parent or string(told.get("parentTaskId")) or None
    began = drafts.moment(told.get("started_at")) or drafts.moment(told.get("ts"))
    meta = {"title_from": title_from if title else None, "relation": "sub-agent" if parent else None}
    return Session(
        session_id=kept.session_id,
        messages=drafts.messages_of(reading.found, began),
        title=preview_of(title, TITLE_WIDTH) if title.strip() else None,
        project=drafts.project_of([reading.folder]),
        parent=parent,
        meta={key: value for key, value in meta.items() if value},
    )
