"""Parse a conversation of a Claude.ai export. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role, Session
from sources.base import Skipped
from sources.exports import provider
from sources.kit import drafts
from sources.kit.contents import content_text
from sources.kit.loose_json import Record, items, mapping, objects, string, text_at

_IGNORED = ("token_budget", "flag", "image", "document")
_SILENT = ("text", "", *_IGNORED)


def read(record: Record, skips: Counter[Skipped]) -> Session:
    """Parse a conversation; count unknown contents in `skips`."""
    messages = _by_id(objects(record.get("chat_messages")))
    times = {name: drafts.moment(message.get("created_at")) for name, message in messages.items()}
    parser = _Reading(CLAUDE_EXPORT.identity(record), skips=skips, _usual_model=string(record.get("model")))
    leaf = string(record.get("current_leaf_message_uuid"))
    for name, is_live in provider.walk(_parents_of(messages), times, leaf):
        before = len(parser.drafts)
        parser.begin(name, times[name])
        parser.read(messages[name])
        drafts.supersede(() if is_live else parser.drafts[before:])
    provider.unique_ids(parser.drafts)
    return parser.build(
        record.get("name"),
        record.get("summary"),
        project=text_at(record, "project", "name"),
        model=string(record.get("model")),
        summary=string(record.get("summary")),
        began=drafts.moment(record.get("created_at")) or record.get("updated_at"),
    )


def _by_id(messages: list[Record]) -> dict[str, Record]:
    """Return the messages by id, or by position if the id is missing or repeated."""
    named: dict[str, Record] = {}
    for position, message in enumerate(messages):
        message_id = string(message.get("uuid"))
        named[message_id if message_id and message_id not in named else f"message {position}"] = message
    return named


def _parents_of(messages: Mapping[str, Record]) -> dict[str, str]:
    """Return the parent of each message: in older exports, which have no parents, the previous one."""
    parents = {name: string(message.get("parent_message_uuid")) for name, message in messages.items()}
    if any(parent in messages for parent in parents.values()):
        return parents
    return dict(zip(messages, ["", *messages], strict=False))


@dataclass(slots=True)
class _Reading(drafts.Conversation):
    _open: list[drafts.Draft] = field(default_factory=list)  # calls without a result
    _texts: list[drafts.Draft] = field(default_factory=list)  # texts of the current message, without thinking and calls
    _new: int = 0  # position in `drafts` at which the current message begins
    _role: Role = Role.USER
    _usual_model: str = ""

    def read(self, message: Record) -> None:
        is_question = message.get("sender") == "human"
        self._role, self.model = (Role.USER, "") if is_question else (Role.ASSISTANT, self._usual_model)
        self._new, self._texts = len(self.drafts), []
        blocks = [mapping(block) or {"type": "text", "text": block} for block in items(message.get("content"))]
        for block in blocks:
            self._block(block)
        # with other blocks, the text is a placeholder: "This block is not supported on your current device yet."
        if not self._texts and not any(string(block.get("type")) not in _SILENT for block in blocks):
            self._text(message)
        self._attached(message)

    def _block(self, block: Record) -> None:
        kind = string(block.get("type"))
        if handler := _BLOCKS.get(kind):
            handler(self, block)
        elif kind not in _IGNORED:
            self.count_unknown("block", kind)
            self._text(block)

    def _text(self, block: Record) -> None:
        """Add a text; consecutive texts are joined to one message, unless a call is between them."""
        text = string(block.get("text")).strip()
        if not text:
            return
        if self._texts and self._texts[-1] is self.drafts[-1]:
            self._texts[-1].add(text)
        else:
            self._begin_text(text)

    def _begin_text(self, text: str, **more: Any) -> None:
        earlier = len(self._texts)
        self._texts.append(self.say(self._role, text, f":{earlier}" if earlier else "", **more))

    def _thinking(self, block: Record) -> None:
        summaries = (text_at(summary, "summary") for summary in items(block.get("summaries")))
        text = string(block.get("thinking")).strip() or "\n\n".join(filter(None, summaries))
        self.say(Role.THINKING, text, self._new_part("thinking"))

    def _call(self, block: Record) -> drafts.Draft:
        name, params = string(block.get("name")) or "tool", block.get("input")
        draft = self.call(string(block.get("id")) or self.record_id + self._new_part("call"), name, params)
        provider.show_document(draft, params)
        if server := string(block.get("integration_name")):
            draft.more["tool"]["server"] = server
        self._open.append(draft)
        return draft

    def _result(self, block: Record) -> None:
        call_id, name = string(block.get("tool_use_id")), string(block.get("name"))
        # without an id: the first call of that name that has no result, or else the first one of any name
        waiting = (each for each in self._open if each.more["tool"]["name"] == name)
        call = self.calls.get(call_id) if call_id else next(waiting, next(iter(self._open), None))
        if call is None:
            call = self._call({"id": call_id, "name": name})
        content = block.get("content")
        texts = map(_result_item, content) if isinstance(content, list) else [content_text(content)]
        result = "\n\n".join(filter(None, texts))
        provider.append_result(call, result, drafts.result_status(block.get("is_error")))
        self._open = [each for each in self._open if each is not call]

    def _attached(self, message: Record) -> None:
        """Attach files by name; add the contents of text files and long pastes as injected messages."""
        kinds = (("attachments", "pasted text"), ("files", "file"))
        files = [(mapping(file), kind) for key, kind in kinds for file in items(message.get(key))]
        for number, (file, kind) in enumerate(files):
            name = string(file.get("file_name")) or kind
            if self._texts:
                self._texts[-1].attach(name)
            else:
                self._begin_text("", attachments=[name])
            if text := string(file.get("extracted_content")).strip():
                self.inject(f"[{name}]\n\n{text}", f":attachment:{number}")

    def _new_part(self, kind: str) -> str:
        return f":{kind}:{len(self.drafts) - self._new}"


def _result_item(item: object) -> str:
    """Return the text of one item; for a page, also its title and URL."""
    given = mapping(item)
    texts = [string(given.get(key)) for key in ("title", "url", "text")]
    if given.get("type") == "image":
        return f"[{string(given.get('file_name')) or 'image'}]"
    return "\n".join(filter(None, texts)) or content_text(item if isinstance(item, str) else [item])


_BLOCKS: dict[str, Callable[[_Reading, Record], object]] = {
    "text": _Reading._text,
    "voice_note": _Reading._text,
    "thinking": _Reading._thinking,
    "tool_use": _Reading._call,
    "tool_result": _Reading._result,
}


_CHANGING = ("name", "summary", "current_leaf_message_uuid")
CLAUDE_EXPORT = provider.Provider("claude.ai", "chat_messages", ("uuid",), "updated_at", read, _CHANGING)
