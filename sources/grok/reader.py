"""Read the sessions of Grok CLI from its stream of updates."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from registry.domain import Role, Session
from sources.base import FoundSession
from sources.clients import GROK_CLI
from sources.kit import drafts
from sources.kit.files import File, fingerprint_at, read_small_text
from sources.kit.loose_json import Record, items, mapping, read_json, string, text_at, value_at
from sources.kit.reader import FileReader, SessionFile, parse_records

_CHUNK_ROLES = {"agent_message_chunk": Role.ASSISTANT, "agent_thought_chunk": Role.THINKING}
# prefixes of kinds of updates that do not belong to the conversation
_BOOKKEEPING = (
    *("plan", "available_commands", "current_mode", "auto_", "memory_", "task_", "subagent_", "scheduled_", "monitor_"),
    *("goal_", "workflow", "hook", "plugin", "session_", "relay_", "background_", "model_", "response_", "reasoning_"),
    *("interaction_", "pending_", "retry_", "diff_", "feedback_", "compaction_", "last_turn_", "image_dropped"),
    "tool_call_delta_chunk",
)


class GrokCli(FileReader):
    """Reads `sessions/<folder>/<session>/`. Never open siblings of `sessions`: they have keys."""

    client = GROK_CLI
    patterns = ("sessions/*/*/updates.jsonl",)
    backup_extras = ("sessions/*/*/*.jsonl", "sessions/*/*/summary.json")

    def session_file(self, file: File) -> SessionFile:
        """Return the session; its summary is part of the fingerprint, because it has the session's name."""
        folder = Path(file.path).parent
        status = f"+{fingerprint_at(str(folder / 'summary.json'))}"
        return SessionFile(file, str(folder), folder.name, folder=str(folder), note_status=status)

    def parse(self, file: SessionFile) -> Iterator[FoundSession]:
        summary = mapping(read_json(read_small_text(Path(file.folder, "summary.json"))))
        folder = text_at(summary, "info", "cwd") or unquote(Path(file.folder).parent.name)
        return parse_records(file, Updates(file.session_id, folder, summary=summary))


@dataclass(slots=True)
class Updates(drafts.Conversation):
    """Builds a session from its updates. Texts arrive in chunks. Pure."""

    summary: Record = field(default_factory=dict)
    _last: str = ""
    _text: str = ""  # the chunks of the current message
    _turns: dict[int, int] = field(default_factory=dict)  # by the index of a prompt: the position of its message

    def read(self, record: Record) -> None:
        params = mapping(record.get("params"))
        update, at = mapping(params.get("update")), value_at(params, "_meta", "agentTimestampMs")
        kind = string(update.get("sessionUpdate"))
        self.begin(str(at) if isinstance(at, int) else "", drafts.moment(at) or record.get("timestamp"))
        if kind == "user_message_chunk" or kind in _CHUNK_ROLES:
            self._add_chunk(kind, update)
        elif kind == "tool_call":
            name = value_at(update, "_meta", "x.ai/tool", "name") or update.get("title")
            self.call(string(update.get("toolCallId")), name, update.get("rawInput"))
        elif kind == "tool_call_update":
            self._add_result(update)
        elif kind == "turn_completed":
            turn_start = max(self._turns.values(), default=0)
            since = range(turn_start, len(self.drafts))
            first = next((n for n in since if self.drafts[n].role is not Role.USER), turn_start)
            self.count_tokens(first, update.get("usage"))
        elif kind == "rewind_marker":
            drafts.supersede(
                self.drafts[self._turns.get(_index(update.get("target_prompt_index")), len(self.drafts)) :]
            )
        elif kind == "auto_compact_completed":
            self.inject(string(update.get("summary_preview")) or "Conversation compacted", compaction={})
        else:  # may come between the chunks of a text
            if not kind.startswith(_BOOKKEEPING):
                self.count_unknown("update", kind)
            return
        self._last = kind

    def session(self) -> Session:
        return self.build(
            self.summary.get("generated_title"),
            self.summary.get("session_summary"),
            parent=string(self.summary.get("parent_session_id")),
            relation="sub-agent" if self.summary.get("session_kind") == "subagent" else "fork",
            began=self.summary.get("created_at"),
        )

    def _add_chunk(self, kind: str, update: Record) -> None:
        content = mapping(update.get("content"))
        text = string(content.get("text"))
        if kind == self._last and self.drafts and text and self.drafts[-1].parts:
            self._text += text
            self.drafts[-1].parts = [self._text.strip()]
            return
        self._text = text
        if kind in _CHUNK_ROLES:
            self.say(_CHUNK_ROLES[kind], text, ":thinking" if kind == "agent_thought_chunk" else "")
        else:
            self.model = text_at(update, "_meta", "modelId") or self.model
            if kind != self._last:
                self._turns[_index(value_at(update, "_meta", "promptIndex"))] = len(self.drafts)
            self.say(Role.USER, text, attachments=["image"] if content.get("type") == "image" else [])

    def _add_result(self, update: Record) -> None:
        status, output = update.get("status"), mapping(update.get("rawOutput"))
        if status in ("completed", "failed"):
            parts = (value_at(part, "content", "text") for part in items(update.get("content")))
            result = string(output.get("output_for_prompt")) or "\n".join(filter(None, map(string, parts)))
            has_failed = status == "failed" or output.get("exit_code") not in (None, 0)
            self.set_result(update.get("toolCallId"), result, drafts.result_status(has_failed))


def _index(value: Any) -> int:
    return value if isinstance(value, int) else -1
