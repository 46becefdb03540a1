"""Parse the records of one Claude Code transcript. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from registry.domain import Role, Session, preview_of
from sources.claude_code.prompts import Piece, pieces_of
from sources.kit import drafts
from sources.kit.contents import attachments_in, blocks_of, content_text, texts_in
from sources.kit.loose_json import Record, mapping, objects, storable, string, text_at, value_at
from sources.kit.token_counts import usage_of

KEPT_SYSTEM = ("", "compact_boundary", "local_command", "informational", "away_summary", "model_refusal_fallback")
# prefixes of the subtypes of system records, and of the types of records, that do not belong to the conversation
IGNORED_SYSTEM = ("turn_duration", "microcompact_", "stop_hook_", "task_", "hook_", "bridge_")
_IGNORED = (
    *("progress", "queue-", "file-", "permission-mode", "mode", "pr-link", "frame-", "worktree-", "bridge-", "agent-"),
    *("content-", "fork-", "observer-", "atis-", "api-", "cost-state", "tools-used"),
)
# the fields with a title, by record type
TITLE_FIELDS = {
    "custom-title": "customTitle",
    "agent-name": "agentName",
    "ai-title": "aiTitle",
    "last-prompt": "lastPrompt",
}
_TITLES_BY_TRUST = ("custom-title", "/rename", "agent-name", "ai-title", "summary", "session file")
_SYNTHETIC = "<synthetic>"  # the model name of answers by the client itself: errors of the service

OutputOf = Callable[[str], str | None]


@dataclass(slots=True)
class ClaudeTranscript(drafts.Conversation):
    """Builds a conversation from its records in the order of the file.

    `agent_of`: "" if only the records name the parent. `output_of`: reads a tool's output from another file, given its
    placeholder. `titles`: the newest title of each kind. `summaries`: summaries by the uuid of a conversation's last
    record, from this file and others.
    """

    output_of: OutputOf = lambda _: None
    titles: dict[str, str] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    _last_said: str = ""
    _relocated: str = ""
    _first_session_id: str = ""
    _forked_from: str = ""
    _typed: dict[str, str] = field(default_factory=dict)  # the prompts, each with its parent
    _parts: dict[tuple[str, Role], drafts.Draft] = field(default_factory=dict)
    _usage: dict[str, dict[str, int]] = field(default_factory=dict)
    _counted: set[str] = field(default_factory=set)
    _question_ids: set[str] = field(default_factory=set)

    def read(self, record: Record) -> None:
        kind = string(record.get("type"))
        if not self.follow(string(record.get("uuid")), record.get("parentUuid") or record.get("logicalParentUuid")):
            return  # after a compaction some records are repeated; the first copy counts
        self.begin(record.get("uuid"), record.get("timestamp"))
        if kind in ("user", "assistant"):
            self._last_said = self.record_id or self._last_said
        model = value_at(record, "message", "model")
        self.model = "" if model == _SYNTHETIC else string(model)
        if kind in ("user", "assistant", "system", "attachment"):
            self.add_folder(record.get("cwd"))
            self._first_session_id = self._first_session_id or string(record.get("sessionId"))
            if (origin := text_at(record, "forkedFrom", "sessionId")) not in ("", self.session_id):
                self._forked_from = origin
        if kind == "user":
            self._read_user(record)
        elif kind == "assistant":
            self._read_assistant(record)
        elif kind == "system":
            self._read_system(record)
        elif kind == "attachment":
            self._read_attachment(record)
        elif kind == "summary":
            self.summaries[string(record.get("leafUuid"))] = string(record.get("summary"))
        elif kind == "relocated":
            self._relocated = string(record.get("relocatedCwd")) or self._relocated
        elif kind in TITLE_FIELDS:
            if title := string(record.get(TITLE_FIELDS[kind])).strip():
                self.titles[kind] = title
        elif not kind.startswith(_IGNORED):
            self.count_unknown("record", kind)

    def session(self) -> Session:
        self._drop_times_of_resume()
        parent, relation = self._parent()
        prompts = (each for each in self.drafts if each.role is Role.USER and each.parts and "command" not in each.more)
        first_words = next((prompt.parts[0] for prompt in prompts), "") or self.titles.get("last-prompt", "")
        summaries = [summary for leaf, summary in self.summaries.items() if leaf in self._parents and summary.strip()]
        known = {**self.titles, "summary": summaries[-1]} if summaries else self.titles
        titles = *(known.get(kind) for kind in _TITLES_BY_TRUST), preview_of(first_words, 80)
        return self.build(*titles, project=self._relocated, parent=parent, relation=relation)

    def _last_record(self) -> str:
        return self._last_said

    def _abandoned(self) -> set[str]:
        """Return the records of prompts that the user replaced (by one with the same parent), and their descendants."""
        path = self._path()
        continued = {parent for uuid, parent in self._typed.items() if parent and uuid in path}
        abandoned = {uuid for uuid, parent in self._typed.items() if parent in continued and uuid not in path}
        for uuid, parent in self._parents.items():
            if parent in abandoned and uuid not in path:
                abandoned.add(uuid)
        return abandoned

    def _parent(self) -> tuple[str | None, str | None]:
        """Return the parent session and the relation to it. Old clients copied its records into a resumed session."""
        if self.agent_of == "":
            return self._first_session_id, "sub-agent"
        if self._forked_from:
            return self._forked_from, "fork"
        is_resumed = self._first_session_id not in ("", self.session_id)
        return (self._first_session_id, "resume") if is_resumed else (None, None)

    def _drop_times_of_resume(self) -> None:
        """Drop the times of answers that are later than the next question.

        The client may rewrite a resumed session: answers then have the time of the resume, questions their own time.
        """
        latest: datetime | None = None
        questions = []
        for draft in self.drafts:
            is_question = draft.role is Role.USER and draft.origin in self._question_ids
            if is_question and draft.at and (not latest or draft.at >= latest):
                latest = draft.at
                questions.append(draft)
        next_question_at: datetime | None = None
        for draft in reversed(self.drafts):
            if next_question_at and draft.at and draft.at > next_question_at:
                draft.at = None
            if questions and draft is questions[-1]:
                next_question_at = questions.pop().at

    # The user's records

    def _read_user(self, record: Record) -> None:
        content = value_at(record, "message", "content")
        for block in objects(content):
            if "tool_use_id" in block:
                self._add_result(block, record)
        self._add_pieces(record, content)
        if attachments_in(content):
            last = self.drafts[-1] if self.drafts else None
            if last and self.record_id and last.origin == self.record_id and last.role is not Role.TOOL:
                self.attach(last, content)
            else:
                self.say(Role.USER, "", content=content)

    def _add_pieces(self, record: Record, content: object) -> None:
        flags = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
        is_injected = any(record.get(flag) for flag in flags) or record.get("promptSource") == "system"
        texts = [text for text in texts_in(content) if text.strip()]
        pieces = (Piece(Role.SYSTEM, text) for text in texts) if is_injected else pieces_of(texts)
        for index, piece in enumerate(pieces):
            draft = self._add_piece(record, piece, f":{index}" if index else "")
            if record.get("isCompactSummary"):
                draft.more["compaction"] = {}

    def _add_piece(self, record: Record, piece: Piece, part: str) -> drafts.Draft:
        if piece.role is Role.SYSTEM:
            return self.inject(piece.text, part)
        draft = self.say(piece.role, piece.text, part)
        self._typed[self.record_id] = self._parents.get(self.record_id, "")
        if record.get("type") == "user":
            self._question_ids.add(self.record_id)
        if piece.command:
            draft.more["command"] = piece.command
        if piece.command == "/rename" and (title := piece.text.removeprefix("/rename").strip()):
            self.titles["/rename"] = title
        return draft

    def _add_result(self, block: Record, record: Record) -> None:
        """Set the result of a call; add the call if it is not in the file."""
        call_id = string(block.get("tool_use_id"))
        draft = self._add_call({"id": call_id})
        result, structured = content_text(block.get("content")), record.get("toolUseResult")
        draft.set_result(self.output_of(result) or result, _status(block, result, structured))
        self.attach(draft, block.get("content"))

    def _read_attachment(self, record: Record) -> None:
        """Add a prompt that was typed while the client was busy, or attach a file to the previous prompt."""
        given = mapping(record.get("attachment"))
        if given.get("type") == "queued_command":
            self._add_pieces(record, given.get("prompt"))
            return
        name = string(given.get("filename"))
        question = next((draft for draft in reversed(self.drafts[-20:]) if draft.role is Role.USER), None)
        if name and question and given.get("type") in ("file", "directory"):
            question.attach(name)

    # The model's records

    def _read_assistant(self, record: Record) -> None:
        message = mapping(record.get("message"))
        before = len(self.drafts)
        for block in blocks_of(message.get("content")):
            kind = string(block.get("type"))
            if kind == "text":
                text = string(block.get("text")).strip()
                is_error = record.get("isApiErrorMessage") or message.get("model") == _SYNTHETIC
                if text not in ("(no content)", "No response requested."):
                    self._add_part(record, Role.ERROR if is_error else Role.ASSISTANT, text)
            elif kind == "thinking":
                self._add_part(record, Role.THINKING, string(block.get("thinking")).strip())
            elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
                self._add_call(block)
            elif "tool_use_id" in block:
                self._add_result(block, record)
            elif kind not in ("redacted_thinking", "image", "document"):
                self.count_unknown("block", kind)
        self._count_tokens(message, self.drafts[before:])

    def _add_part(self, record: Record, role: Role, text: str) -> None:
        """Add a part of an answer, which is spread over records with the same message id."""
        if not text:
            return
        message_id = text_at(record, "message", "id") or self.record_id
        if message_id and (draft := self._parts.get((message_id, role))):
            draft.add(text)
            return
        native_id = f"{message_id}:thinking" if role is Role.THINKING and message_id else message_id
        self._parts[message_id, role] = self.say(role, text, native_id=native_id)

    def _add_call(self, block: Record) -> drafts.Draft:
        call_id = string(block.get("id"))
        if call_id in self.calls:
            return self.calls[call_id]
        return self.call(call_id, block.get("name"), block.get("input", {}))

    def _count_tokens(self, message: Record, new: list[drafts.Draft]) -> None:
        """Store the largest counts with the first message of an answer, because they grow from record to record."""
        message_id = string(message.get("id"))
        counts = usage_of(message.get("usage"))
        if not counts or not message_id:
            return
        known = self._usage.setdefault(message_id, {})
        for key, count in counts.items():
            known[key] = max(known.get(key, 0), count)
        if new and message_id not in self._counted:
            self._counted.add(message_id)
            new[0].more["usage"] = known

    # The client's records

    def _read_system(self, record: Record) -> None:
        subtype = string(record.get("subtype"))
        if subtype == "api_error":
            error, cause = record.get("error"), record.get("cause")  # the format has changed several times
            texts = (record.get("content"), text_at(error, "message"), error, text_at(cause, "message"))
            text = next(filter(None, map(string, texts)), "") or content_text(error)
            self.say(Role.ERROR, text or "API error")
        elif subtype == "compact_boundary":
            about = storable(mapping(record.get("compactMetadata")))
            self.inject(string(record.get("content")) or "Conversation compacted", compaction=about)
        elif subtype == "local_command":
            self._add_pieces(record, record.get("content"))
        elif subtype in KEPT_SYSTEM:
            for text in texts_in(record.get("content")):
                self.inject(text)
        elif not subtype.startswith(IGNORED_SYSTEM):
            self.count_unknown("system record", subtype)


def _status(block: Record, result: str, structured: object) -> str:
    """Return a call's status, by its result block, its text and its structured output."""
    if not block.get("is_error"):
        return drafts.COMPLETED
    refusals = ("The user doesn't want to proceed", "The user doesn't want to take this action")
    is_refused = result.startswith(refusals) or string(structured).startswith("User rejected")
    return drafts.REJECTED if is_refused else drafts.FAILED
