"""Where OpenCode kept its sessions before its database, a file for each part."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from sources.base import Skipped
from sources.kit.files import File, document, entries, folders_in, look_at, status_of, store_entries, why_not
from sources.kit.jsonl import Record, string
from sources.kit.loose_json import inside, number, read_json

_WRITING = "…"
_ENDING = ".json"


class Kept(NamedTuple):
    """The file of a session, the folder of its messages, and the one with a folder of parts for each message."""

    file: File
    messages: str
    parts: str

    @property
    def session_id(self) -> str:
        """The client names the file so."""
        return Path(self.file.path).stem


def kept_sessions(store: Path) -> Iterator[Kept | Skipped]:
    """The sessions below `storage`, or below `project` as in the first versions. Raises StorageError."""
    if store.name == "storage":
        for project in folders_in(store_entries(store / "session")):
            yield from _listed(project, str(store / "message"), str(store / "part"))
        return
    for slug in folders_in(store_entries(store)):
        root = os.path.join(slug, "storage", "session")
        yield from _listed(
            os.path.join(root, "info"), os.path.join(root, "message"), os.path.join(root, "part"), by_session=True
        )


def _listed(folder: str, messages: str, parts: str, *, by_session: bool = False) -> Iterator[Kept | Skipped]:
    try:
        listing = entries(folder)
    except OSError as exc:
        yield Skipped(folder, why_not(exc))
        return
    for entry in listing:
        if entry.name.endswith(_ENDING):
            file, session_id = look_at(entry), entry.name.removesuffix(_ENDING)
            own_parts = os.path.join(parts, session_id) if by_session else parts
            yield Kept(file, os.path.join(messages, session_id), own_parts) if isinstance(file, File) else file


class State(NamedTuple):
    """How a session stands before it is read: its record and the number of its messages, and its last message.

    Files are rewritten in place, which their folders do not show: a message that is still being written has to be
    looked at with all its parts, one that is done never again.
    """

    whole: str
    last_id: str = ""
    last: str = ""

    def fingerprint(self, messages: list[Record]) -> str:
        """What a sync remembers, once it is known whether the last message is done."""
        last = next((message for message in messages if message.get("id") == self.last_id), {})
        is_done = last.get("role") == "assistant" and (inside(last, "time", "completed") or last.get("error"))
        return self.whole if is_done or not self.last_id else f"{self.whole}{_WRITING}{self.last_id}:{self.last}"


def has_changed(kept: Kept, seen: str) -> bool:
    """Whether a session is other than it was read."""
    whole, is_writing, last = seen.partition(_WRITING)
    if whole != _whole(kept):
        return True
    message_id = last.partition(":")[0]
    try:
        return bool(is_writing) and last != f"{message_id}:{_of_message(kept, message_id)}"
    except OSError:
        return True


def state_of(kept: Kept) -> State:
    """The state of a session now. Raises OSError."""
    whole, last_id = _whole(kept), max(_ids(kept.messages), default="")
    return State(whole, last_id, _of_message(kept, last_id) if last_id else "")


def _whole(kept: Kept) -> str:
    return f"{kept.file.fingerprint}+{status_of(kept.messages)}"


def _of_message(kept: Kept, message_id: str) -> str:
    parts = os.path.join(kept.parts, message_id)
    files = [os.path.join(parts, f"{part_id}{_ENDING}") for part_id in _ids(parts)]
    states = [status_of(file) for file in (*files, os.path.join(kept.messages, f"{message_id}{_ENDING}"))]
    return blake2b(repr(states).encode(), digest_size=8).hexdigest()


def _ids(folder: str) -> list[str]:
    """Ids begin with a time: in order of their names."""
    return sorted(entry.name.removesuffix(_ENDING) for entry in entries(folder) if entry.name.endswith(_ENDING))


def record_of(kept: Kept) -> Record | None:
    """The session's own record; None if it is none. Raises OSError."""
    value = read_json(document(kept.file.path))
    return {**value, "id": kept.session_id} if isinstance(value, dict) else None


def messages_of(kept: Kept, damage: Counter[str]) -> list[Record]:
    """The messages in order; those that cannot be read are counted by the reason. Raises OSError."""
    return sorted(_records(kept.messages, damage), key=lambda message: number(inside(message, "time", "created")) or 0)


def parts_of(kept: Kept, message: Record, damage: Counter[str]) -> list[Record]:
    """The parts of a message in order, in the same way."""
    message_id = string(message.get("id"))
    return list(_records(os.path.join(kept.parts, message_id), damage)) if message_id else []


def _records(folder: str, damage: Counter[str]) -> Iterator[Record]:
    for own_id in _ids(folder):
        try:
            value = read_json(document(os.path.join(folder, f"{own_id}{_ENDING}")))
        except OSError as exc:
            damage[why_not(exc)] += 1
            continue
        if isinstance(value, dict):
            yield {**value, "id": own_id}
        else:
            damage["not a JSON object"] += 1
