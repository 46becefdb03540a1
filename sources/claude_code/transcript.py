"""What the records of one Claude Code transcript say. Pure: no path, no clock, no environment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.base import Skipped
from sources.claude_code.prompts import Piece, injected, pieces_of
from sources.claude_code.session import TITLE_WIDTH, Facts, Links
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string

KEPT_SYSTEM = ("", "compact_boundary", "local_command", "informational", "away_summary", "model_refusal_fallback")
IGNORED_SYSTEM = (
    *("turn_duration", "microcompact_boundary", "stop_hook_summary", "task_started", "task_progress"),
    *("task_notification", "hook_result", "bridge_status"),
)
IGNORED = (
    *("progress", "queue-operation", "file-history-snapshot", "permission-mode", "mode", "pr-link", "frame-link"),
    *("worktree-state", "bridge-session", "agent-setting", "content-replacement", "fork-context-ref"),
    *("observer-ref", "atis-latch", "api-request", "api-request-shape", "api-request-blob", "cost-state", "tools-used"),
)
NOT_TYPED_FLAGS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
SYNTHETIC = "<synthetic>"
FILLERS = ("(no content)", "No response requested.")
REFUSALS = ("The user doesn't want to proceed", "The user doesn't want to take this action")
USAGE = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

OutputOf = Callable[[str], str | None]


@dataclass(slots=True)
class Transcript:
    """One conversation in the making: hand it the records in the order of the file, then ask for the session.

    `output_of` gives the whole of a tool's output that the client moved into a file of its own, by its stub.
    """

    facts: Facts
    output_of: OutputOf = lambda _: None
    links: Links = field(default_factory=Links)
    unknown: Counter[str] = field(default_factory=Counter)
    _drafts: list[Draft] = field(default_factory=list)
    _parts: dict[tuple[str, Role], Draft] = field(default_factory=dict)
    _tools: dict[str, Draft] = field(default_factory=dict)
    _usage: dict[str, dict[str, int]] = field(default_factory=dict)
    _counted: set[str] = field(default_factory=set)
    _asked: set[str] = field(default_factory=set)

    def read(self, record: Record) -> None:
        """Take in one record; what is not understood is counted in `unknown`."""
        kind = string(record.get("type"))
        handler = _HANDLERS.get(kind)
        if not self.links.add(record):
            return
        if handler:
            self.facts.envelope(record)
            handler(self, record)
        elif not self.facts.titled(record) and kind not in IGNORED:
            self.unknown[f"record {kind or 'without type'}"] += 1

    def session(self) -> Session:
        """The conversation as read so far; the superseded parts of it are marked."""
        left_behind = self.links.superseded()
        for draft in self._drafts:
            if draft.origin in left_behind:
                draft.more["superseded"] = True
        title_from, title = self.facts.title(self.links.parents) or self._first_words()
        parent, relation = self.facts.parent()
        meta = self.facts.meta(title_from=title_from, relation=relation)
        self._forget_times_of_a_resume()
        messages = drafts.messages_of(self._drafts)
        return Session(self.facts.session_id, messages, title, self.facts.project(), parent, meta)

    def _forget_times_of_a_resume(self) -> None:
        """A resumed session may be written anew: what was answered then carries the time of the resume.

        The file is in order and a question has the time at which it was typed: what stands before a question cannot
        be later than it.
        """
        latest: datetime | None = None
        questions = []
        for draft in self._drafts:
            if (
                draft.role is Role.USER
                and draft.origin in self._asked
                and draft.at
                and (not latest or draft.at >= latest)
            ):
                latest = draft.at
                questions.append(draft)
        next_asked: datetime | None = None
        for draft in reversed(self._drafts):
            if next_asked and draft.at and draft.at > next_asked:
                draft.at = None
            if questions and draft is questions[-1]:
                next_asked = questions.pop().at

    def _first_words(self) -> tuple[str, str] | tuple[None, None]:
        typed = [draft for draft in self._drafts if draft.role is Role.USER and draft.parts]
        prompts = [draft.parts[0] for draft in typed if "command" not in draft.more]
        choices = (*prompts[:1], self.facts.titles.get("last-prompt"), *(draft.parts[0] for draft in typed[:1]))
        words = next(filter(None, choices), None)
        return ("first words", preview_of(words, TITLE_WIDTH)) if words else (None, None)

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    # What the user sent

    def _user(self, record: Record) -> None:
        content = mapping(record.get("message")).get("content")
        for block in map(mapping, items(content)):
            if "tool_use_id" in block:
                self._answered(block, record)
        self._pieces(record, content)
        names = list(filter(None, map(drafts.attachment_name, map(mapping, items(content)))))
        if names:
            draft = self._last_of(record) or self._put(record, Role.USER, "", string(record.get("uuid")))
            for name in names:
                draft.attach(name)

    def _pieces(self, record: Record, content: object) -> None:
        texts = drafts.texts_in(content)
        not_typed = any(record.get(flag) for flag in NOT_TYPED_FLAGS) or record.get("promptSource") == "system"
        uuid = string(record.get("uuid"))
        for index, piece in enumerate((injected if not_typed else pieces_of)(texts)):
            draft = self._piece(record, piece, uuid if index == 0 else f"{uuid}:{index}")
            if record.get("isCompactSummary"):
                draft.more["compaction"] = {}

    def _piece(self, record: Record, piece: Piece, native_id: str) -> Draft:
        draft = self._put(record, piece.role, piece.text, native_id)
        if piece.is_injected:
            draft.more["injected"] = True
            return draft
        self.links.typed(record)
        if record.get("type") == "user":
            self._asked.add(string(record.get("uuid")))
        if piece.command:
            draft.more["command"] = piece.command
        if piece.command == "/rename" and (title := piece.text.removeprefix("/rename").strip()):
            self.facts.titles["/rename"] = title
        return draft

    def _answered(self, block: Record, record: Record) -> None:
        """The result of a call; one whose call is not in the file is kept all the same."""
        call_id = string(block.get("tool_use_id"))
        draft = self._tools.get(call_id) or self._call({"id": call_id}, record)
        result = drafts.readable(block.get("content"))
        structured = record.get("toolUseResult")
        drafts.answer(draft, self.output_of(result) or result, status_of(block, result, structured))
        if agent := string(mapping(structured).get("agentId")):
            draft.more["tool"]["agent"] = f"agent-{agent}"

    def _attachment(self, record: Record) -> None:
        """A prompt typed while the client was busy, or a file that the prompt before it named."""
        given = mapping(record.get("attachment"))
        if given.get("type") == "queued_command":
            self._pieces(record, given.get("prompt"))
            return
        name = string(given.get("filename"))
        asked = next((draft for draft in reversed(self._drafts[-20:]) if draft.role is Role.USER), None)
        if name and asked and given.get("type") in ("file", "directory"):
            asked.attach(name)

    # What the model answered

    def _assistant(self, record: Record) -> None:
        message = mapping(record.get("message"))
        content, before = message.get("content"), len(self._drafts)
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        for block in map(mapping, blocks):
            kind = string(block.get("type"))
            if handler := _BLOCKS.get(kind):
                handler(self, block, record)
            elif "tool_use_id" in block:
                self._answered(block, record)
            elif kind not in ("redacted_thinking", "image", "document"):
                self.unknown[f"block {kind or 'without type'}"] += 1
        self._count_tokens(message, self._drafts[before:])

    def _said(self, block: Record, record: Record) -> None:
        text = string(block.get("text")).strip()
        if text and text not in FILLERS:
            self._part(record, Role.ERROR if is_clients_own(record) else Role.ASSISTANT, text)

    def _thought(self, block: Record, record: Record) -> None:
        if text := string(block.get("thinking")).strip():  # newer models sign their thoughts and keep them
            self._part(record, Role.THINKING, text)

    def _part(self, record: Record, role: Role, text: str) -> None:
        """One answer comes in several records of the same message id."""
        uuid = string(record.get("uuid"))
        message_id = string(mapping(record.get("message")).get("id")) or uuid
        draft = self._parts.get((message_id, role)) if message_id else None
        if draft:
            draft.add(text)
            return
        thinking = ":thinking" if role is Role.THINKING else ""
        self._parts[message_id, role] = self._put(record, role, text, message_id and message_id + thinking)
        self._parts[message_id, role].more |= model_of(record)

    def _call(self, block: Record, record: Record) -> Draft:
        call_id, name = string(block.get("id")), string(block.get("name")) or "tool"
        if call_id in self._tools:
            return self._tools[call_id]
        draft = drafts.tool_draft(
            *(call_id, name, block.get("input", {}), written_at(record)),
            folder=string(record.get("cwd")),
            origin=string(record.get("uuid")),
        )
        draft.more |= model_of(record)
        self._tools[call_id or f"without id {len(self._drafts)}"] = draft
        self._drafts.append(draft)
        return draft

    def _count_tokens(self, message: Record, new: list[Draft]) -> None:
        """The counts grow along the records of one answer: the largest holds, on the first message of the answer."""
        message_id, usage = string(message.get("id")), mapping(message.get("usage"))
        counts = {key: usage[key] for key in USAGE if isinstance(usage.get(key), int)}
        if not counts or not message_id:
            return
        known = self._usage.setdefault(message_id, {})
        for key, count in counts.items():
            known[key] = max(known.get(key, 0), count)
        if new and message_id not in self._counted:
            self._counted.add(message_id)
            new[0].more["usage"] = known

    # What the client said

    def _system(self, record: Record) -> None:
        subtype = string(record.get("subtype"))
        if subtype == "api_error":
            self._put(record, Role.ERROR, error_text(record), string(record.get("uuid")))
        elif subtype == "compact_boundary":
            text = string(record.get("content")) or "Conversation compacted"
            draft = self._put(record, Role.SYSTEM, text, string(record.get("uuid")))
            draft.more |= {"injected": True, "compaction": drafts.shallow(mapping(record.get("compactMetadata")))}
        elif subtype == "local_command":
            self._pieces(record, record.get("content"))
        elif subtype in KEPT_SYSTEM:
            for text in drafts.texts_in(record.get("content")):
                self._piece(record, Piece(Role.SYSTEM, text.strip()), string(record.get("uuid")))
        elif subtype not in IGNORED_SYSTEM:
            self.unknown[f"system record {subtype}"] += 1

    # Drafts

    def _put(self, record: Record, role: Role, text: str, native_id: str) -> Draft:
        more: dict[str, Any] = {"native_id": native_id} if native_id else {}
        draft = Draft(role, [text] if text else [], written_at(record), more, string(record.get("uuid")))
        self._drafts.append(draft)
        return draft

    def _last_of(self, record: Record) -> Draft | None:
        """The message that this record has just put last."""
        last = self._drafts[-1] if self._drafts else None
        uuid = string(record.get("uuid"))
        return last if last and uuid and last.origin == uuid and last.role is not Role.TOOL else None


_HANDLERS: dict[str, Callable[[Transcript, Record], None]] = {
    "user": Transcript._user,
    "assistant": Transcript._assistant,
    "system": Transcript._system,
    "attachment": Transcript._attachment,
}
_BLOCKS: dict[str, Callable[[Transcript, Record, Record], object]] = {
    "text": Transcript._said,
    "thinking": Transcript._thought,
    "tool_use": Transcript._call,
    "server_tool_use": Transcript._call,
    "mcp_tool_use": Transcript._call,
}


# What single fields mean


def written_at(record: Record) -> datetime | None:
    """When the record was written."""
    return drafts.moment(record.get("timestamp"))


def is_clients_own(record: Record) -> bool:
    """The client wrote the answer itself: an error of the service, in the place of an answer."""
    return bool(record.get("isApiErrorMessage")) or mapping(record.get("message")).get("model") == SYNTHETIC


def model_of(record: Record) -> dict[str, str]:
    """The model as part of a message's `more`; nothing where there was none or it is not known."""
    model = string(mapping(record.get("message")).get("model"))
    return {"model": model} if model not in ("", SYNTHETIC) else {}


def status_of(block: Record, result: str, structured: object) -> str:
    """How a call ended, by its result block, the text in it, and the structured output beside it."""
    if not block.get("is_error"):
        return drafts.COMPLETED
    is_refused = result.startswith(REFUSALS) or string(structured).startswith("User rejected")
    return drafts.REJECTED if is_refused else drafts.FAILED


def error_text(record: Record) -> str:
    """What the client tells of an error of the service; its shape has changed several times."""
    error = record.get("error")
    told = (record.get("content"), mapping(error).get("message"), error, mapping(record.get("cause")).get("message"))
    return next(filter(None, map(string, told)), "") or drafts.readable(error) or "API error"
