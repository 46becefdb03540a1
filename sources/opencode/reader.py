"""Read the sessions of OpenCode and Kilo Code from their database."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from registry.domain import EARLIEST, Role, Session
from sources.base import FoundSession, Paths, Skipped
from sources.clients import OPENCODE
from sources.kit import drafts
from sources.kit.contents import content_text
from sources.kit.files import File, digest, entries, files_below, fingerprint_at, read_document
from sources.kit.loose_json import Record, compact, mapping, number, objects, read_json, string, text_at, value_at
from sources.kit.reader import DatabaseReader, FileReader, SessionFile
from sources.kit.sqlite_store import ClientDatabase, last_change

_DAMAGED = Skipped("message or part", "not a JSON object")
_DATED = frozenset(("id", "session_id", "time_created", "time_updated", "data"))


class OpenCode(DatabaseReader):
    """Reads the databases of OpenCode, or of its fork `name`, each of which is a store.

    Only four tables are read, because others have accounts; files next to the databases have secrets.
    """

    needed: ClassVar = {
        "session": frozenset(("id", "time_updated")),
        "message": _DATED,
        "part": _DATED | {"message_id"},
    }

    def __init__(self, name: str = OPENCODE.source) -> None:
        self.name = name

    def find(self, paths: Paths) -> Iterator[Path]:
        """Yield the databases, the last written one last: each release channel has its own, perhaps with copies."""
        for root in roots_of(self.name, paths):
            files = (file for name in (f"{self.name}.db", f"{self.name}-*.db") for file in sorted(root.glob(name)))
            yield from sorted(filter(Path.is_file, files), key=last_change)

    def rows(self, database: ClientDatabase, seen: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the sessions with a digest of their state, without reading contents.

        A session's own time misses late changes, so the times of its messages are included. Parts are rewritten while
        an answer is written; their times are only included within a day of the last activity, because that reads every
        page.
        """
        sessions = database.records("SELECT * FROM session ORDER BY time_updated DESC")
        messages = _counts(
            database, "SELECT session_id, count(*), ifnull(max(time_updated), 0) FROM message GROUP BY 1"
        )
        parts = _counts(database, "SELECT session_id, count(*), 0 FROM part GROUP BY 1")
        newest = max((time for _, time in messages.values()), default=0)
        for record in filter(lambda record: string(record["id"]), sessions):
            key = record["id"]
            count, time = messages.get(key, (0, 0))
            whole = digest(record, count, time, parts.get(key, (0, 0))[0])
            if time > newest - 24 * 3600 * 1000:
                latest = "SELECT ifnull(max(time_updated), 0) FROM part WHERE session_id = ?"
                yield key, f"{whole}/{database.rows(latest, (key,))[0][0]}", record
            else:
                before = seen.get(key, "")
                yield key, before if before.partition("/")[0] == whole else whole, record

    def parse(self, database: ClientDatabase, key: str, row: dict[str, Any]) -> OpenCodeDialogue:
        """Read one session, one message at a time."""
        dialogue = OpenCodeDialogue(described=row, undone=_undone_in(database, key))
        messages = "SELECT id, time_created, data FROM message WHERE session_id = ? ORDER BY time_created, id"
        parts_of = "SELECT id, time_created, data FROM part WHERE message_id = ? ORDER BY time_created, id"
        for stored in database.rows(messages, (key,)):
            message, parts = _record(*stored), [_record(*part) for part in database.rows(parts_of, (stored[0],))]
            whole = [part for part in parts if part is not None]
            dialogue.skips[_DAMAGED] += len(parts) - len(whole) + (message is None)
            if message is not None:
                dialogue.read(message, whole)
        return dialogue


def roots_of(name: str, paths: Paths) -> list[Path]:
    """Return the data folders of OpenCode, or of its fork `name`."""
    usual = paths.folder("XDG_DATA_HOME", ".local", "share") / name
    return paths.named(f"CTXR_{name.upper()}_DIR") or [usual]


def _undone_in(database: ClientDatabase, session_id: str) -> list[tuple[datetime, datetime]]:
    """Return the times of undone messages: the client deletes them at the next prompt, and logs that.

    A message deleted from the middle of a session was not undone.
    """
    if "aggregate_id" not in database.columns("event"):
        return []  # an older version
    of_session = "FROM event WHERE aggregate_id = ? AND type GLOB"
    if not database.rows(f"SELECT 1 {of_session} 'message.removed.*' LIMIT 1", (session_id,)):
        return []
    undone = list[tuple[datetime, datetime]]()
    present, removed = dict[str, datetime](), dict[str, datetime]()
    for (data,) in database.rows(f"SELECT data {of_session} 'message.[ru]*' ORDER BY seq", (session_id,)):
        event = mapping(read_json(data))
        message_id, at = text_at(event, "info", "id"), drafts.moment(value_at(event, "info", "time", "created"))
        if at and message_id not in removed:
            if removed and message_id not in present:  # the next prompt
                first = min(removed.values())
                undone += [(first, at)] if first > max(present.values(), default=EARLIEST) else []
                removed.clear()
            present[message_id] = at
        elif (removed_id := string(event.get("messageID"))) in present:
            removed[removed_id] = present.pop(removed_id)
    return undone


