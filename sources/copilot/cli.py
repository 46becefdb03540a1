"""Read the sessions of Copilot CLI: event logs in the three locations of its versions."""

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from registry.domain import Role, Session, preview_of
from sources.base import FoundSession, Skipped
from sources.clients import COPILOT_CLI
from sources.kit import drafts
from sources.kit.contents import content_text
from sources.kit.files import File, fingerprint_at, read_small_text
from sources.kit.loose_json import Record, first_text, items, mapping, objects, read_json, string, text_at, value_at
from sources.kit.reader import FileReader, SessionFile, parse_records
from sources.kit.token_counts import usage_of

_NOTE = "workspace.yaml"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOTED = re.compile(r"^(name|cwd):[ \t]*(\S.*)?$", re.MULTILINE)


class CopilotCli(FileReader):
    """Reads `session-state/` and `history-session-state/`. Never open their siblings: they have secrets."""

    client = COPILOT_CLI
    patterns = tuple(
        f"{folder}/{form}"
        for folder in ("session-state", "history-session-state")
        for form in ("*/events.jsonl", "*.jsonl", "*.json")
    )
    backup_extras = ("session-state/*/workspace.yaml",)

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the sessions; skip a document whose session the client has converted to a log."""
        found = list(FileReader.files(self, store))
        logs = {file.session_id for file in found if isinstance(file, SessionFile) and file.path.endswith(".jsonl")}
        for file in found:
            if isinstance(file, Skipped) or file.path.endswith(".jsonl") or file.session_id not in logs:
                yield file

    def session_file(self, file: File) -> SessionFile:
        """Return the log; `workspace.yaml` is part of the fingerprint, because it has the name of the session."""
        folder, name = os.path.split(file.path)
        if name != "events.jsonl":
            stem = Path(name).stem  # a document's contains a time, too
            return SessionFile(file, file.path, next(iter(_UUID.findall(stem)), stem))
        note_status = "+" + fingerprint_at(os.path.join(folder, _NOTE))
        return SessionFile(file, file.path, os.path.basename(folder), folder=folder, note_status=note_status)

    def parse(self, file: SessionFile) -> Iterator[FoundSession]:
        note = read_small_text(os.path.join(file.folder, _NOTE)) if file.folder else ""
        reading = EventLog(file.session_id, described=parse_note(note))
        is_document = file.path.endswith(".json")
        return parse_records(file, reading, events_of) if is_document else parse_records(file, reading)


def parse_note(text: str) -> dict[str, str]:
    """Return the name and folder in a `workspace.yaml`, which has one value per line. Pure."""
    return {key: _unquoted(value.strip()) for key, value in _NOTED.findall(text) if value.strip() not in ("", "null")}


def _unquoted(value: str) -> str:
    if value.startswith('"'):
        return string(read_json(value)) or value.strip('"')
    return value[1:-1].replace("''", "'") if value.startswith("'") and value.endswith("'") else value


# Events, also those of the editor's transcripts. Pure.

# prefixes of kinds of events that do not belong to the conversation; those of a compaction begin with `model.`
_BOOKKEEPING = (
    *("session.", "system.", "assistant.turn_", "assistant.intent", "assistant.usage", "assistant.message_delta"),
    *("assistant.reasoning_delta", "assistant.streaming_delta", "tool.user_requested", "tool.execution_p", "skill."),
    *("hook.", "permission.", "pending_messages.", "user_input.", "elicitation.", "subagent.", "model."),
)


@dataclass(slots=True)
class EventLog(drafts.Conversation):
    """Builds a conversation and the conversations of its sub-agents from the events in order.

    `described`: the fields of `workspace.yaml` (`name`, `cwd`).
    """

    described: dict[str, str] = field(default_factory=dict)
    _agents: dict[str, drafts.Conversation] = field(default_factory=dict)
    _agent_names: defaultdict[str, str] = field(default_factory=lambda: defaultdict(str))
    _agent_calls: dict[str, str] = field(default_factory=dict)  # the call that started a sub-agent, by its id
    _current: list[drafts.Draft] = field(default_factory=list)
    _positions: dict[str, int] = field(default_factory=dict)
    _facts: Record = field(default_factory=dict)
    _model: str = ""  # of the session; an event may name another one
    _thought: str = ""
    _counted_to: int = 0
    _usage: Record = field(default_factory=dict)  # of the latest request to the model
    _latest: datetime | None = None  # time of the latest event, without those of hooks

    def read(self, event: Record) -> None:
        kind, data, event_id = string(event.get("type")), mapping(event.get("data")), string(event.get("id"))
        if event_id:
            self._positions[event_id] = len(self._current)
        call_id, agent_id = string(data.get("toolCallId")), string(event.get("agentId"))
        if kind == "subagent.started" and agent_id:
            self._agent_calls[agent_id] = call_id
        parent_call = string(data.get("parentToolCallId")) or self._agent_calls.get(agent_id, "")
        agent = call_id if kind == "subagent.failed" else parent_call
        before, thread = len(self.drafts), self._agents.setdefault(agent, drafts.Conversation()) if agent else self
        self.begin(event_id, event.get("timestamp"))
        self.model = string(data.get("model")) or self._model
        thread.record_id, thread.at, thread.model = self.record_id, self.at, self.model
        self._add(kind, data, thread)
        if not kind.startswith("hook."):  # a prompt's hooks come before it, and a rewind leaves them
            self._latest = self.at or self._latest
        self._current += self.drafts[before:]

    def _add(self, kind: str, data: Record, thread: drafts.Conversation) -> None:
        if kind == "session.start":
            self._facts = data | self._facts
            self._model = string(data.get("selectedModel")) or self._model
            self.add_folder(value_at(data, "context", "cwd"))
        elif kind == "session.context_changed":
            self.add_folder(data.get("cwd"))
        elif kind == "session.model_change":
            if thread is self:
                self._model = string(data.get("newModel")) or self._model
        elif kind == "session.title_changed":
            self._facts["title"] = string(data.get("title")) or self._facts.get("title")
        elif kind == "session.snapshot_rewind":  # the named event and all later ones were undone
            position = self._positions.get(string(data.get("upToEventId")), len(self._current))
            drafts.supersede(self._current[position:])
            del self._current[position:]
            self._add_undone()
        elif kind == "session.info":
            if data.get("infoType") == "rewind":
                self._add_undone()
        elif kind == "session.compaction_complete":
            self.inject(string(data.get("summaryContent")) or "Conversation compacted", compaction={})
        elif kind == "session.usage_record":
            self._usage = mapping(data.get("usage"))
        elif kind == "session.shutdown":
            self._read_shutdown(data)
        elif kind == "session.error":
            self.say(Role.ERROR, string(data.get("message")) or "error")
        elif kind == "abort":
            self.inject(f"[Turn aborted: {string(data.get('reason')) or 'no reason given'}]")
        elif kind == "user.message":
            self._add_question(data, thread)
        elif kind == "assistant.reasoning":
            self._think(string(data.get("content")), thread)
        elif kind == "assistant.message":
            self._add_answer(data, thread)
        elif kind == "tool.execution_start":
            self._call(thread, data.get("toolCallId"), data.get("toolName"), data.get("arguments"))
        elif kind == "tool.execution_complete":
            self._add_result(data, thread)
        elif kind == "subagent.started":
            self._agent_names[string(data.get("toolCallId"))] = string(data.get("agentName"))
        elif kind == "subagent.failed":
            thread.say(Role.ERROR, string(data.get("error")))
        elif not kind.startswith(_BOOKKEEPING):
            self.count_unknown("event", kind)

    def sessions(self) -> Iterator[Session]:
        self.session_id = string(self._facts.get("sessionId")) or self.session_id
        began = self._facts.get("startTime")
        main = self.build(
            self.described.get("name"), self._facts.get("title"), folders=[self.described.get("cwd", "")], began=began
        )
        yield main
        for call_id, agent in self._agents.items():
            if not agent.drafts:
                continue
            call = self.calls.get(call_id)
            task = first_text(call.more["tool"]["params"], "description", "prompt") if call else ""
            titles = preview_of(task, 80), self._agent_names[call_id]
            agent.session_id = f"{self.session_id}:{call_id}"
            yield agent.build(*titles, project=main.project, parent=self.session_id, began=began)

    def _add_undone(self) -> None:
        """Note a rewind: most versions delete the undone events, and only write this one."""
        if self._latest and self.at:
            self.undone.append((self._latest, self.at))

    def _read_shutdown(self, data: Record) -> None:
        """Store the token counts of each model, which come with the client's shutdown, with its last answer."""
        since, self._counted_to = self.drafts[self._counted_to :], len(self.drafts)
        for model, metrics in mapping(data.get("modelMetrics")).items():
            answers = [each for each in since if each.more.get("model") == model and "usage" in each.more]
            for draft in answers[-1:]:  # output tokens were counted with each answer
                draft.more["usage"] = usage_of(value_at(metrics, "usage"), cache_in_input=True) | draft.more["usage"]

    def _add_question(self, data: Record, thread: drafts.Conversation) -> None:
        """Add a message of the user, or to a sub-agent its task; an injected one if it is from another source."""
        text, source = string(data.get("content")), string(data.get("source"))
        is_task = thread is not self and source.startswith("agent-")
        if source not in ("", "user") and not is_task:
            thread.inject(text)
        else:
            keys = ("displayName", "path", "filePath", "name", "type")
            names = (first_text(given, *keys) for given in items(data.get("attachments")))
            thread.say(Role.USER, text, attachments=list(dict.fromkeys(filter(None, names))))

    def _think(self, text: str, thread: drafts.Conversation) -> None:
        """Add a thought, unless it repeats the last one: some versions write it as an event, and with the answer."""
        if text != self._thought:
            thread.say(Role.THINKING, text, ":thinking")
        self._thought = text or self._thought

    def _add_answer(self, data: Record, thread: drafts.Conversation) -> None:
        self._think(string(data.get("reasoningText")), thread)
        before = len(thread.drafts)
        thread.say(Role.ASSISTANT, string(data.get("content")))
        for request in objects(data.get("toolRequests")):
            self._call(thread, request.get("toolCallId"), request.get("name"), request.get("arguments"))
        api_call = data.get("apiCallId")
        is_recorded = bool(api_call) and api_call == self._usage.get("apiCallId")
        thread.count_tokens(before, self._usage if is_recorded else data, cache_in_input=is_recorded)

    def _add_result(self, data: Record, thread: drafts.Conversation) -> None:
        """Set the result of a call; add the call if it is not in the file."""
        draft = self._call(thread, data.get("toolCallId"), data.get("toolName"), {})
        error = data.get("error")
        result = content_text(mapping(data.get("result")).get("content", data.get("result")))
        exit_code = value_at(data, "shellExecution", "exitCode")
        status = drafts.result_status(data.get("success") is False or error or exit_code)
        if value_at(error, "code") in ("rejected", "denied"):
            status = drafts.REJECTED
        draft.set_result(result or string(error) or text_at(error, "message"), status)

    def _call(self, thread: drafts.Conversation, call_id: object, name: object, arguments: object) -> drafts.Draft:
        """Return a call, added if new: it is written when it is requested, and again when it runs."""
        key = string(call_id)
        if not key or key not in self.calls:
            self.calls[key] = thread.call(key, name, drafts.params_of(arguments) or {}, folder=self.folder)
        return self.calls[key]


def events_of(history: Record) -> Iterator[Record]:
    """Convert the JSON document of the first versions, which has the API's messages, to events without times."""
    yield {"type": "session.start", "data": {key: history.get(key) for key in ("sessionId", "startTime")}}
    for position, message in enumerate(objects(history.get("chatMessages"))):
        kind, data = _event_of(message)
        yield {"type": kind, "id": f"#{position}", "data": data}


def _event_of(message: Record) -> tuple[str, Record]:
    role, content = message.get("role"), message.get("content")
    if role == "user":
        return "user.message", {"content": content_text(content)}
    if role == "assistant":
        calls = [(mapping(call), mapping(value_at(call, "function"))) for call in items(message.get("tool_calls"))]
        requests = [{"toolCallId": call.get("id"), **function} for call, function in calls]
        return "assistant.message", {"content": content_text(content), "toolRequests": requests}
    if role == "tool":
        result = {"toolCallId": message.get("tool_call_id"), "success": True, "result": {"content": content}}
        return "tool.execution_complete", result
    return "system.message", message
