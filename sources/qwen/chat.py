"""What a Qwen Code chat says: records that hang together as a tree, their contents in Gemini's form. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.base import Skipped
from sources.gemini.prompts import parts_text, prompt_of
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string

TITLE_WIDTH = 80
_STATUS = {"success": drafts.COMPLETED, "error": drafts.FAILED, "cancelled": drafts.REJECTED}
_USAGE = {
    "promptTokenCount": "input_tokens",
    "candidatesTokenCount": "output_tokens",
    "cachedContentTokenCount": "cache_read_input_tokens",
    "thoughtsTokenCount": "reasoning_tokens",
}
_TYPED = ("", "mid_turn_user_message", "user_text_elements")
"""What kinds of a user's record somebody wrote; the others are the client's own."""
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


@dataclass(slots=True)
class Chat:
    """One chat in the making: hand it the records, then ask for the session.

    `agent_of`: for a sub-agent's chat the session it works for.
    """

    session_id: str
    agent_of: str | None = None
    unknown: Counter[str] = field(default_factory=Counter)
    _drafts: list[Draft] = field(default_factory=list)
    _calls: dict[str, Draft] = field(default_factory=dict)
    _parents: dict[str, str] = field(default_factory=dict)
    _leaf: str = ""
    _folders: list[str] = field(default_factory=list)
    _named: str = ""
    _parent: str = ""

    def read(self, record: Record) -> None:
        """Take in one record; what is not understood is counted in `unknown`."""
        uuid = string(record.get("uuid"))
        if uuid in self._parents:
            return
        if uuid:
            self._parents[uuid], self._leaf = string(record.get("parentUuid")), uuid
        self._place(record)
        handler = _TYPES.get(string(record.get("type")))
        if handler is None:
            self.unknown[f"record {string(record.get('type')) or 'without type'}"] += 1
        else:
            handler(self, record)

    def session(self) -> Session:
        """The chat as read so far; messages that were rewound are marked."""
        gone = self._rewound()
        for draft in self._drafts:
            if draft.origin in gone:
                draft.more["superseded"] = True
        title_from, title = self._title()
        meta = {"title_from": title_from, "relation": "sub-agent" if self.agent_of else None}
        return Session(
            session_id=self.session_id,
            messages=drafts.messages_of(self._drafts),
            title=title,
            project=drafts.project_of(self._folders),
            parent=self.agent_of or self._parent or None,
            meta={key: value for key, value in meta.items() if value},
        )

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    def _place(self, record: Record) -> None:
        folder = string(record.get("cwd"))
        if folder and folder not in self._folders:
            self._folders.append(folder)
        origin = string(mapping(record.get("forkedFrom")).get("sessionId"))
        self._parent = self._parent or (origin if origin != self.session_id else "")

    def _rewound(self) -> set[str]:
        """What does not lead to the last record: the client goes on from an earlier one after `/rewind`."""
        live: set[str] = set()
        uuid = self._leaf
        while uuid in self._parents and uuid not in live:
            live.add(uuid)
            uuid = self._parents[uuid]
        return set() if uuid else self._parents.keys() - live  # a torn chain tells nothing

    def _title(self) -> tuple[str, str] | tuple[None, None]:
        if self._named and not self.agent_of:
            return "name", preview_of(self._named, 4 * TITLE_WIDTH)
        words = next((draft.parts[0] for draft in self._drafts if draft.role is Role.USER and draft.parts), "")
        return ("first words", preview_of(words, TITLE_WIDTH)) if words.strip() else (None, None)

    # Records

    def _asked(self, record: Record) -> None:
        message, shown = _content(record), mapping(record.get("systemPayload")).get("displayText")
        prompt = prompt_of({"content": message, "displayContent": string(shown)})
        is_typed = string(record.get("subtype")) in _TYPED and record.get("provenance", "real_user") == "real_user"
        if prompt.typed or prompt.attachments:
            more: dict[str, Any] = {"attachments": list(prompt.attachments)} if prompt.attachments else {}
            more |= {} if is_typed else {"injected": True}
            self._add(record, Role.USER if is_typed else Role.SYSTEM, prompt.typed, **more)
        if prompt.context:
            self._add(record, Role.SYSTEM, prompt.context, ":context" if prompt.typed else "", injected=True)

    def _answered(self, record: Record) -> None:
        before = len(self._drafts)
        parts = [mapping(part) for part in _content(record)]
        thoughts = "\n\n".join(string(part.get("text")).strip() for part in parts if part.get("thought"))
        for role, text, apart in ((Role.THINKING, thoughts, ":thinking"), (Role.ASSISTANT, parts_text(parts), "")):
            if text.strip():
                self._add(record, role, text.strip(), apart)
        for place, part in enumerate(parts):
            if call := mapping(part.get("functionCall")):
                self._called(record, call, place)
        model, usage = string(record.get("model")), mapping(record.get("usageMetadata"))
        for draft in self._drafts[before:]:
            draft.more |= {"model": model} if model else {}
        counted = {ours: usage[theirs] for theirs, ours in _USAGE.items() if isinstance(usage.get(theirs), int)}
        if counted and len(self._drafts) > before:
            self._drafts[before].more["usage"] = counted

    def _called(self, record: Record, call: Record, place: int) -> None:
        uuid = string(record.get("uuid"))
        key = string(call.get("id")) or f"{uuid}:tool:{place}"
        name, at = string(call.get("name")) or "tool", drafts.moment(record.get("timestamp"))
        folder = string(record.get("cwd"))
        draft = drafts.tool_draft(key, name, call.get("args", {}), at, folder=folder, origin=uuid)
        self._calls[key] = draft
        self._drafts.append(draft)

    def _result(self, record: Record) -> None:
        told, told_apart = mapping(record.get("toolCallResult")), [mapping(part) for part in _content(record)]
        for response in (mapping(part.get("functionResponse")) for part in told_apart):
            key = string(response.get("id")) or string(told.get("callId"))
            if key not in self._calls:
                continue
            output = mapping(response.get("response"))
            failed = drafts.FAILED if "error" in output else drafts.COMPLETED
            text = drafts.readable(
                next((output[name] for name in ("output", "error") if name in output), output or None)
            )
            drafts.answer(self._calls[key], text, _STATUS.get(string(told.get("status")), failed))

    def _noted(self, record: Record) -> None:
        kind, payload = string(record.get("subtype")), mapping(record.get("systemPayload"))
        if kind not in _BOOKKEEPING:
            self.unknown[f"record system {kind}".rstrip()] += 1
        self._named = string(payload.get("customTitle")).strip() or self._named
        self._parent = string(payload.get("parentSessionId")) or self._parent

    def _add(self, record: Record, role: Role, text: str, apart: str = "", **more: Any) -> None:
        uuid = string(record.get("uuid"))
        named = {"native_id": uuid + apart} if uuid else {}
        parts = [text] if text else []
        self._drafts.append(Draft(role, parts, drafts.moment(record.get("timestamp")), {**named, **more}, uuid))


def _content(record: Record) -> list[Any]:
    return items(mapping(record.get("message")).get("parts"))


_TYPES: dict[str, Callable[[Chat, Record], None]] = {
    "user": Chat._asked,
    "assistant": Chat._answered,
    "tool_result": Chat._result,
    "system": Chat._noted,
}
