"""Parse the records of one Codex thread: legacy, flat and paginated. Pure."""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import inf
from typing import Any, NamedTuple

from registry.domain import Role, Session
from sources.codex import records, tools
from sources.codex.records import pieces_of
from sources.codex.tools import RUNNERS
from sources.kit import drafts
from sources.kit.contents import attachments_in, texts_in
from sources.kit.loose_json import Record, items, mapping, string, text_at, value_at
from sources.kit.token_counts import usage_of


class Layer(IntEnum):
    """The kind of a record. Codex writes each text in up to three kinds; the lowest one in a turn counts."""

    ITEM = 0
    EVENT = 1
    RESPONSE = 2
    ALONE = 3  # texts that are written only once


class LayeredMessage(NamedTuple):
    """A message with its layer and turn, its position among all entries, and the ordinal of its record."""

    draft: drafts.Draft
    layer: Layer
    turn: str
    position: int
    ordinal: float

    @property
    def group(self) -> str:
        if self.layer is Layer.ALONE:
            return "alone"
        return {Role.TOOL: "tool", Role.THINKING: "thought"}.get(self.draft.role, "said")

    @property
    def attached(self) -> int:
        return len(self.draft.more.get("attachments", ()))

    @property
    def call_id(self) -> str:
        return string(self.draft.more.get("native_id"))


class Rollback(NamedTuple):
    """An undo by the user at a position: of a number of turns, or of all records from an ordinal on."""

    position: int
    turns: int = 0
    ordinal: float = inf


def deduplicate(entries: Sequence[LayeredMessage]) -> list[LayeredMessage]:
    """Return the entries of the lowest layer in their turn, and for calls the entries of what was executed.

    Turns of one thread may be of different versions of Codex. A call that the model requested is left out if an event
    or item describes its execution. In a turn with items, a script that still runs is left out, too: items with other
    ids will describe its commands.
    """
    best: dict[tuple[str, str], Layer] = {}
    for entry in entries:
        key = entry.turn, entry.group
        best[key] = min(best.get(key, Layer.ALONE), entry.layer)
    described = [entry for entry in entries if entry.group == "tool" and entry.layer < Layer.RESPONSE]
    turns, calls = {entry.turn for entry in described}, {entry.call_id for entry in described}
    with_items = {entry.turn for entry in entries if entry.layer is Layer.ITEM}

    def is_first(entry: LayeredMessage) -> bool:
        if entry.group != "tool":
            return entry.layer == best[entry.turn, entry.group]
        is_runner = entry.draft.more["tool"]["name"] in RUNNERS
        is_running = entry.draft.more["tool"]["status"] == drafts.PENDING and entry.turn in with_items
        is_described = entry.call_id in calls or (is_runner and (is_running or entry.turn in turns))
        return entry.layer < Layer.RESPONSE or not is_described

    kept = [entry for entry in entries if is_first(entry)]
    _lend_images(entries, kept)
    return kept


def _lend_images(entries: Iterable[LayeredMessage], kept: Iterable[LayeredMessage]) -> None:
    """Copy the images of prompts from the requests to the model: other records only name a pasted image's file."""
    sent: dict[tuple[str, int], deque[dict[int, bytes]]] = defaultdict(deque)
    for entry in entries:
        if entry.layer is Layer.RESPONSE and entry.attached:
            sent[entry.turn, entry.attached].append(entry.draft.images)
    for entry in kept:
        if entry.layer is not Layer.RESPONSE and (images := sent[entry.turn, entry.attached]):
            entry.draft.images |= images.popleft()


def mark_rolled_back(entries: Sequence[LayeredMessage], rollbacks: Iterable[Rollback]) -> None:
    """Mark the messages that the user rolled back."""
    following, remaining = deque(entries), list[LayeredMessage]()
    for position, turns, ordinal in rollbacks:
        while following and following[0].position < position:
            remaining.append(following.popleft())
        while remaining and (turns > 0 or remaining[-1].ordinal >= ordinal):
            draft = remaining.pop().draft
            drafts.supersede([draft])
            turns -= draft.role is Role.USER


