"""Parse a conversation of a ChatGPT export. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from registry.domain import Role, Session
from sources.base import Skipped
from sources.exports import provider
from sources.kit import drafts
from sources.kit.loose_json import Record, items, mapping, number, objects, parse_nested, string, text_at, value_at

RESULTS = ("execution_output", "computer_output", "tether_quote", "tether_browsing_display", "sonic_webpage")
# the duration of thinking, and what the client knows about the user, which must not be indexed
DROPPED = ("reasoning_recap", "model_editable_context", "user_editable_context")
_KNOWN = ("text", "multimodal_text", "code", "thoughts", "system_error", *RESULTS)
_MARK = re.compile("\ue200([^\ue200\ue201]{0,2000})\ue201|[\ue200-\ue206]|【\\d+(?::\\d+)?†[^】]{0,200}】")
_POINTERS = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "real_time_user_audio_video_asset_pointer": "recording",
}


def read(record: Record, skips: Counter[Skipped]) -> Session:
    """Parse a conversation; count unknown contents in `skips`."""
    nodes = mapping(record.get("mapping"))
    messages = {name: mapping(value_at(node, "message")) for name, node in nodes.items()}
    parents = {name: text_at(node, "parent") for name, node in nodes.items()}
    times = {name: drafts.moment(message.get("create_time")) for name, message in messages.items()}
    usual_model = string(record.get("default_model_slug"))
    parser = _Reading(CHATGPT_EXPORT.identity(record), skips=skips, parents=parents, _usual_model=usual_model)
    for name, is_live in provider.walk(parents, times, string(record.get("current_node"))):
        parser.message(name, messages[name], times[name], is_live=is_live)
    title = string(record.get("title"))
    provider.unique_ids(parser.drafts)
    began = drafts.moment(record.get("create_time")) or record.get("update_time")
    return parser.build("" if title in ("New chat", "New Chat") else title, model=usual_model, began=began)


@dataclass(slots=True)
class _Reading(drafts.Conversation):
    """Builds a conversation. `calls`: by node, its own call or the call of an ancestor."""

    parents: Mapping[str, str] = field(default_factory=dict)
    _usual_model: str = ""
    _times: dict[str, datetime | None] = field(default_factory=dict)

    def message(self, name: str, message: Record, at: datetime | None, *, is_live: bool) -> None:
        before = len(self.drafts)
        self._times[name] = at or self._times.get(self.parents[name])
        self.begin(name, self._times[name])
        self.model = text_at(message, "metadata", "model_slug") or self._usual_model
        content, metadata = mapping(message.get("content")), mapping(message.get("metadata"))
        if message and content.get("content_type") not in DROPPED:
            self._read_content(name, message, content, metadata)
        else:
            self._inherit_call(name)
        for draft in self.drafts[before:]:
            draft.more |= {} if is_live else {"superseded": True}
            draft.more |= {} if at or draft.at is None else {"time": "inferred"}

    def _read_content(self, name: str, message: Record, content: Record, metadata: Record) -> None:
        role, recipient = mapping(message.get("author")).get("role"), string(message.get("recipient")) or "all"
        kind = string(content.get("content_type"))
        if kind not in _KNOWN:
            self.count_unknown("content", kind)
        text = text_of(content)
        if role == "tool" or (kind in RESULTS and role != "user"):
            self._result(name, message, text)
        elif role == "assistant" and recipient != "all":
            self._call(name, recipient, text)
        elif kind == "thoughts":
            self.say(Role.THINKING, text)
            self._inherit_call(name)
        elif kind == "system_error":
            self.say(Role.ERROR, text)
        elif role == "assistant" and not _is_hidden(message, metadata):
            text = fenced(content, text) if kind == "code" else without_marks(text)
            self.say(Role.ASSISTANT, text, attachments=list(attachments(content, metadata)))
        elif role == "user" and not _is_hidden(message, metadata):
            self.say(Role.USER, text, attachments=list(attachments(content, metadata)))
        else:
            self.inject(text)
            self._inherit_call(name)

    def _call(self, name: str, tool: str, text: str) -> None:
        params = drafts.params_of(text) if text else {}
        provider.show_document(self.call(name, tool, params), params)

    def _result(self, name: str, message: Record, text: str) -> None:
        """Add a tool's result to the call of its ancestor; if there is none, add a call for it."""
        content, metadata = mapping(message.get("content")), mapping(message.get("metadata"))
        names = list(attachments(content, metadata))
        result = "\n\n".join(filter(None, (text, " ".join(f"[{each}]" for each in names))))
        self._inherit_call(name)
        if name not in self.calls:
            if not result:
                return
            self._call(name, text_at(message, "author", "name"), "")
        outcome = mapping(metadata.get("aggregate_result"))
        has_failed = bool(outcome.get("in_kernel_exception")) or string(outcome.get("status")).startswith("failed")
        status = drafts.result_status(has_failed or content.get("content_type") == "system_error")
        provider.append_result(self.calls[name], result, status)

    def _inherit_call(self, name: str) -> None:
        """Assign the parent's call to a node, because a result may be below another result or message."""
        if call := self.calls.get(self.parents[name]):
            self.calls[name] = call


def _is_hidden(message: Record, metadata: Record) -> bool:
    return bool(metadata.get("is_visually_hidden_from_conversation")) or number(message.get("weight")) == 0


# The content of one message


def text_of(content: Record) -> str:
    """Return the text of a content of any type, also of unknown ones."""
    kind = string(content.get("content_type"))
    if kind == "thoughts":
        thoughts = items(content.get("thoughts"))
        words = (text_at(thought, key).strip() for thought in thoughts for key in ("summary", "content"))
        return "\n\n".join(filter(None, words))
    texts = [string(content.get(key)) for key in ("title", "url", "name")] if kind in (*RESULTS, "system_error") else []
    # a part is a text, or the transcription of a voice chat
    texts += (string(part) or text_at(part, "text") for part in items(content.get("parts")))
    texts += [string(content.get(key)) for key in ("text", "result", "content")]
    return "\n\n".join(dict.fromkeys(filter(None, map(str.strip, texts))))


def without_marks(text: str) -> str:
    """Replace citation marks by the words in them, if any."""
    return _MARK.sub(_words_in, text).strip() if "\ue200" in text or "†" in text else text


def _words_in(mark: re.Match[str]) -> str:
    kind, *fields = (mark[1] or "").split("\ue202")
    if kind == "entity" and fields:
        named = items(parse_nested(fields[0]))
        return string(named[1]) if len(named) > 1 else ""
    return fields[0] if kind == "url" and fields else ""


def fenced(content: Record, text: str) -> str:
    """Return a code content that is not a tool call as a Markdown code block."""
    language = string(content.get("language"))
    return f"```{'' if language == 'unknown' else language}\n{text}\n```" if text else ""


def attachments(content: Record, metadata: Record) -> Iterator[str]:
    """Yield the names of attachments, and the kinds of images and recordings without a name."""
    named = objects(metadata.get("attachments"))
    ids = {string(each.get("id")) for each in named}
    yield from (string(each.get("name")) or "file" for each in named)
    for part in objects(content.get("parts")):
        kind = _POINTERS.get(string(part.get("content_type")))
        if kind and string(part.get("asset_pointer")).rpartition("/")[2] not in ids:
            yield kind


CHATGPT_EXPORT = provider.Provider(
    "chatgpt.com", "mapping", ("conversation_id", "id"), "update_time", read, ("title", "current_node", "gizmo_id")
)
