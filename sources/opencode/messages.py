"""Parse the messages of an OpenCode session, whichever way they are kept. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from registry.domain import Role, Session
from sources.kit import drafts
from sources.kit.drafts import Conversation, Draft, usage_of
from sources.kit.loose_json import Record, items, mapping, number, string, value_at

_DEFAULT_TITLE = re.compile(r"(?:New|Child) session - \d{4}-")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*\s(?:[^"\\]|\\.)*)"', re.DOTALL)
_IGNORED = ("patch", "snapshot", "step-start", "step-finish", "agent")
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "reasoning": "reasoning_tokens",
    "read": "cache_read_input_tokens",  # this one and the next are in `cache`
    "write": "cache_creation_input_tokens",
}


@dataclass(slots=True)
class OpenCodeDialogue(Conversation):
    """Builds a session from its messages in order, each with its parts.

    `described`: the session's own record, by the names that its JSON form has. The parts that the user typed make one
    message, those of an answer one each.
    """

    described: Record = field(default_factory=dict)
    _message: Record = field(default_factory=dict)
    _typed: Draft | None = None
    _latest: datetime | None = None
    _is_reverted: bool = False

    def __post_init__(self) -> None:
        self.session_id = string(self.described.get("id"))
        self.folder = string(self.described.get("directory"))

    def read(self, message: Record, parts: Iterable[Record]) -> None:
        """Add one message; unknown messages and parts are counted in `unknown`."""
        role = string(message.get("role"))
        handlers = _ROLES.get(role)
        if handlers is None:
            self.unknown[f"message {role or 'without role'}"] += 1
            return
        self._message, self._typed, self._latest, before = message, None, None, len(self.drafts)
        revert = mapping(self.described.get("revert"))
        self._is_reverted |= _is_point(revert, "messageID", message) and not string(revert.get("partID"))
        for part in parts:
            self._is_reverted |= _is_point(revert, "partID", part)
            kind, added = string(part.get("type")), len(self.drafts)
            if handler := handlers.get(kind):
                handler(self, part)
            elif kind not in _IGNORED:
                self.unknown[f"part {kind or 'without type'}"] += 1
            self._put_in_order(added)
        added = len(self.drafts)
        self._add_error()
        self._put_in_order(added)
        if role == "assistant":
            self._describe_answer(before)

    def session(self) -> Session:
        """Return the conversation as read so far; reverted messages are marked."""
        title, parent = string(self.described.get("title")).strip(), string(self.described.get("parentID"))
        return self.build(
            {} if _DEFAULT_TITLE.match(title) else {"title": title},
            folders=[self.folder],
            parent=parent,
            began=drafts.moment(value_at(self.described, "time", "created")),
            relation="sub-agent" if parent else None,
            version=string(self.described.get("version")),
            archived=bool(drafts.moment(value_at(self.described, "time", "archived"))),
        )

    def _put_in_order(self, since: int) -> None:
        """Move the times of parts forward that contradict their order, and mark reverted ones."""
        for draft in self.drafts[since:]:
            latest = self._latest or self._time("created")
            if latest and (draft.at is None or draft.at < latest):
                draft.at = latest
                draft.more["time"] = "inferred"
            self._latest = draft.at
            if self._is_reverted:
                draft.more["superseded"] = True

    def _add_error(self) -> None:
        error, message_id = mapping(self._message.get("error")), string(self._message.get("id"))
        if not error:
            return
        text = string(value_at(error, "data", "message")) or string(error.get("message")) or string(error.get("name"))
        at = self._time("completed") or self._time("created")
        if error.get("name") == "MessageAbortedError":
            self.say(Role.SYSTEM, f"[Turn aborted: {text}]", at, f"{message_id}:error", injected=True)
        else:
            self.say(Role.ERROR, text or "error", at, f"{message_id}:error")

    def _describe_answer(self, since: int) -> None:
        tokens = mapping(self._message.get("tokens"))
        usage = usage_of({**tokens, **mapping(tokens.get("cache"))}, _USAGE, reasoning_beside_output=True)
        self.describe(since, string(self._message.get("modelID")), usage)
        for draft in self.drafts[since:] if self._message.get("summary") is True else ():
            if draft.role is Role.ASSISTANT:
                draft.role = Role.SYSTEM
                draft.more |= {"injected": True, "compaction": {}}

    def _time(self, name: str) -> datetime | None:
        return drafts.moment(value_at(self._message, "time", name))

    # The parts of a message

    def _add_typed(self, part: Record) -> None:
        text = string(part.get("text")).strip()
        if part.get("synthetic") or part.get("ignored"):
            self._say(part, Role.SYSTEM, text, injected=True)
        elif text:
            quoted = _QUOTED.fullmatch(text)  # `opencode run` keeps words with spaces in quotes
            self._prompt().parts.append(quoted[1].replace('\\"', '"') if quoted else text)

    def _add_attachment(self, part: Record) -> None:
        self._prompt().attach(_file_name(part))

    def _add_command(self, part: Record) -> None:
        """Add a command that starts a sub-agent: only the prompt that it expands to is kept."""
        command, description = string(part.get("command")), string(part.get("description"))
        self._prompt().parts.append(f"/{command}" if command else description or f"@{string(part.get('agent'))}")
        self._say(part, Role.SYSTEM, string(part.get("prompt")).strip(), injected=True)

    def _add_text(self, part: Record) -> None:
        is_injected = part.get("synthetic") or part.get("ignored")
        more = {"injected": True} if is_injected else {}
        self._say(part, Role.SYSTEM if is_injected else Role.ASSISTANT, string(part.get("text")).strip(), **more)

    def _add_call(self, part: Record) -> None:
        state, name = mapping(part.get("state")), string(part.get("tool")) or "tool"
        at = drafts.moment(value_at(state, "time", "start")) or _time_of(part)
        draft = self.call(string(part.get("id")), name, state.get("input", {}), at)
        status, result = _outcome(name, state)
        draft.answer(result, status)
        if agent := string(value_at(state, "metadata", "sessionId")):
            draft.more["tool"]["agent"] = agent
        for attachment in map(mapping, items(state.get("attachments"))):
            draft.attach(_file_name(attachment))

    def _add_retry(self, part: Record) -> None:
        error = mapping(part.get("error"))
        text = string(error.get("message")) or string(value_at(error, "data", "message")) or "error"
        self._say(part, Role.ERROR, text)

    def _prompt(self) -> Draft:
        """Return the message that holds all that the user typed."""
        if self._typed is None:
            self._typed = self.say(Role.USER, "", self._time("created"), string(self._message.get("id")))
            self.drafts.append(self._typed)
        return self._typed

    def _say(self, part: Record, role: Role, text: str, **more: Any) -> None:
        self.say(role, text, _time_of(part), string(part.get("id")), **more)


def _is_point(revert: Record, key: str, given: Record) -> bool:
    point = string(revert.get(key))
    return bool(point) and given.get("id") == point


def _time_of(part: Record) -> datetime | None:
    return drafts.moment(value_at(part, "time", "start") or value_at(part, "time", "created"))


def _outcome(name: str, state: Record) -> tuple[str, str]:
    """Return status and result; a command that failed is completed for the client."""
    status = string(state.get("status"))
    if status == "error":
        error = drafts.content_text(state.get("error"))
        is_rejected = error.startswith(("The user rejected permission", "The user dismissed"))
        return drafts.REJECTED if is_rejected else drafts.FAILED, error
    if status != "completed":
        return drafts.PENDING, ""
    has_failed = name == "invalid" or bool(number(value_at(state, "metadata", "exit")))
    return drafts.FAILED if has_failed else drafts.COMPLETED, drafts.content_text(state.get("output"))


def _file_name(part: Record) -> str:
    """Return the name of a file, never its contents, which may be in its address."""
    url = string(part.get("url"))
    address = "" if url.startswith("data:") else url
    return string(part.get("filename")) or address or string(part.get("mime")) or "file"


_Handlers = dict[str, Callable[[OpenCodeDialogue, Record], None]]
_COMMON: _Handlers = {
    "compaction": lambda self, part: self._say(
        part, Role.SYSTEM, "Conversation compacted", injected=True, compaction={}
    ),
    "retry": OpenCodeDialogue._add_retry,
    "subtask": OpenCodeDialogue._add_command,
}
_ROLES: dict[str, _Handlers] = {
    "user": {"text": OpenCodeDialogue._add_typed, "file": OpenCodeDialogue._add_attachment, **_COMMON},
    "assistant": {
        "text": OpenCodeDialogue._add_text,
        "reasoning": lambda self, part: self._say(part, Role.THINKING, string(part.get("text")).strip()),
        "tool": OpenCodeDialogue._add_call,
        "file": lambda self, part: self._say(part, Role.ASSISTANT, "", attachments=[_file_name(part)]),
        **_COMMON,
    },
}
