"""Build messages and conversations piece by piece, as readers find their parts. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from registry.domain import EARLIEST, Message, Role, Session, parse_time, preview_of
from sources.base import Skipped
from sources.kit.contents import attachment_name, content_text, image_in
from sources.kit.loose_json import Record, mapping, object_in, objects, storable, string
from sources.kit.token_counts import usage_of

# the statuses of a tool call, for every client; pending: the client's file has no result
COMPLETED, FAILED, REJECTED, PENDING = "completed", "failed", "rejected", "pending"
_WORDS_BY_STATUS = {
    COMPLETED: "completed success done",
    FAILED: "error errored",
    REJECTED: "cancelled canceled",
    PENDING: "pending validating scheduled awaiting_approval executing started loading running generating generated "
    "calling",
}
_STATUS_BY_WORD = {word: status for status, words in _WORDS_BY_STATUS.items() for word in words.split()}


@dataclass(slots=True)
class Draft:
    """A message to which parts may be added. `origin`: the id of the record that began it."""

    role: Role
    parts: list[str]
    at: datetime | None
    more: dict[str, Any] = field(default_factory=dict)
    origin: str = ""
    images: dict[int, bytes] = field(default_factory=dict)  # by position in the attachments

    def add(self, text: str) -> None:
        """Add a part, unless it is a recent one: clients write some parts twice."""
        if text and text not in self.parts[-50:]:
            self.parts.append(text)

    def set_result(self, result: Any, status: str, shown: str | None = None) -> None:
        """Set a call's result, unless it has one or `status` is pending. `shown`: the result in the message's text."""
        tool = self.more["tool"]
        if PENDING == tool["status"] != status:
            tool.update(result=result, status=status)
            self.add(result if shown is None else shown)

    def attach(self, name: str, image: bytes | None = None) -> None:
        names = self.more.setdefault("attachments", [])
        if image:
            self.images[len(names)] = image
        names.append(name)


def messages_of(drafts: Iterable[Draft], began: datetime | None = None) -> tuple[Message, ...]:
    """Return the messages in order, without empty ones; infer a missing time from the message before.

    `began`: the time of messages before the first one with a time, if none has one.
    """
    messages = undated_messages_of(drafts)
    latest = next((message.timestamp for message in messages if message.timestamp), began)
    dated_messages = []
    for message in messages:
        latest = message.timestamp or latest
        dated_messages.append(message if message.timestamp else with_inferred_time(message, latest))
    return tuple(dated_messages)


def with_inferred_time(message: Message, at: datetime | None) -> Message:
    """Set a message's time and mark it as inferred."""
    return replace(message, timestamp=at, more={**message.more, "time": "inferred"})


def undated_messages_of(drafts: Iterable[Draft]) -> tuple[Message, ...]:
    """Return the messages in order, without empty ones and without inferring times."""
    written = ((draft, text) for draft in drafts if (text := _text(draft)))
    return tuple(Message(draft.role, text, draft.at, None, draft.more, draft.images) for draft, text in written)


def dated(session: Session, at: datetime | None) -> Session:
    """Give all messages a time, marked as inferred, if none has one.

    Otherwise they would get the time of the import, and the session would be listed as the latest one.
    """
    if at is None or any(message.timestamp for message in session.messages):
        return session
    return replace(session, messages=tuple(with_inferred_time(message, at) for message in session.messages))


def _text(draft: Draft) -> str:
    names = draft.more.get("attachments", ())
    return "\n\n".join(draft.parts) or " ".join(f"[{name}]" for name in names)


_NUMBER = re.compile(r"\d{9,15}(?:\.\d*)?")  # some clients write a number as text


