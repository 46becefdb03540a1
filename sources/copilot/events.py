"""Parse the events of a Copilot conversation: of the command line, or the editor's transcripts. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.kit import drafts
from sources.kit.drafts import Conversation, Draft, params_of, supersede, usage_of
from sources.kit.loose_json import Record, first_text, items, mapping, string

_USAGE = {"outputTokens": "output_tokens"}
_USAGE_AT_END = {
    "inputTokens": "input_tokens",
    "cacheReadTokens": "cache_read_input_tokens",
    "cacheWriteTokens": "cache_creation_input_tokens",
    "reasoningTokens": "reasoning_tokens",
}
_IGNORED = frozenset(
    (
        *("session.resume", "session.info", "session.warning", "session.truncation", "session.compaction_start"),
        *("session.idle", "session.mode_changed", "session.plan_changed", "session.todos_changed"),
        *("session.workspace_file_changed", "session.handoff", "session.task_complete", "session.usage_info"),
        *("session.permissions_changed", "session.background_tasks_changed", "session.tools_updated"),
        *("session.skills_loaded", "session.custom_agents_updated", "session.mcp_servers_loaded"),
        *("session.binary_asset", "session.usage_record"),
        *("system.message", "system.notification", "assistant.turn_start", "assistant.turn_end", "assistant.intent"),
        *("assistant.usage", "assistant.message_delta", "assistant.reasoning_delta", "assistant.streaming_delta"),
        *("tool.user_requested", "tool.execution_progress", "tool.execution_partial_result", "skill.invoked"),
        *("hook.start", "hook.end", "permission.requested", "permission.completed", "pending_messages.modified"),
        *("user_input.requested", "user_input.completed", "elicitation.requested", "elicitation.completed"),
        *("subagent.completed", "subagent.selected", "subagent.deselected"),
    )
)


@dataclass(slots=True)
class Events(Conversation):
    """Builds a conversation and those of its sub-agents from the events in order.

    `described`: the facts in a note beside the file (`name`, `cwd`, `branch`).
    """

    described: dict[str, str] = field(default_factory=dict)
    _agents: dict[str, Conversation] = field(default_factory=dict)
    _agent_names: dict[str, str] = field(default_factory=dict)
    _standing: list[Draft] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)
    _facts: Record = field(default_factory=dict)
    _folders: dict[str, None] = field(default_factory=dict)
    _thought: str = ""
    _counted_to: int = 0
    _event: Record = field(default_factory=dict)

    def read(self, event: Record) -> None:
        """Add one event; an unknown one is counted in `unknown`."""
        kind, self._event = string(event.get("type")), event
        if event_id := string(event.get("id")):
            self._places[event_id] = len(self._standing)
        if handler := _EVENTS.get(kind):
            before = len(self.drafts)
            handler(self, mapping(event.get("data")))
            self._standing += self.drafts[before:]
        elif kind not in _IGNORED:
            self.unknown[f"event {kind or 'without type'}"] += 1

    def sessions(self) -> Iterator[Session]:
        """Yield the conversation as read so far, then those of its sub-agents."""
        self.session_id = string(self._facts.get("sessionId")) or self.session_id
        began = drafts.moment(self._facts.get("startTime"))
        main = self.build(
            {"name": self.described.get("name"), "title": self._facts.get("title")},
            folders=[*self._folders, self.described.get("cwd", "")],
            began=began,
            branch=self.described.get("branch") or string(mapping(self._facts.get("context")).get("branch")),
            version=string(self._facts.get("copilotVersion")),
        )
        yield main
        for call_id, agent in self._agents.items():
            known = {"relation": "sub-agent", "tool_use_id": call_id, "agent_type": self._agent_names.get(call_id)}
            meta = {name: value for name, value in known.items() if value}
            messages = drafts.messages_of(agent.drafts, began)
            session_id = f"{self.session_id}:{call_id}"
            yield Session(session_id, messages, self._task(call_id), main.project, self.session_id, meta)

    def _task(self, call_id: str) -> str | None:
        """Return the task of a sub-agent in its caller's words."""
        call = self.calls.get(call_id)
        params = mapping(call.more["tool"]["params"]) if call else {}
        words = (string(params.get("description")), string(params.get("prompt")), self._agent_names.get(call_id, ""))
        return next((preview_of(text, 80) for text in words if text.strip()), None)

    def _start(self, data: Record) -> None:
        self._facts = data | self._facts
        self.model = string(data.get("selectedModel")) or self.model
        self._move(mapping(data.get("context")))

    def _move(self, context: Record) -> None:
        self._folders[string(context.get("cwd"))] = None
        self.folder = next(iter(self._folders))

    def _change_model(self, data: Record) -> None:
        self.model = string(data.get("newModel")) or self.model

    def _name(self, data: Record) -> None:
        self._facts["title"] = string(data.get("title")) or self._facts.get("title")

    def _rewind(self, data: Record) -> None:
        """Mark the messages of the named event and of all after it as superseded."""
        place = self._places.get(string(data.get("upToEventId")), len(self._standing))
        supersede(self._standing[place:])
        del self._standing[place:]

    def _compact(self, data: Record) -> None:
        summary = string(data.get("summaryContent")) or "Conversation compacted"
        self._say(data, Role.SYSTEM, summary, injected=True, compaction={})

    def _end(self, data: Record) -> None:
        """Note the tokens that are told only when the client ends with the last answer of each model."""
        since, self._counted_to = self.drafts[self._counted_to :], len(self.drafts)
        for model, metrics in mapping(data.get("modelMetrics")).items():
            counts = usage_of(mapping(metrics).get("usage"), _USAGE_AT_END, cache_in_input=True)
            answers = [each for each in since if each.more.get("model") == model and "usage" in each.more]
            for draft in answers[-1:]:
                draft.more["usage"] |= counts

    def _abort(self, data: Record) -> None:
        reason = string(data.get("reason")) or "no reason given"
        self._say(data, Role.SYSTEM, f"[Turn aborted: {reason}]", injected=True)

    def _add_question(self, data: Record) -> None:
        """Add the text that was typed; a message with another source is the client's own."""
        text = string(data.get("content")).strip()
        if string(data.get("source")) not in ("", "user"):
            self._say(data, Role.SYSTEM, text, injected=True)
        else:
            names = list(dict.fromkeys(filter(None, map(_attachment, items(data.get("attachments"))))))
            self._say(data, Role.USER, text, attachments=names)

    def _think(self, data: Record, text: str) -> None:
        """Add a thought; some versions write it twice: as an event, and with the answer."""
        if text != self._thought:
            self._say(data, Role.THINKING, text.strip(), ":thinking", model=self._model_of(data))
        self._thought = text or self._thought

    def _add_answer(self, data: Record) -> None:
        self._think(data, string(data.get("reasoningText")))
        text, model, thread = string(data.get("content")).strip(), self._model_of(data), self._thread(data)
        before = len(thread.drafts)
        self._say(data, Role.ASSISTANT, text, model=model)
        for request in map(mapping, items(data.get("toolRequests"))):
            self._call(string(request.get("toolCallId")), request.get("name"), request.get("arguments"), data)
        thread.describe(before, model, usage_of(data, _USAGE))

    def _add_call(self, data: Record) -> None:
        self._call(string(data.get("toolCallId")), data.get("toolName"), data.get("arguments"), data)

    def _add_result(self, data: Record) -> None:
        """Add the result of a call, or of one that is not in the file."""
        draft = self._call(string(data.get("toolCallId")), data.get("toolName"), {}, data)
        error = data.get("error")
        result = drafts.content_text(mapping(data.get("result")).get("content", data.get("result")))
        result = result or string(error) or string(mapping(error).get("message"))
        status = drafts.COMPLETED
        if data.get("success") is False or error:
            is_refused = string(mapping(error).get("code")) in ("rejected", "denied")
            status = drafts.REJECTED if is_refused else drafts.FAILED
        draft.answer(result, status)

    def _call(self, call_id: str, name: object, arguments: object, data: Record) -> Draft:
        """Return a call, which is written when it is asked for, and again when it runs."""
        if call_id and call_id in self.calls:
            return self.calls[call_id]
        params, thread = params_of(arguments) or {}, self._thread(data)
        draft = thread.call(call_id, string(name), params, self._at(), folder=self.folder, model=self._model_of(data))
        self.calls[call_id] = draft
        return draft

    def _start_agent(self, data: Record) -> None:
        self._agent_names[string(data.get("toolCallId"))] = string(data.get("agentName"))

    def _fail_agent(self, data: Record) -> None:
        self._say({"parentToolCallId": data.get("toolCallId")}, Role.ERROR, string(data.get("error")))

    def _say(self, data: Record, role: Role, text: str, suffix: str = "", **more: Any) -> None:
        native_id = string(self._event.get("id"))
        self._thread(data).say(role, text, self._at(), native_id and native_id + suffix, **more)

    def _thread(self, data: Record) -> Conversation:
        agent = string(data.get("parentToolCallId"))
        return self._agents.setdefault(agent, Conversation()) if agent else self

    def _at(self) -> datetime | None:
        return drafts.moment(self._event.get("timestamp"))

    def _model_of(self, data: Record) -> str:
        return string(data.get("model")) or self.model


def _attachment(given: object) -> str:
    return first_text(given, "displayName", "path", "filePath", "name", "type")


_EVENTS: dict[str, Callable[[Events, Record], object]] = {
    "session.start": Events._start,
    "session.context_changed": Events._move,
    "session.model_change": Events._change_model,
    "session.title_changed": Events._name,
    "session.snapshot_rewind": Events._rewind,
    "session.compaction_complete": Events._compact,
    "session.shutdown": Events._end,
    "session.error": lambda self, data: self._say(data, Role.ERROR, string(data.get("message")) or "error"),
    "abort": Events._abort,
    "user.message": Events._add_question,
    "assistant.message": Events._add_answer,
    "assistant.reasoning": lambda self, data: self._think(data, string(data.get("content"))),
    "tool.execution_start": Events._add_call,
    "tool.execution_complete": Events._add_result,
    "subagent.started": Events._start_agent,
    "subagent.failed": Events._fail_agent,
}
