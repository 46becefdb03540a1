"""What the records of one Codex thread say: legacy, flat and paginated. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from registry.domain import Role, Session, preview_of
from sources.base import Skipped
from sources.codex import records, tools
from sources.codex.layers import Entry, Layer, mark_rolled_back, told_once
from sources.codex.records import pieces_of
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string

TITLE_WIDTH = 80
_USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_input_tokens": "cache_read_input_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
}


@dataclass(slots=True)
class Rollout:
    """One thread in the making: hand it the records in order, then ask for the session.

    `inherited`: turns that belong to the parent of a sub-agent, copied into its file; they are left out.
    """

    session_id: str
    inherited: Collection[str] = ()
    name: str = ""
    unknown: Counter[str] = field(default_factory=Counter)
    _meta: Record = field(default_factory=dict)
    _entries: list[Entry] = field(default_factory=list)
    _calls: dict[str, Draft] = field(default_factory=dict)
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _rollbacks: list[tuple[int, int]] = field(default_factory=list)
    _folders: dict[str, None] = field(default_factory=dict)
    _turn: str = ""
    _is_copy: bool = False
    _model: str = ""
    _at: datetime | None = None
    _total: object = None
    _usage: Counter[str] = field(default_factory=Counter)
    _counted_to: int = 0

    def read(self, record: Record) -> None:
        """Take in one record; what is not understood is counted in `unknown`."""
        kind, payload = records.unwrapped(record)
        self._at = drafts.moment(record.get("timestamp"))
        if turn := string(payload.get("turn_id")):
            self._turn, self._is_copy = turn, turn in self.inherited
        handler = _RECORDS.get(kind)
        if handler is None:
            self.unknown[f"record {kind or 'without type'}"] += 1
        elif handler is Rollout._session_meta or not self._is_inherited(record):
            handler(self, payload)

    def session(self) -> Session:
        """The thread as read so far, each text once; turns that were rolled back are marked."""
        kept = told_once(self._entries)
        mark_rolled_back(kept, self._rollbacks)
        known = {"version": self._meta.get("cli_version"), "branch": mapping(self._meta.get("git")).get("branch")}
        known |= {"agent": self._meta.get("agent_nickname") or self._meta.get("agent_role")}
        title_from, title = self._title(each.entry.draft for each in kept)
        parent, relation = records.parent_of(self._meta)
        meta = {"title_from": title_from, "relation": relation, **{key: string(known[key]) for key in known}}
        began = drafts.moment(self._meta.get("timestamp"))  # flat lines have no time of their own
        return Session(
            session_id=string(self._meta.get("id")) or self.session_id,
            messages=drafts.messages_of((each.entry.draft for each in kept), began),
            title=title,
            project=drafts.project_of(self._folders),
            parent=parent,
            meta={key: value for key, value in meta.items() if value},
        )

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    def _title(self, kept: Iterable[Draft]) -> tuple[str, str] | tuple[None, None]:
        if self.name.strip():
            return "thread name", preview_of(self.name, 4 * TITLE_WIDTH)
        words = next((draft.parts[0] for draft in kept if draft.role is Role.USER and draft.parts), "")
        return ("first words", preview_of(words, TITLE_WIDTH)) if words else (None, None)

    def _is_inherited(self, record: Record) -> bool:
        start, ordinal = self._meta.get("subagent_history_start_ordinal"), record.get("ordinal")
        if isinstance(start, int) and isinstance(ordinal, int):
            return ordinal < start
        return self._is_copy

    # Records

    def _session_meta(self, payload: Record) -> None:
        """The first is this thread's; later ones are those of the threads it was copied from."""
        if not self._meta:
            self._meta = payload
            self._folders[string(payload.get("cwd"))] = None
        else:
            self._is_copy = bool(self.inherited)

    def _turn_context(self, payload: Record) -> None:
        self._folders[string(payload.get("cwd"))] = None
        self._model = string(payload.get("model")) or self._model
        if "turn_id" not in payload:
            self._turn = f"turn {len(self._entries)}"

    def _compacted(self, payload: Record) -> None:
        draft = self._context(string(payload.get("message")) or "Conversation compacted")
        draft.more["compaction"] = {}

    def _response(self, payload: Record) -> None:
        kind = string(payload.get("type"))
        if kind == "message":
            self._said(payload)
        elif kind == "reasoning":
            for key in ("summary", "content"):
                self._thought("\n\n".join(drafts.texts_in(payload.get(key))), Layer.RESPONSE)
        elif kind in tools.CALLS:
            self._ran(tools.asked(payload), Layer.RESPONSE)
        elif kind in tools.OUTPUTS:
            self._answered(payload)
        elif kind not in records.IGNORED_RESPONSES:
            self.unknown[f"response {kind or 'without type'}"] += 1

    def _said(self, payload: Record) -> None:
        texts, role = drafts.texts_in(payload.get("content")), payload.get("role")
        if role == "assistant":
            self._answer("\n\n".join(texts), Layer.RESPONSE, payload)
        elif role == "user":
            self._prompt(texts, payload.get("content"), Layer.RESPONSE, payload)
        else:
            self._context("\n\n".join(texts))

    def _event(self, payload: Record) -> None:
        kind = string(payload.get("type"))
        if kind in tools.EVENTS:
            self._ran(tools.EVENTS[kind](payload), Layer.EVENT)
        elif handler := _EVENTS.get(kind):
            handler(self, payload)
        elif kind not in records.IGNORED_EVENTS:
            self.unknown[f"event {kind or 'without type'}"] += 1

    def _user_message(self, payload: Record) -> None:
        pictures = [{"type": "image"} for key in ("images", "local_images") for _ in items(payload.get(key))]
        self._prompt([string(payload.get("message"))], pictures, Layer.EVENT, payload)

    def _rolled_back(self, payload: Record) -> None:
        if isinstance(turns := payload.get("num_turns"), int):
            self._rollbacks.append((len(self._entries), turns))

    def _renamed(self, payload: Record) -> None:
        self.name = string(payload.get("thread_name")) or self.name

    def _counted(self, payload: Record) -> None:
        """What a response has cost stands behind it; of one that only called tools, it counts for the next answer."""
        info = mapping(payload.get("info"))
        told, total = mapping(info.get("last_token_usage")), info.get("total_token_usage")
        if not total or total == self._total:
            return  # only the account's limits are new
        self._total = total
        self._usage.update({ours: told[kind] for kind, ours in _USAGE.items() if isinstance(told.get(kind), int)})
        since = (each for each in self._entries[self._counted_to :] if each.draft.role is Role.ASSISTANT)
        answers = {each.layer: each.draft for each in since}
        for draft in answers.values():
            draft.more["usage"] = dict(self._usage)
        if answers:
            self._usage.clear()
        self._counted_to = len(self._entries)

    def _failed(self, payload: Record) -> None:
        self._put(Draft(Role.ERROR, [string(payload.get("message")) or "error"], self._at), Layer.ALONE)

    def _aborted(self, payload: Record) -> None:
        self._context(f"[Turn aborted: {string(payload.get('reason')) or 'no reason given'}]")

    def _item(self, payload: Record) -> None:
        item = mapping(payload.get("item"))
        kind = string(item.get("type"))
        kind = kind[:1].upper() + kind[1:]
        identity = (self._turn, string(item.get("id")))
        if identity[1] and identity in self._seen:
            return
        self._seen.add(identity)
        if kind in tools.ITEMS:
            self._ran(tools.ITEMS[kind](item), Layer.ITEM)
        elif handler := _ITEMS.get(kind):
            handler(self, item)
        elif kind not in records.IGNORED_ITEMS:
            self.unknown[f"item {kind or 'without type'}"] += 1

    def _user_item(self, item: Record) -> None:
        self._prompt(drafts.texts_in(item.get("content")), item.get("content"), Layer.ITEM, item)

    def _agent_item(self, item: Record) -> None:
        self._answer("\n\n".join(drafts.texts_in(item.get("content"))) or string(item.get("text")), Layer.ITEM, item)

    def _reasoning_item(self, item: Record) -> None:
        told = (item.get(key) for key in ("summary_text", "summaryText", "summary", "text"))
        texts = (text for each in told for text in ([each] if isinstance(each, str) else items(each)))
        self._thought("\n\n".join(string(mapping(text).get("text")) or string(text) for text in texts), Layer.ITEM)

    # Drafts

    def _put(self, draft: Draft, layer: Layer) -> Draft:
        self._entries.append(Entry(draft, layer, self._turn))
        return draft

    def _context(self, text: str) -> Draft:
        return self._put(Draft(Role.SYSTEM, [text] if text else [], self._at, {"injected": True}), Layer.ALONE)

    def _prompt(self, texts: Iterable[str], content: object, layer: Layer, given: Record) -> None:
        pieces = [piece for text in texts for piece in pieces_of(text)]
        for text in (text for role, text in pieces if role is Role.SYSTEM):
            self._context(text)
        typed = "\n\n".join(text for role, text in pieces if role is Role.USER)
        draft = Draft(Role.USER, [typed] if typed else [], self._at, self._identity(given))
        for name in filter(None, map(drafts.attachment_name, map(mapping, items(content)))):
            draft.attach(name)
        if typed or "attachments" in draft.more:
            self._put(draft, layer)

    def _answer(self, text: str, layer: Layer, given: Record) -> None:
        draft = Draft(Role.ASSISTANT, [], self._at, self._identity(given) | self._model_in_force())
        draft.add(text.strip())
        if phase := string(given.get("phase")):
            draft.more["phase"] = phase
        if draft.parts:
            self._put(draft, layer)

    def _thought(self, text: str, layer: Layer) -> None:
        if text.strip():
            self._put(Draft(Role.THINKING, [text.strip()], self._at, dict(self._model_in_force())), layer)

    def _ran(self, ran: tools.Ran, layer: Layer) -> None:
        draft = drafts.tool_draft(ran.call_id, ran.name, ran.params, self._at, folder=next(iter(self._folders), ""))
        draft.more |= self._model_in_force()
        if ran.result is not None:
            drafts.answer(draft, ran.result, ran.status)
        draft.more["tool"]["status"] = ran.status
        if layer is Layer.RESPONSE:
            self._calls[ran.call_id] = draft
        self._put(draft, layer)

    def _answered(self, payload: Record) -> None:
        """The result of a call; one whose call is not in the file is kept all the same."""
        call_id = string(payload.get("call_id"))
        if call_id not in self._calls:
            self._ran(tools.Ran(call_id, "tool", {}, None, drafts.PENDING), Layer.RESPONSE)
        drafts.answer(self._calls[call_id], *tools.outcome(payload.get("output")))

    def _identity(self, given: Record) -> Record:
        """Ids of items start anew in each turn."""
        own = string(given.get("id"))
        return {"native_id": f"{self._turn}:{own}" if self._turn else own} if own else {}

    def _model_in_force(self) -> dict[str, str]:
        return {"model": self._model} if self._model else {}