def moment(value: object) -> datetime | None:
    """Parse a client's time: ISO 8601, or seconds or milliseconds since 1970; None if it is neither."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    try:
        if isinstance(value, (str, datetime)):
            at = parse_time(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            is_milliseconds = value > 100_000_000_000  # as seconds that is the year 5138
            at = parse_time(datetime.fromtimestamp(value / (1000 if is_milliseconds else 1), UTC))
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return at if at >= EARLIEST else None


# the parameters that can describe a call in its title, the most specific first
_TITLE_PARAMS = (
    *("file_path", "filePath", "filepath", "notebook_path", "path", "targetFile", "target_file", "effectiveUri"),
    *("relativeWorkspacePath", "dir_path", "targetDirectory", "directoryPath", "command", "cmd", "pattern"),
    *("globPattern", "glob_pattern", "regex", "query", "searchTerm", "search_term", "url", "description", "skill"),
    *("prompt", "question"),
)


def call_title(name: str, params: object, folder: str = "") -> str:
    """Return a call on one line, such as `Read src/a.py`; paths below `folder` (the working folder) are shortened."""
    given = mapping(params)
    subjects = (_words(given[key]) for key in _TITLE_PARAMS if key in given)
    subject = next(filter(None, subjects), "") or _words(params)
    if len(folder) > 1 and subject.startswith((folder + "/", folder + "\\")):
        subject = subject[len(folder) + 1 :]
    return preview_of(f"{name} {subject}", 200)


def _words(value: object) -> str:
    given = " ".join(filter(None, map(string, value))) if isinstance(value, list) else string(value)
    return " ".join(given[:800].split())


def tool_draft(
    native_id: str, name: str, params: object, at: datetime | None, *, folder: str = "", origin: str = ""
) -> Draft:
    """Return a call without a result."""
    tool: dict[str, Any] = {"name": name or "tool", "params": storable(params), "result": None, "status": PENDING}
    more = without_empty({"native_id": native_id, "tool": tool})
    return Draft(Role.TOOL, [call_title(tool["name"], params, folder)], at, more, origin)


def result_status(has_failed: object) -> str:
    """Return the status of a finished call."""
    return FAILED if has_failed else COMPLETED


def status_of(word: object, otherwise: str) -> str:
    """Convert a client's word for a call's status; return `otherwise` for an unknown word."""
    return _STATUS_BY_WORD.get(string(word), otherwise)


def shortened(text: str) -> str:
    """Keep the beginning and the end of a text over 4000 characters."""
    return text if len(text) <= 4000 else f"{text[:3000]}\n[…]\n{text[-1000:]}"


_WORKTREE = re.compile(r"[\\/]\.(?:claude|codex)[\\/]worktrees(?:[\\/].*)?$", re.DOTALL)


def project_of(folders: Iterable[str]) -> str | None:
    """Return the first working folder that is not a client's worktree, else the main folder of the first worktree."""
    flavours = (PurePosixPath, PureWindowsPath)
    seen = [folder for folder in folders if any(flavour(folder).is_absolute() for flavour in flavours)]
    chosen = next((folder for folder in seen if not _WORKTREE.search(folder)), None)
    return chosen or next((_WORKTREE.sub("", folder) for folder in seen), None) or None


MAX_IMAGES_BYTES = 64 * 2**20  # of one conversation's images, which are in memory at once; the rest are named only