def _record(record_id: Any, created: Any, data: Any) -> Record | None:
    """Return a message or part with its id and time; None if its data is not a JSON object."""
    value = read_json(data)
    if not isinstance(value, dict):
        return None
    return {**value, "id": string(record_id), "time": {"created": created, **mapping(value.get("time"))}}


def _counts(database: ClientDatabase, statement: str) -> dict[str, tuple[int, int]]:
    rows = database.rows(statement)
    return {string(key): (count, time if isinstance(time, int) else 0) for key, count, time in rows}


_DEFAULT_TITLE = re.compile(r"(?:New|Child) session - \d{4}-")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*\s(?:[^"\\]|\\.)*)"', re.DOTALL)
_IGNORED = ("patch", "snapshot", "step-start", "step-finish", "agent")


@dataclass(slots=True)
class OpenCodeDialogue(drafts.Conversation):
    """Builds a session from its messages in order, each with its parts.

    `described`: the session's row. Typed parts are joined to one message; each part of an answer is a message.
    """

    described: Record = field(default_factory=dict)
    _typed: drafts.Draft | None = None
    _latest: datetime | None = None
    _is_reverted: bool = False

    def __post_init__(self) -> None:
        self.session_id = string(self.described.get("id"))
        self.folder = string(self.described.get("directory"))

    def read(self, message: Record, parts: Iterable[Record]) -> None:
        role, message_id = string(message.get("role")), string(message.get("id"))
        if role not in ("user", "assistant"):
            self.count_unknown("message", role)
            return
        before, revert = len(self.drafts), mapping(read_json(self.described.get("revert")))
        self._typed, self._latest = None, drafts.moment(value_at(message, "time", "created"))
        self.model = string(message.get("modelID"))
        self._is_reverted |= _is_revert_point(revert, "messageID", message) and not string(revert.get("partID"))
        for part in parts:
            self._is_reverted |= _is_revert_point(revert, "partID", part)
            self.begin(part.get("id"), value_at(part, "time", "start") or value_at(part, "time", "created"))
            added = len(self.drafts)
            self._add_part(message, part)
            self._put_in_order(added)
        added = len(self.drafts)
        self.begin(message_id, value_at(message, "time", "completed") or value_at(message, "time", "created"))
        self._add_error(mapping(message.get("error")))
        self._put_in_order(added)
        if role == "assistant":
            self._describe_answer(message, before)

    def session(self) -> Session:
        """Return the conversation as read so far, with reverted messages marked."""
        title = string(self.described.get("title")).strip()
        return self.build(
            "" if _DEFAULT_TITLE.match(title) else title,
            parent=string(self.described.get("parent_id")),
            began=self.described.get("time_created"),
        )

    def _put_in_order(self, since: int) -> None:
        """Correct times that contradict the order of the parts, and mark reverted parts."""
        for draft in self.drafts[since:]:
            if self._latest and (draft.at is None or draft.at < self._latest):
                draft.at = self._latest
                draft.more["time"] = "inferred"
            self._latest = draft.at
            if self._is_reverted:
                draft.more["superseded"] = True

    def _add_part(self, message: Record, part: Record) -> None:
        kind, text = string(part.get("type")), string(part.get("text"))
        is_user, is_injected = message.get("role") == "user", part.get("synthetic") or part.get("ignored")
        if kind == "text" and is_injected:
            self.inject(text)
        elif kind == "text" and is_user:
            if text := text.strip():
                quoted = _QUOTED.fullmatch(text)  # `opencode run` puts arguments with spaces in quotes
                self._prompt(message).parts.append(quoted[1].replace('\\"', '"') if quoted else text)
        elif kind == "text":
            self.say(Role.ASSISTANT, text)
        elif kind == "reasoning":
            self.say(Role.THINKING, text)
        elif kind == "tool":
            self._add_call(part)
        elif kind == "file" and is_user:
            self._prompt(message).attach(_file_name(part))
        elif kind == "file":
            self.say(Role.ASSISTANT, "", attachments=[_file_name(part)])
        elif kind == "compaction":
            self.inject("Conversation compacted", compaction={})
        elif kind == "retry":
            error = mapping(part.get("error"))
            self.say(Role.ERROR, string(error.get("message")) or text_at(error, "data", "message") or "error")
        elif kind == "subtask":  # a command that starts a sub-agent: only its expansion is stored
            command, description = string(part.get("command")), string(part.get("description"))
            typed = f"/{command}" if command else description or f"@{string(part.get('agent'))}"
            self._prompt(message).parts.append(typed)
            self.inject(string(part.get("prompt")))
        elif kind not in _IGNORED:
            self.count_unknown("part", kind)

    def _add_call(self, part: Record) -> None:
        state, name = mapping(part.get("state")), string(part.get("tool")) or "tool"
        draft = self.call(self.record_id, name, state.get("input", {}))
        draft.at = drafts.moment(value_at(state, "time", "start")) or draft.at
        status, result = _outcome(name, state)
        draft.set_result(result, status)
        for attachment in objects(state.get("attachments")):
            draft.attach(_file_name(attachment))

    def _add_error(self, error: Record) -> None:
        text = text_at(error, "data", "message") or string(error.get("message")) or string(error.get("name"))
        if error.get("name") == "MessageAbortedError":
            self.inject(f"[Turn aborted: {text}]", ":error")
        elif error:
            self.say(Role.ERROR, text or "error", ":error")

    def _describe_answer(self, message: Record, since: int) -> None:
        tokens = mapping(message.get("tokens"))
        self.count_tokens(since, {**tokens, **mapping(tokens.get("cache"))}, excludes_reasoning=True)
        for draft in self.drafts[since:] if message.get("summary") is True else ():
            if draft.role is Role.ASSISTANT:
                draft.role = Role.SYSTEM
                draft.more |= {"injected": True, "compaction": {}}

    def _prompt(self, message: Record) -> drafts.Draft:
        """Return the message with all typed parts; create it if there is none yet."""
        if self._typed is None:
            at = drafts.moment(value_at(message, "time", "created"))
            self._typed = drafts.Draft(Role.USER, [], at, {"native_id": string(message.get("id"))})
            self.drafts.append(self._typed)
        return self._typed


def _is_revert_point(revert: Record, key: str, given: Record) -> bool:
    reverted_id = string(revert.get(key))
    return bool(reverted_id) and given.get("id") == reverted_id


def _outcome(name: str, state: Record) -> tuple[str, str]:
    """Return status and result; a failed command has the client's status `completed`."""
    status = string(state.get("status"))
    if status == "error":
        error = content_text(state.get("error"))
        is_rejected = error.startswith(("The user rejected permission", "The user dismissed"))
        return drafts.REJECTED if is_rejected else drafts.FAILED, error
    if status != "completed":
        return drafts.PENDING, ""
    has_failed = name == "invalid" or bool(number(value_at(state, "metadata", "exit")))
    return drafts.FAILED if has_failed else drafts.COMPLETED, content_text(state.get("output"))


def _file_name(part: Record) -> str:
    """Return the name of a file, not its URL if that contains the data."""
    url = string(part.get("url"))
    address = "" if url.startswith("data:") else url
    return string(part.get("filename")) or address or string(part.get("mime")) or "file"


# Before version 1.2: a JSON file for each session, message and part


class OpenCodeFiles(FileReader):
    """Reads `storage/`. Newer versions import it into their database, and leave it behind."""

    client = OPENCODE
    is_rare = True
    patterns = ("storage/session/*/*.json",)
    backup_extras = ("storage/message/*/*.json", "storage/part/*/*.json")

    def roots(self, paths: Paths) -> Iterable[Path]:
        """Return the folders without a database."""
        return [root for root in roots_of(OPENCODE.source, paths) if not any(root.glob(f"{OPENCODE.source}*.db"))]

    def watched(self, store: Path) -> list[Path]:
        return [store / "storage"]

    def session_file(self, file: File) -> SessionFile:
        """Return the session; its messages are part of the fingerprint, of which the last one may still change."""
        path = Path(file.path)
        messages = str(path.parents[2] / "message" / path.stem)
        names = sorted(entry.name for entry in entries(messages))
        last = fingerprint_at(os.path.join(messages, names[-1])) if names else ""
        return SessionFile(file, file.path, path.stem, folder=messages, note_status=f"+{digest(names, last)}")

    def parse(self, file: SessionFile) -> Iterator[FoundSession]:
        session = mapping(read_json(read_document(file.path)))
        row = {  # as in the database of newer versions
            "id": file.session_id,
            "directory": session.get("directory"),
            "title": session.get("title"),
            "parent_id": session.get("parentID"),
            "revert": compact(session.get("revert")),
            "time_created": value_at(session, "time", "created"),
        }
        dialogue = OpenCodeDialogue(described=row)
        for message in _documents(file.folder, dialogue.skips):
            parts = Path(file.folder).parents[1] / "part" / string(message.get("id"))
            dialogue.read(message, _documents(str(parts), dialogue.skips))
        yield file.found(dialogue.session(), dialogue.skipped())


def _documents(folder: str, skips: Counter[Skipped]) -> Iterator[Record]:
    """Yield the messages or parts in a folder in order: their ids are their names, and increase."""
    for file in sorted(files_below(folder, "*.json"), key=lambda each: each.path if isinstance(each, File) else ""):
        record = read_json(read_document(file.path)) if isinstance(file, File) else None
        if isinstance(record, dict):
            yield record
        else:
            skips[Skipped(_DAMAGED.what, file.why) if isinstance(file, Skipped) else _DAMAGED] += 1
