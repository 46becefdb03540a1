"""Read the chats of Qwen Code and of its sub-agents: records in a tree, their contents in Gemini's form."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from registry.domain import Role, Session
from sources.gemini.prompts import parts_text, prompt_of
from sources.kit import drafts
from sources.kit.drafts import Conversation, off_path, supersede, usage_of
from sources.kit.files import File
from sources.kit.loose_json import Record, items, mapping, string
from sources.kit.reader import FileReader, ParseFile, SessionFile, parse_lines
from sources.qwen.client import QWEN_CODE

_STATUS = {"success": drafts.COMPLETED, "error": drafts.FAILED, "cancelled": drafts.REJECTED}
_USAGE = {
    "promptTokenCount": "input_tokens",
    "candidatesTokenCount": "output_tokens",
    "cachedContentTokenCount": "cache_read_input_tokens",
    "thoughtsTokenCount": "reasoning_tokens",
}
_TYPED = ("", "mid_turn_user_message", "user_text_elements")  # subtypes of a user's record that somebody wrote
_BOOKKEEPING = frozenset(
    (
        *("chat_compression", "slash_command", "ui_telemetry", "at_command", "attribution_snapshot", "rewind"),
        *("session_source", "session_model", "session_approval_mode", "session_execution_engine", "session_notes"),
        *("session_artifact_event", "session_artifact_snapshot", "session_sources_snapshot", "file_history_snapshot"),
        *("agent_bootstrap", "agent_launch_prompt", "agent_retry", "agent_session_ready", "background_task_completed"),
        *("branch_checkpoint", "goal_state", "goal_runtime", "goal_turn_end", "turn_result", "omni_recall"),
        *("custom_title", "parent_session", "user_text_elements", "notification", "cron", "realtime_message"),
        *("managed_session_header_v1", "managed_session_event_v1", "managed_session_commit_v1"),
    )
)


class QwenCode(FileReader):
    """Reads `projects/<folder>/chats/` and `projects/<folder>/subagents/<session>/`. Secrets lie beside `projects`."""

    name = QWEN_CODE.source
    variables = ("CTXR_QWEN_CODE_DIR", "QWEN_HOME")
    home = (".qwen",)
    patterns = ("projects/*/chats/*.jsonl", "projects/*/subagents/*/*.jsonl")

    def session_file(self, file: File) -> SessionFile:
        """Return the chat; the folder of a sub-agent's is named after its session."""
        folder, path = os.path.dirname(file.path), Path(file.path)
        agent_of = path.parent.name if path.parents[1].name == "subagents" else None
        return SessionFile(file, file.path, path.stem, agent_of, folder)

    def parser(self, store: Path) -> ParseFile:
        return lambda file: parse_lines(file, QwenChat(file.session_id, agent_of=file.agent_of))


@dataclass(slots=True)
class QwenChat(Conversation):
    """Builds a chat from its records. `agent_of`: for a sub-agent's chat the session it works for. Pure."""

    agent_of: str | None = None
    _parents: dict[str, str] = field(default_factory=dict)
    _leaf: str = ""
    _folders: dict[str, None] = field(default_factory=dict)
    _named: str = ""
    _parent: str = ""

    def read(self, record: Record) -> None:
        """Add one record; an unknown one is counted in `unknown`."""
        uuid, kind = string(record.get("uuid")), string(record.get("type"))
        if uuid in self._parents:
            return
        if uuid:
            self._parents[uuid], self._leaf = string(record.get("parentUuid")), uuid
        self._folders[string(record.get("cwd"))] = None
        origin = string(mapping(record.get("forkedFrom")).get("sessionId"))
        self._parent = self._parent or (origin if origin != self.session_id else "")
        if kind == "user":
            self._add_question(record)
        elif kind == "assistant":
            self._add_answer(record)
        elif kind == "tool_result":
            self._add_results(record)
        elif kind == "system":
            self._note(record)
        else:
            self.unknown[f"record {kind or 'without type'}"] += 1

    def session(self) -> Session:
        """Return the chat as read so far; messages that were rewound are marked."""
        gone = off_path(self._parents, self._leaf)
        supersede(draft for draft in self.drafts if draft.origin in gone)
        return self.build(
            {} if self.agent_of else {"name": self._named},
            folders=self._folders,
            parent=self.agent_of or self._parent,
            relation="sub-agent" if self.agent_of else None,
        )

    def _add_question(self, record: Record) -> None:
        shown = string(mapping(record.get("systemPayload")).get("displayText"))
        prompt = prompt_of({"content": _parts(record), "displayContent": shown})
        is_typed = string(record.get("subtype")) in _TYPED and record.get("provenance", "real_user") == "real_user"
        role = Role.USER if is_typed else Role.SYSTEM
        more: Record = {} if is_typed else {"injected": True}
        self._add(record, role, prompt.typed, attachments=list(prompt.attachments), **more)
        self._add(record, Role.SYSTEM, prompt.context, ":context" if prompt.typed else "", injected=True)

    def _add_answer(self, record: Record) -> None:
        before, uuid = len(self.drafts), string(record.get("uuid"))
        parts = [mapping(part) for part in _parts(record)]
        thoughts = "\n\n".join(string(part.get("text")).strip() for part in parts if part.get("thought"))
        self._add(record, Role.THINKING, thoughts.strip(), ":thinking")
        self._add(record, Role.ASSISTANT, parts_text(parts).strip())
        for place, part in enumerate(parts):
            if call := mapping(part.get("functionCall")):
                key, at = string(call.get("id")) or f"{uuid}:tool:{place}", drafts.moment(record.get("timestamp"))
                folder = string(record.get("cwd"))
                self.call(key, string(call.get("name")), call.get("args", {}), at, folder=folder, origin=uuid)
        usage = usage_of(record.get("usageMetadata"), _USAGE, cache_in_input=True)
        self.describe(before, string(record.get("model")), usage)

    def _add_results(self, record: Record) -> None:
        call_result = mapping(record.get("toolCallResult"))
        for response in (mapping(mapping(part).get("functionResponse")) for part in _parts(record)):
            output = mapping(response.get("response"))
            by_outcome = drafts.FAILED if "error" in output else drafts.COMPLETED
            text = next((output[name] for name in ("output", "error") if name in output), output or None)
            call_id = string(response.get("id")) or string(call_result.get("callId"))
            self.answer(call_id, drafts.content_text(text), _STATUS.get(string(call_result.get("status")), by_outcome))

    def _note(self, record: Record) -> None:
        kind, payload = string(record.get("subtype")), mapping(record.get("systemPayload"))
        if kind not in _BOOKKEEPING:
            self.unknown[f"record system {kind}".rstrip()] += 1
        self._named = string(payload.get("customTitle")).strip() or self._named
        self._parent = string(payload.get("parentSessionId")) or self._parent

    def _add(self, record: Record, role: Role, text: str, suffix: str = "", **more: Any) -> None:
        uuid, at = string(record.get("uuid")), drafts.moment(record.get("timestamp"))
        self.say(role, text, at, uuid and uuid + suffix, origin=uuid, **more)


def _parts(record: Record) -> list[Any]:
    return items(mapping(record.get("message")).get("parts"))