@dataclass(slots=True)
class Rollout(drafts.Conversation):
    """Builds a thread from its records in order.

    `copied`: ids of turns copied from the parent thread; their tokens are not counted again. `is_agent`: the file is a
    sub-agent's, so that copied turns are left out. `name`: the user's name for the thread.
    """

    copied: Collection[str] = ()
    is_agent: bool = False
    name: str = ""
    _meta: Record = field(default_factory=dict)
    _entries: list[LayeredMessage] = field(default_factory=list)
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _message_counts: Counter[tuple[str, Role, Layer]] = field(default_factory=Counter)
    _rollbacks: list[Rollback] = field(default_factory=list)
    _ordinal: float = -inf
    _turn: str = ""
    _is_copy: bool = False
    _total: Record = field(default_factory=dict)
    _usage: Counter[str] = field(default_factory=Counter)
    _counted_to: int = 0

    def read(self, record: Record) -> None:
        kind, payload = records.unwrapped(record)
        self.begin("", record.get("timestamp"))
        ordinal = record.get("ordinal")
        self._ordinal = ordinal if isinstance(ordinal, int) else -inf
        if turn := string(payload.get("turn_id")):
            self._turn, self._is_copy = turn, turn in self.copied
        if kind == "session_meta":
            self._read_meta(payload)
        elif self._is_inherited(record):
            if payload.get("type") == "token_count":
                self._token_growth(payload)
        elif kind == "turn_context":
            self.add_folder(payload.get("cwd"))
            self.model = string(payload.get("model")) or self.model
            self._turn = self._turn if "turn_id" in payload else f"turn {len(self._entries)}"
        elif kind == "response_item":
            if not value_at(record, "metadata", "compaction_output"):  # the summary, which `compacted` repeats
                self._read_response(payload)
        elif kind == "event_msg":
            self._read_event(payload, string(payload.get("type")))
        elif kind == "compacted":
            self._inject(string(payload.get("message")) or "Conversation compacted", compaction={})
        elif kind not in records.IGNORED_RECORDS:
            self.count_unknown("record", kind)

    def session(self) -> Session:
        """Return the thread as read so far, without duplicates, with rolled back turns marked."""
        entries = deduplicate(self._entries[:-1] if self._awaits_item() else self._entries)
        mark_rolled_back(entries, self._rollbacks)
        self.drafts = [entry.draft for entry in entries]
        parent, relation = records.parent_of(self._meta)
        self.session_id = string(self._meta.get("id")) or self.session_id
        return self.build(
            self.name,
            parent=parent,
            began=self._meta.get("timestamp"),  # flat lines have no time of their own
            relation=relation,
        )

    def _awaits_item(self) -> bool:
        """Return True while a prompt is the last entry and its item, which has another id, is not yet written."""
        if self._meta.get("history_mode") != "paginated" or not self._entries:
            return False
        last = self._entries[-1]
        return last.layer is Layer.RESPONSE and last.draft.role is Role.USER

    def _is_inherited(self, record: Record) -> bool:
        start, ordinal = self._meta.get("subagent_history_start_ordinal"), record.get("ordinal")
        if isinstance(start, int) and isinstance(ordinal, int):
            return ordinal < start
        return self._is_copy and self.is_agent

    # Records

    def _read_meta(self, payload: Record) -> None:
        """Store the first metadata; later ones are of the threads from which records were copied."""
        if not self._meta:
            self._meta = payload
            self.add_folder(payload.get("cwd"))
        else:
            self._is_copy = bool(self.copied)
        base = mapping(payload.get("history_base"))
        end = base.get("end_ordinal_exclusive")
        if base.get("thread_id") == payload.get("id") and isinstance(end, int):  # rewound into this new file
            self._rollbacks.append(Rollback(len(self._entries), ordinal=end))

    def _read_response(self, payload: Record) -> None:
        kind = string(payload.get("type"))
        if kind == "message":
            self._add_message(payload)
        elif kind == "reasoning":
            for key in ("summary", "content"):
                thought = "\n\n".join(texts_in(payload.get(key)))
                self._add_entry(self.say(Role.THINKING, thought), Layer.RESPONSE)
        elif kind in tools.CALLS:
            self._add_call(tools.requested_call(payload), Layer.RESPONSE)
        elif kind in tools.OUTPUTS:
            call_id = string(payload.get("call_id"))
            if call_id not in self.calls:  # it is not in the file
                self._add_call(tools.ToolRun(call_id, "tool", {}, None, drafts.PENDING), Layer.RESPONSE)
            self.set_result(call_id, *tools.parse_output(payload.get("output")))
        elif kind == "agent_message":  # between agents; the task in it may be encrypted
            self._inject("\n\n".join(texts_in(payload.get("content"))))
        elif kind not in records.IGNORED_RESPONSES:
            self._note_unknown("response", kind, payload)

    def _add_message(self, payload: Record) -> None:
        texts, role = texts_in(payload.get("content")), payload.get("role")
        if role == "assistant":
            self._add_answer("\n\n".join(texts), Layer.RESPONSE, payload)
        elif role == "user":
            self._add_question(texts, payload.get("content"), Layer.RESPONSE, payload)
        else:
            self._inject("\n\n".join(texts))

    def _read_event(self, payload: Record, kind: str) -> None:
        text = string(payload.get("message")) or string(payload.get("text"))
        if kind in tools.EVENTS:
            self._add_call(tools.EVENTS[kind](payload), Layer.EVENT)
        elif kind == "user_message":
            pictures = [{"type": "image", "image_url": url} for url in items(payload.get("images"))]
            pictures += [{"type": "image"} for _ in items(payload.get("local_images"))]
            self._add_question([text], pictures, Layer.EVENT, payload)
        elif kind == "agent_message":
            self._add_answer(text, Layer.EVENT, payload)
        elif kind == "agent_reasoning":
            self._add_entry(self.say(Role.THINKING, text), Layer.EVENT)
        elif kind == "item_completed":
            self._read_item(payload)
        elif kind == "thread_rolled_back":
            if isinstance(turns := payload.get("num_turns"), int):
                self._rollbacks.append(Rollback(len(self._entries), turns))
        elif kind == "thread_name_updated":
            self.name = string(payload.get("thread_name")) or self.name
        elif kind == "token_count":
            self._count_tokens(payload)
        elif kind == "error":
            self._add_entry(self.say(Role.ERROR, text or "error"), Layer.ALONE)
        elif kind == "turn_aborted":
            self._inject(f"[Turn aborted: {string(payload.get('reason')) or 'no reason given'}]")
        elif not kind.startswith(records.IGNORED_EVENTS):
            self.count_unknown("event", kind)

    def _count_tokens(self, payload: Record) -> None:
        """Store the tokens of a response with its answer, or with the next answer if it has only tool calls."""
        counted = self._token_growth(payload)
        if not any(counted.values()):
            return  # only the account's limits changed
        if not self._is_copy:  # copied turns are counted in the parent thread
            self._usage.update(usage_of(counted, cache_in_input=True))
        since = (each for each in self._entries[self._counted_to :] if each.draft.role is Role.ASSISTANT)
        answers = {each.layer: each.draft for each in since if each.layer is not Layer.ALONE}
        for draft in answers.values():
            draft.more["usage"] = dict(self._usage)
        if answers:
            self._usage.clear()
        self._counted_to = len(self._entries)

    def _token_growth(self, payload: Record) -> dict[str, int]:
        """Return the growth of the thread's total; the last count for the first total, which may include a parent's."""
        info = mapping(payload.get("info"))
        total, last = (mapping(info.get(name)) for name in ("total_token_usage", "last_token_usage"))
        total = {name: count for name, count in total.items() if isinstance(count, int)}
        if not total:
            return {}
        grown = {name: count - self._total.get(name, 0) for name, count in total.items()}
        is_restarted = not self._total or min(grown.values()) < 0
        self._total = total
        return last or total if is_restarted else grown

    def _read_item(self, payload: Record) -> None:
        item = mapping(payload.get("item"))
        kind = string(item.get("type"))
        kind = kind[:1].upper() + kind[1:]
        identity = (self._turn, string(item.get("id")))
        if identity[1] and identity in self._seen:
            return
        self._seen.add(identity)
        if kind in tools.ITEMS:
            self._add_call(tools.ITEMS[kind](item), Layer.ITEM)
        elif kind == "UserMessage":
            self._add_question(texts_in(item.get("content")), item.get("content"), Layer.ITEM, item)
        elif kind in ("AgentMessage", "Plan"):
            text = "\n\n".join(texts_in(item.get("content"))) or string(item.get("text"))
            self._add_answer(text, Layer.ALONE if kind == "Plan" else Layer.ITEM, item)
        elif kind == "Reasoning":
            given = (item.get(key) for key in ("summary_text", "summaryText", "summary", "text"))
            texts = (text for each in given for text in ([each] if isinstance(each, str) else items(each)))
            thought = "\n\n".join(text_at(text, "text") or string(text) for text in texts)
            self._add_entry(self.say(Role.THINKING, thought), Layer.ITEM)
        elif kind not in records.IGNORED_ITEMS:
            self._note_unknown("item", kind, item)

    def _note_unknown(self, what: str, kind: str, given: Record) -> None:
        self.count_unknown(what, kind)
        self._inject("\n\n".join(texts_in(given.get("content"))))

    # Messages

    def _add_entry(self, draft: drafts.Draft, layer: Layer) -> None:
        if draft.parts or "attachments" in draft.more:
            self._entries.append(LayeredMessage(draft, layer, self._turn, len(self._entries), self._ordinal))

    def _inject(self, text: str, **more: Any) -> None:
        self._add_entry(self.inject(text, **more), Layer.ALONE)

    def _add_question(self, texts: Iterable[str], content: object, layer: Layer, given: Record) -> None:
        pieces = [piece for text in texts for piece in pieces_of(text)]
        for text in (text for role, text in pieces if role is Role.SYSTEM):
            self._inject(text)
        typed = "\n\n".join(text for role, text in pieces if role is Role.USER)
        if typed or attachments_in(content):
            native_id = self._message_id(given, Role.USER, layer)
            self._add_entry(self.say(Role.USER, typed, native_id=native_id, content=content), layer)

    def _add_answer(self, text: str, layer: Layer, given: Record) -> None:
        if text.strip():
            native_id, phase = self._message_id(given, Role.ASSISTANT, layer), string(given.get("phase"))
            self._add_entry(self.say(Role.ASSISTANT, text, native_id=native_id, phase=phase), layer)

    def _add_call(self, ran: tools.ToolRun, layer: Layer) -> None:
        draft = drafts.tool_draft(ran.call_id, ran.name, ran.params, self.at, folder=self.folder)
        draft.more |= {"model": self.model} if self.model else {}
        if ran.result is not None:
            draft.set_result(ran.result, ran.status)
        draft.more["tool"]["status"] = ran.status
        if layer is Layer.RESPONSE:
            self.calls[ran.call_id] = draft
        self._add_entry(draft, layer)

    def _message_id(self, given: Record, role: Role, layer: Layer) -> str:
        """Return the id of a message, prefixed by its turn, because ids are unique only within a turn.

        The id of an event is its number among those of its role in the turn, which is stable as the file only grows.
        """
        self._message_counts[self._turn, role, layer] += 1
        message_id = string(given.get("id")) or f"{role} {self._message_counts[self._turn, role, layer]}"
        return f"{self._turn}:{message_id}" if self._turn else message_id