_RECORDS: dict[str, Callable[[Rollout, Record], None]] = {
    "session_meta": Rollout._session_meta,
    "turn_context": Rollout._turn_context,
    "response_item": Rollout._response,
    "event_msg": Rollout._event,
    "compacted": Rollout._compacted,
    "session_state": lambda *_: None,
    "world_state": lambda *_: None,
    "token_usage_record": lambda *_: None,
}
_EVENTS: dict[str, Callable[[Rollout, Record], None]] = {
    "user_message": Rollout._user_message,
    "agent_message": lambda self, payload: self._answer(string(payload.get("message")), Layer.EVENT, payload),
    "agent_reasoning": lambda self, payload: self._thought(string(payload.get("text")), Layer.EVENT),
    "item_completed": Rollout._item,
    "thread_rolled_back": Rollout._rolled_back,
    "thread_name_updated": Rollout._renamed,
    "token_count": Rollout._counted,
    "error": Rollout._failed,
    "turn_aborted": Rollout._aborted,
}
_ITEMS: dict[str, Callable[[Rollout, Record], None]] = {
    "UserMessage": Rollout._user_item,
    "AgentMessage": Rollout._agent_item,
    "Plan": Rollout._agent_item,
    "Reasoning": Rollout._reasoning_item,
    "ContextCompaction": lambda *_: None,
}