@dataclass(slots=True)
class Conversation:
    """The base of all parsers: messages so far, tool calls by id, and counts of skipped parts.

    `folder`: the first working folder, by which paths in titles are shortened; `folders`: all of them, in order.
    `record_id`, `at`, `model`: id, time and model of the next messages. `undone`: as in `Session`.
    `agent_of`: the parent session of a sub-agent.
    """

    session_id: str = ""
    folder: str = ""
    model: str = ""
    agent_of: str | None = None
    record_id: str = ""
    at: datetime | None = None
    folders: dict[str, None] = field(default_factory=dict)
    skips: Counter[Skipped] = field(default_factory=Counter)
    drafts: list[Draft] = field(default_factory=list)
    calls: dict[str, Draft] = field(default_factory=dict)
    undone: list[tuple[datetime, datetime]] = field(default_factory=list)
    _room_for_images: int = MAX_IMAGES_BYTES
    _parents: dict[str, str] = field(default_factory=dict)

    def begin(self, record_id: object, at: object) -> None:
        """Begin a record: set id and time of the next messages."""
        self.record_id, self.at = string(record_id), moment(at)

    def add_folder(self, folder: object) -> None:
        """Add a working folder; the first one is the conversation's."""
        if name := string(folder):
            self.folders[name] = None
            self.folder = next(iter(self.folders))

    def attach(self, draft: Draft, content: object) -> None:
        """Attach the pictures and documents in a content to a message, with the images as long as there is room."""
        for block in objects(content):
            if name := attachment_name(block):
                image = image_in(block) or b""
                is_kept = len(image) <= self._room_for_images
                self._room_for_images -= len(image) if is_kept else 0
                draft.attach(name, image if is_kept else None)

    def say(self, role: Role, text: str, part: str = "", *, content: object = None, **more: Any) -> Draft:
        """Add a message and return it; one without text or attachments is returned, but not added.

        `part`: appended to the record's id, if a record contains several messages. `content`: has attachments,
        which are added to those of `more`.
        """
        text = text.strip()
        model = self.model if role in (Role.ASSISTANT, Role.THINKING) else ""
        fields = {"native_id": self.record_id and self.record_id + part, "model": model, **more}
        draft = Draft(role, [text] if text else [], self.at, without_empty(fields), self.record_id)
        self.attach(draft, content)
        if text or "attachments" in draft.more:
            self.drafts.append(draft)
        return draft

    def inject(self, text: str, part: str = "", **more: Any) -> Draft:
        return self.say(Role.SYSTEM, text, part, injected=True, **more)

    def call(self, call_id: str, name: object, params: object, *, folder: str = "", **more: Any) -> Draft:
        """Add a tool call without a result."""
        draft = tool_draft(call_id, string(name), params, self.at, folder=folder or self.folder, origin=self.record_id)
        draft.more |= without_empty({"model": self.model, **more})
        self.calls[call_id or f"without id {len(self.drafts)}"] = draft
        self.drafts.append(draft)
        return draft

    def set_result(self, call_id: object, result: str, status: str) -> None:
        """Set the result of a call; that of an unknown call is dropped."""
        if draft := self.calls.get(string(call_id)):
            draft.set_result(result, status)

    def add_block(self, role: Role, block: Record, part: str = "") -> None:
        """Add a block of a message in Anthropic's format. The text of a system message is marked as injected."""
        kind, text = string(block.get("type")), string(block.get("text"))
        if kind == "text" and role is Role.SYSTEM:
            self.inject(text, part)
        elif kind == "text":
            self.say(role, text, part)
        elif kind in ("thinking", "reasoning"):
            self.say(Role.THINKING, string(block.get("thinking")) or text, part)
        elif kind == "tool_use":
            call_id = string(block.get("id")) or f"{self.record_id}:tool{part or ':0'}"
            self.call(call_id, block.get("name"), block.get("input", {}))
        elif kind == "tool_result":
            has_failed = block.get("is_error") is True
            self.set_result(block.get("tool_use_id"), content_text(block.get("content")), result_status(has_failed))
        elif attachment_name(block):
            self.say(Role.USER, "", part, content=[block])
        elif kind != "redacted_thinking":
            self.count_unknown("block", kind)

    def count_tokens(self, since: int, given: object, **otherwise: bool) -> None:
        """Store the token counts of an answer with its first message, at position `since`; see `usage_of`."""
        usage = usage_of(given, **otherwise)
        for draft in self.drafts[since : since + 1]:
            draft.more |= {"usage": usage} if usage else {}

    def follow(self, record_id: str, parent: object) -> bool:
        """Store the parent of a record, for clients whose users can rewind; return False for a known record."""
        if record_id in self._parents:
            return False
        if record_id:
            self._parents[record_id] = string(parent)
        return True

    def _last_record(self) -> str:
        """Return the last record of the tree. A record without a parent and without a message is not part of it."""
        origins = {draft.origin for draft in self.drafts}
        records = reversed(self._parents.items())
        return next((record_id for record_id, parent in records if parent or record_id in origins), "")

    def _path(self) -> dict[str, str]:
        """Return the last record and its ancestors, each with its parent."""
        path, leaf = dict[str, str](), self._last_record()
        while leaf in self._parents and leaf not in path:
            path[leaf] = self._parents[leaf]
            leaf = path[leaf]
        return path

    def _abandoned(self) -> set[str]:
        """Return the records that a rewind abandoned: all off the path to the last one; none if the path is broken."""
        path = self._path()
        return self._parents.keys() - path if "" in path.values() else set()

    def count_unknown(self, what: str, kind: str) -> None:
        """Count a record or a part of one that this reader does not know."""
        self.skips[Skipped(f"{what} {kind or 'without type'}", "unknown to this reader")] += 1

    def skipped(self, where: str = "") -> tuple[Skipped, ...]:
        """Return the skipped parts with their counts."""
        return tuple(Skipped(f"{count} x {one.what}{where}", one.why) for one, count in self.skips.items() if count)

    def session(self) -> Session:
        return self.build()

    def sessions(self) -> Iterable[Session]:
        """Return the session, and the sessions of the sub-agents in its file."""
        return [self.session()]

    def build(
        self,
        *titles: object,
        folders: Iterable[str] = (),
        project: str | None = None,
        parent: str | None = None,
        relation: str | None = "sub-agent",
        began: object = None,
        **meta: Any,
    ) -> Session:
        """Build the session.

        `titles`, `folders`: candidates for the title and the project; the first valid one is used.
        `relation`: the relation to `parent`, if there is one. `began`: the time if no message has one.
        """
        abandoned = self._abandoned()
        supersede(draft for draft in self.drafts if draft.origin in abandoned)
        parent, relation = (self.agent_of, "sub-agent") if self.agent_of else (parent, relation)
        fields = {"relation": relation if parent else None, **meta}
        return Session(
            session_id=self.session_id,
            messages=messages_of(self.drafts, moment(began)),
            title=title_of(self.drafts, *titles),
            project=project or project_of((self.folder, *self.folders, *folders)),
            parent=parent or None,
            meta={name: value for name, value in fields.items() if value},
            undone=tuple(self.undone),
        )


def without_empty(more: Mapping[str, Any]) -> dict[str, Any]:
    """Remove empty texts, empty lists and None."""
    return {name: value for name, value in more.items() if value not in ("", None, [])}


def supersede(drafts: Iterable[Draft]) -> None:
    """Mark messages that the user withdrew, or that others replaced."""
    for draft in drafts:
        draft.more["superseded"] = True


def title_of(drafts: Iterable[Draft], *titles: object) -> str | None:
    """Return the first candidate that is not blank, else the beginning of the user's first message."""
    title = next(filter(str.strip, map(string, titles)), "")
    words = next((draft.parts[0] for draft in drafts if draft.role is Role.USER and draft.parts), "")
    return preview_of(title, 320) or preview_of(words, 80) or None


def params_of(arguments: object) -> object:
    """Parse a call's parameters, which may be JSON in a string; other text becomes the parameter `input`."""
    return (object_in(arguments) or {"input": arguments}) if isinstance(arguments, str) else arguments
