"""What the events of a Copilot conversation say: of the command line, or the editor's transcripts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.base import Skipped
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, object_in, string

TITLE_WIDTH = 80
_IGNORED = frozenset(
    (
        *("session.resume", "session.info", "session.warning", "session.truncation", "session.compaction_start"),
        *("session.shutdown", "session.idle", "session.mode_changed", "session.plan_changed", "session.todos_changed"),
        *("session.workspace_file_changed", "session.handoff", "session.task_complete", "session.usage_info"),
        *("session.permissions_changed", "session.background_tasks_changed", "session.tools_updated"),
        *(
            "session.skills_loaded",
            "session.custom_agents_updated",
            "session.mcp_servers_loaded",
            "session.binary_asset",
            "session.usage_record",
        ),
        *("system.message", "system.notification", "assistant.turn_start", "assistant.turn_end", "assistant.intent"),
        *("assistant.usage", "assistant.message_delta", "assistant.reasoning_delta", "assistant.streaming_delta"),
        *("tool.user_requested", "tool.execution_progress", "tool.execution_partial_result", "skill.invoked"),
        *("hook.start", "hook.end", "permission.requested", "permission.completed", "pending_messages.modified"),
        *("user_input.requested", "user_input.completed", "elicitation.requested", "elicitation.completed"),
        *("subagent.completed", "subagent.selected", "subagent.deselected"),
    )
)
_REFUSED = ("rejected", "denied")


@dataclass(slots=True)
class Thread:
    """The turns of the conversation itself, or of one of its sub-agents."""

    drafts: list[Draft] = field(default_factory=list)
    standing: list[Draft] = field(default_factory=list)

    def put(self, draft: Draft) -> Draft:
        """One more message."""
        self.drafts.append(draft)
        self.standing.append(draft)
        return draft


@dataclass(slots=True)
class Events:
    """One conversation in the making: hand it the events in order, then ask for its sessions.

    `described`: what a note beside the file says (`name`, `cwd`, `branch`).
    """

    session_id: str
    described: dict[str, str] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)
    _main: Thread = field(default_factory=Thread)
    _agents: dict[str, Thread] = field(default_factory=dict)
    _agent_names: dict[str, str] = field(default_factory=dict)
    _calls: dict[str, Draft] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    _facts: Record = field(default_factory=dict)
    _folders: dict[str, None] = field(default_factory=dict)
    _thought: str = ""
    _model: str = ""
    _event: Record = field(default_factory=dict)

    def read(self, event: Record) -> None:
        """Take in one event; what is not understood is counted in `unknown`."""
        kind, self._event = string(event.get("type")), event
        handler = _EVENTS.get(kind)
        if event_id := string(event.get("id")):
            self._places[event_id] = len(self._main.standing)
        if handler:
            handler(self, mapping(event.get("data")))
        elif kind not in _IGNORED:
            self.unknown[f"event {kind or 'without type'}"] += 1

    def sessions(self) -> Iterator[Session]:
        """The conversation as read so far, then those of its sub-agents."""
        session_id = string(self._facts.get("sessionId")) or self.session_id
        project = drafts.project_of([*self._folders, self.described.get("cwd", "")])
        title_from, title = self._title()
        branch = self.described.get("branch") or mapping(self._facts.get("context")).get("branch")
        meta: Record = {"title_from": title_from, "branch": branch, "version": self._facts.get("copilotVersion")}
        known = {key: value for key, value in meta.items() if value and isinstance(value, str)}
        began = drafts.moment(self._facts.get("startTime"))
        yield Session(session_id, drafts.messages_of(self._main.drafts, began), title, project, None, known)
        for call_id, thread in self._agents.items():
            known = {"relation": "sub-agent", "tool_use_id": call_id}
            if name := self._agent_names.get(call_id):
                known["agent_type"] = name
            messages = drafts.messages_of(thread.drafts, began)
            yield Session(f"{session_id}:{call_id}", messages, self._task(call_id), project, session_id, known)

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    def _title(self) -> tuple[str, str] | tuple[None, None]:
        for origin, title in (("name", self.described.get("name")), ("title", self._facts.get("title"))):
            if given := string(title).strip():
                return origin, preview_of(given, 4 * TITLE_WIDTH)
        words = next((draft.parts[0] for draft in self._main.drafts if draft.role is Role.USER and draft.parts), "")
        return ("first words", preview_of(words, TITLE_WIDTH)) if words else (None, None)

    def _task(self, call_id: str) -> str | None:
        """What a sub-agent was called for, as its caller put it."""
        call = self._calls.get(call_id)
        params = mapping(call.more["tool"]["params"]) if call else {}
        words = (string(params.get("description")), string(params.get("prompt")), self._agent_names.get(call_id, ""))
        return next((preview_of(text, TITLE_WIDTH) for text in words if text.strip()), None)

    # The session

    def _started(self, data: Record) -> None:
        self._facts = data | self._facts
        self._model = string(data.get("selectedModel")) or self._model
        self._moved(mapping(data.get("context")))

    def _moved(self, context: Record) -> None:
        self._folders[string(context.get("cwd"))] = None

    def _model_changed(self, data: Record) -> None:
        self._model = string(data.get("newModel")) or self._model

    def _titled(self, data: Record) -> None:
        self._facts["title"] = string(data.get("title")) or self._facts.get("title")

    def _rewound(self, data: Record) -> None:
        """The event that is named and all after it do not stand any more."""
        standing = self._main.standing
        place = self._places.get(string(data.get("upToEventId")), len(standing))
        while len(standing) > place:
            standing.pop().more["superseded"] = True

    def _failed(self, data: Record) -> None:
        self._put(data, Role.ERROR, string(data.get("message")) or "error")

    def _compacted(self, data: Record) -> None:
        summary = string(data.get("summaryContent")) or "Conversation compacted"
        self._put(data, Role.SYSTEM, summary, injected=True, compaction={})

    def _aborted(self, data: Record) -> None:
        reason = string(data.get("reason")) or "no reason given"
        self._put(data, Role.SYSTEM, f"[Turn aborted: {reason}]", injected=True)

    # What was said

    def _asked(self, data: Record) -> None:
        """`content` is what was typed; a message with another source is the client's own."""
        text, origin = string(data.get("content")).strip(), string(data.get("source"))
        if origin not in ("", "user"):
            self._put(data, Role.SYSTEM, text, injected=True)
            return
        names = list(dict.fromkeys(filter(None, map(_attachment, items(data.get("attachments"))))))
        if text or names:
            more: Record = {"attachments": names} if names else {}
            self._put(data, Role.USER, text, **more)

    def _reasoned(self, data: Record) -> None:
        self._think(data, string(data.get("content")))

    def _think(self, data: Record, text: str) -> None:
        """Some versions tell a thought twice: as an event, and with the answer."""
        if text.strip() and text != self._thought:
            self._put(data, Role.THINKING, text.strip(), apart=":thinking", **self._model_of(data))
        self._thought = text or self._thought

    def _answered(self, data: Record) -> None:
        self._think(data, string(data.get("reasoningText")))
        if said := string(data.get("content")).strip():
            tokens = data.get("outputTokens")
            usage: Record = {"usage": {"output_tokens": tokens}} if isinstance(tokens, int) else {}
            self._put(data, Role.ASSISTANT, said, **self._model_of(data), **usage)
        for request in map(mapping, items(data.get("toolRequests"))):
            self._call(string(request.get("toolCallId")), request.get("name"), request.get("arguments"), data)

    # Tools

    def _called(self, data: Record) -> None:
        self._call(string(data.get("toolCallId")), data.get("toolName"), data.get("arguments"), data)

    def _returned(self, data: Record) -> None:
        """The result of a call; one whose call is not in the file is kept all the same."""
        draft = self._call(string(data.get("toolCallId")), data.get("toolName"), {}, data)
        error = data.get("error")
        told = string(error) or string(mapping(error).get("message"))
        result = drafts.readable(mapping(data.get("result")).get("content", data.get("result")))
        drafts.answer(draft, result or told, _status(data, error))

    def _call(self, call_id: str, name: object, arguments: object, data: Record) -> Draft:
        """A call is told when it is asked for, and again when it runs."""
        if call_id in self._calls:
            return self._calls[call_id]
        params = (object_in(arguments) or {"input": arguments}) if isinstance(arguments, str) else arguments
        folder = next(iter(self._folders), "")
        draft = drafts.tool_draft(call_id, string(name) or "tool", params or {}, self._at(), folder=folder)
        draft.more |= self._model_of(data)
        self._calls[call_id or f"without id {len(self._calls)}"] = draft
        return self._thread(data).put(draft)

    def _agent_started(self, data: Record) -> None:
        self._agent_names[string(data.get("toolCallId"))] = string(data.get("agentName"))

    def _agent_failed(self, data: Record) -> None:
        self._put({"parentToolCallId": data.get("toolCallId")}, Role.ERROR, string(data.get("error")))

    # Drafts

    def _put(self, data: Record, role: Role, text: str, *, apart: str = "", **more: Any) -> Draft:
        native_id = string(self._event.get("id"))
        named = {"native_id": native_id + apart} if native_id else {}
        return self._thread(data).put(Draft(role, [text] if text else [], self._at(), {**named, **more}))

    def _thread(self, data: Record) -> Thread:
        agent = string(data.get("parentToolCallId"))
        return self._agents.setdefault(agent, Thread()) if agent else self._main

    def _at(self) -> datetime | None:
        return drafts.moment(self._event.get("timestamp"))

    def _model_of(self, data: Record) -> dict[str, str]:
        model = string(data.get("model")) or self._model
        return {"model": model} if model else {}


def _attachment(given: object) -> str:
    told = mapping(given)
    names = (string(told.get(key)) for key in ("displayName", "path", "filePath", "name", "type"))
    return next(filter(None, names), "")


def _status(data: Record, error: object) -> str:
    if data.get("success") is not False and not error:
        return drafts.COMPLETED
    return drafts.REJECTED if string(mapping(error).get("code")) in _REFUSED else drafts.FAILED


_EVENTS: dict[str, Callable[[Events, Record], object]] = {
    "session.start": Events._started,
    "session.context_changed": Events._moved,
    "session.model_change": Events._model_changed,
    "session.title_changed": Events._titled,
    "session.snapshot_rewind": Events._rewound,
    "session.compaction_complete": Events._compacted,
    "session.error": Events._failed,
    "abort": Events._aborted,
    "user.message": Events._asked,
    "assistant.message": Events._answered,
    "assistant.reasoning": Events._reasoned,
    "tool.execution_start": Events._called,
    "tool.execution_complete": Events._returned,
    "subagent.started": Events._agent_started,
    "subagent.failed": Events._agent_failed,
}
