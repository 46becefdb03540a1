"""Read the sessions of Grok CLI from the stream of updates that it resumes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from registry.domain import Role, Session
from sources.base import FoundSession
from sources.grok.client import GROK_CLI
from sources.kit import drafts
from sources.kit.drafts import Conversation, supersede, usage_of
from sources.kit.files import File, small_text, status_of
from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record, items, mapping, read_json, string, value_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, json_lines

_USAGE = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cachedReadTokens": "cache_read_input_tokens",
    "cacheCreationTokens": "cache_creation_input_tokens",
    "reasoningTokens": "reasoning_tokens",
}
_SPOKEN = {"agent_message_chunk": Role.ASSISTANT, "agent_thought_chunk": Role.THINKING}
# beginnings of the kinds of updates that are no part of the conversation
_BOOKKEEPING = (
    *("plan", "available_commands", "current_mode", "auto_", "memory_", "task_", "subagent_", "scheduled_", "monitor_"),
    *("goal_", "workflow", "hook", "plugin", "session_", "relay_", "background_", "model_", "response_", "reasoning_"),
    *("interaction_", "pending_", "retry_", "diff_", "feedback_", "compaction_", "last_turn_", "image_dropped"),
    "tool_call_delta_chunk",
)


class GrokCli(FileReader):
    """Reads `sessions/<folder>/<session>/`. Keys lie beside `sessions`."""

    name = GROK_CLI.source
    variables = ("CTXR_GROK_CLI_DIR", "GROK_HOME")
    home = (".grok",)
    patterns = ("sessions/*/*/updates.jsonl",)

    def session_file(self, file: File) -> SessionFile:
        """Return the session, which may be renamed in its summary after it has ended."""
        folder = Path(file.path).parent
        status = f"+{status_of(str(folder / 'summary.json'))}"
        return SessionFile(file, str(folder), folder.name, folder=str(folder), note_status=status)

    def parser(self, store: Path) -> ParseFile:
        return _parse


def _parse(file: SessionFile) -> Iterator[FoundSession]:
    damage, summary = Damage(), mapping(read_json(small_text(Path(file.folder, "summary.json"))))
    folder = string(value_at(summary, "info", "cwd")) or unquote(Path(file.folder).parent.name)
    talk = Updates(file.session_id, folder)
    for record in json_lines(file.path, damage):
        talk.read(record)
    parent = string(summary.get("parent_session_id"))
    is_agent = summary.get("session_kind") == "subagent"
    session = talk.session(
        {"name": summary.get("generated_title"), "summary": summary.get("session_summary")},
        folders=[folder],
        parent=parent,
        began=drafts.moment(summary.get("created_at")),
        relation=("sub-agent" if is_agent else "fork") if parent else None,
    )
    yield file.found(session, damage.skipped() + talk.skipped())


@dataclass(slots=True)
class Updates(Conversation):
    """Builds a session from its updates, in which texts come in chunks. Pure."""

    _last: str = ""
    _turns: dict[int, int] = field(default_factory=dict)  # by the index of a prompt: the position of its message

    def read(self, record: Record) -> None:
        """Add one update; an unknown one is counted in `unknown`."""
        params = mapping(record.get("params"))
        update, at = mapping(params.get("update")), value_at(params, "_meta", "agentTimestampMs")
        kind, time = string(update.get("sessionUpdate")), drafts.moment(at) or drafts.moment(record.get("timestamp"))
        if kind == "user_message_chunk" or kind in _SPOKEN:
            self._add_chunk(kind, update, time, f"{at}" if isinstance(at, int) else "")
        elif kind == "tool_call":
            name = string(value_at(update, "_meta", "x.ai/tool", "name")) or string(update.get("title"))
            self.call(string(update.get("toolCallId")), name, update.get("rawInput"), time, model=self.model)
        elif kind == "tool_call_update":
            self._add_result(update)
        elif kind == "turn_completed":
            answers = [draft for draft in self.drafts[self._begun() :] if draft.role is not Role.USER]
            if answers and (usage := usage_of(update.get("usage"), _USAGE)):
                answers[0].more["usage"] = usage
        elif kind == "rewind_marker":
            supersede(self.drafts[self._turns.get(_index(update.get("target_prompt_index")), len(self.drafts)) :])
        elif kind == "auto_compact_completed":
            text = string(update.get("summary_preview")) or "Conversation compacted"
            self.say(Role.SYSTEM, text, time, injected=True, compaction={})
        elif not kind.startswith(_BOOKKEEPING):
            self.unknown[f"update {kind or 'without kind'}"] += 1
        self._last = kind

    def session(self, titles: Mapping[str, object], **about: Any) -> Session:
        """Return the session as read so far; turns that were rewound are marked."""
        for draft in self.drafts:
            draft.parts = [text for part in draft.parts if (text := part.strip())]
        return self.build(titles, **about)

    def _add_chunk(self, kind: str, update: Record, time: datetime | None, key: str) -> None:
        content = mapping(update.get("content"))
        text, about = string(content.get("text")), mapping(update.get("_meta"))
        pictures = ["image"] if content.get("type") == "image" else []
        if kind == self._last and self.drafts and text and self.drafts[-1].parts:
            self.drafts[-1].parts[-1] += text
        elif kind in _SPOKEN:
            suffix = ":thinking" if kind == "agent_thought_chunk" else ""
            self.say(_SPOKEN[kind], text, time, key and key + suffix, model=self.model)
        else:
            self.model = string(about.get("modelId")) or self.model
            if kind != self._last:
                self._turns[_index(about.get("promptIndex"))] = len(self.drafts)
            self.say(Role.USER, text, time, key, attachments=pictures)

    def _add_result(self, update: Record) -> None:
        status, output = update.get("status"), mapping(update.get("rawOutput"))
        if status in ("completed", "failed"):
            parts = (mapping(mapping(part).get("content")) for part in items(update.get("content")))
            shown = "\n".join(filter(None, (string(part.get("text")) for part in parts)))
            has_failed = status == "failed" or output.get("exit_code") not in (None, 0)
            result = string(output.get("output_for_prompt")) or shown
            self.answer(string(update.get("toolCallId")), result, drafts.FAILED if has_failed else drafts.COMPLETED)

    def _begun(self) -> int:
        return max(self._turns.values(), default=0)


def _index(value: Any) -> int:
    return value if isinstance(value, int) else -1
