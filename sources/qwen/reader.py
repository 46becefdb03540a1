"""Read the chats of Qwen Code and of its sub-agents: records in a tree, with contents in Gemini's format."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from registry.domain import Role, Session
from sources.base import FoundSession
from sources.clients import QWEN_CODE
from sources.gemini.prompts import parts_text, prompt_of
from sources.gemini.reader import GeminiChat
from sources.kit import drafts
from sources.kit.contents import content_text
from sources.kit.files import File
from sources.kit.loose_json import Record, mapping, objects, string, text_at, value_at
from sources.kit.reader import FileReader, SessionFile, parse_records

_TYPED = ("", "mid_turn_user_message", "user_text_elements")  # subtypes of a user's record that were typed
# prefixes of subtypes of a system record that do not belong to the conversation
_BOOKKEEPING = (
    *("slash_command", "ui_telemetry", "at_command", "attribution_", "rewind", "session_", "file_"),
    *("agent_", "background_task_", "branch_", "goal_", "turn_result", "omni_recall", "custom_title", "parent_session"),
    *("user_text_elements", "notification", "cron", "realtime_message", "managed_session_"),
)


class QwenCode(FileReader):
    """Reads `chats/` and `subagents/<session>/` of `projects/<folder>/`. Never open their siblings: secrets."""

    client = QWEN_CODE
    patterns = ("projects/*/chats/*.jsonl", "projects/*/subagents/*/*.jsonl", "tmp/*/chats/*.json")

    def session_file(self, file: File) -> SessionFile:
        """Return the chat; a sub-agent's folder is named after its parent session."""
        folder, path = os.path.dirname(file.path), Path(file.path)
        agent_of = path.parent.name if path.parents[1].name == "subagents" else None
        return SessionFile(file, file.path, path.stem, agent_of, folder)

    def parse(self, file: SessionFile) -> Iterator[FoundSession]:
        if file.path.endswith(".json"):  # before version 0.5
            return parse_records(file, GeminiChat(file.session_id))
        return parse_records(file, QwenChat(file.session_id, agent_of=file.agent_of))


@dataclass(slots=True)
class QwenChat(drafts.Conversation):
    """Builds a chat from its records. Pure."""

    _named: str = ""
    _parent: str = ""

    def read(self, record: Record) -> None:
        uuid, kind = string(record.get("uuid")), string(record.get("type"))
        if not self.follow(uuid, record.get("parentUuid")):
            return
        self.begin(uuid, record.get("timestamp"))
        self.add_folder(record.get("cwd"))
        origin = text_at(record, "forkedFrom", "sessionId")
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
            self.count_unknown("record", kind)

    def session(self) -> Session:
        return self.build(self._named, parent=self._parent, relation=None)

    def _add_question(self, record: Record) -> None:
        shown = value_at(record, "systemPayload", "displayText")
        parts = self._parts(record)
        typed, context, names = prompt_of({"content": parts, "displayContent": shown})
        is_typed = string(record.get("subtype")) in _TYPED and record.get("provenance", "real_user") == "real_user"
        if is_typed:
            self.say(Role.USER, typed, attachments=names, content=parts)
        else:
            self.inject(typed, attachments=names, content=parts)
        self.inject(context, ":context" if typed else "")

    def _add_answer(self, record: Record) -> None:
        before, self.model = len(self.drafts), string(record.get("model"))
        parts = self._parts(record)
        thoughts = (string(part.get("text")).strip() for part in parts if part.get("thought"))
        self.say(Role.THINKING, "\n\n".join(thoughts), ":thinking")
        self.say(Role.ASSISTANT, parts_text(parts))
        for index, part in enumerate(parts):
            if call := mapping(part.get("functionCall")):
                key = string(call.get("id")) or f"{self.record_id}:tool:{index}"
                self.call(key, call.get("name"), call.get("args", {}))
        self.count_tokens(before, record.get("usageMetadata"), cache_in_input=True)

    def _add_results(self, record: Record) -> None:
        call_result = mapping(record.get("toolCallResult"))
        for response in (mapping(part.get("functionResponse")) for part in self._parts(record)):
            output = mapping(response.get("response"))
            text = next((output[name] for name in ("output", "error") if name in output), output or None)
            status = drafts.status_of(call_result.get("status"), drafts.result_status("error" in output))
            self.set_result(response.get("id") or call_result.get("callId"), content_text(text), status)

    def _note(self, record: Record) -> None:
        kind, payload = string(record.get("subtype")), mapping(record.get("systemPayload"))
        if kind == "chat_compression":
            history = objects(payload.get("compressedHistory"))  # the summary, then the latest messages again
            summary = parts_text(objects(history[0].get("parts"))) if history else ""
            self.inject(summary or "Conversation compacted", compaction={})
        elif not kind.startswith(_BOOKKEEPING):
            self.count_unknown("record system", kind)
        self._named = string(payload.get("customTitle")).strip() or self._named
        self._parent = string(payload.get("parentSessionId")) or self._parent

    def _parts(self, record: Record) -> list[Record]:
        parts = value_at(record, "message", "parts")
        if parts is None:
            self.count_unknown("message", "without parts")
        return objects(parts)
