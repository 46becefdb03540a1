"""Messages as they are kept, made into rows of `conversation` as far as that needs no registry. Pure.

So another process can do it while this one stores others (`orchestrator.sync.reader_process`).

Of calls of our own tools, as clients keep them in their chats, only a mark stays, of what was asked. What they answer
is stored already, where it was said. Stored once more as part of the chat that asked, it would be found in place of the
conversation it came from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from registry.domain import IDENTITY, Message, Role, Session, as_json, digest_of, new_id, preview_of, storable
from registry.storage.index.index_entries import RECALL, UNINDEXED, scope_tokens
from registry.text.analysis.analyzer import ANALYZER_VERSION, analyze, tokens_of
from registry.text.privacy.masking import holds_secret, mask_value
from registry.text.privacy.secrets import without_private

SNAPSHOT = "notion_snapshot"  # record type of a page's snapshot
PAGES = frozenset({"notion"})  # the sources of pages

Row = dict[str, Any]
"""Fields of `conversation`; and `words`, by which it is found: all tokens but its channel's, parted by spaces."""


@dataclass(frozen=True, slots=True)
class Ready:
    """All messages of a session, none of which is a recall, as rows of a channel of their own."""

    rows: Sequence[Row]
    first: datetime
    last: datetime
    characters: int  # approximate size of texts and payloads


class Said(NamedTuple):
    """A message and its text as it can be stored, taken apart once: all words, and each of them."""

    message: Message
    text: str
    words: list[str]
    each: Mapping[str, None]

    @classmethod
    def of(cls, message: Message) -> Said:
        """Return the message with its words, as white space parts them."""
        text = storable(message.text)
        words = text.split()
        return cls(message, text, words, dict.fromkeys(words))


_PER_MESSAGE = ("file", "language", "model", "additional_context")


def of_the_moment(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata of the moment, not of the channel: it is stored with the new messages."""
    return {name: metadata[name] for name in _PER_MESSAGE if name in metadata}


def ready(session: Session, source: str) -> Ready | None:
    """A session that is new, if it is kept as it came; None where the registry has to decide something first."""
    moments = [message.timestamp for message in session.messages if message.timestamp]
    about = of_the_moment({name: held for name, held in session.meta.items() if held is not None})
    if not moments or len(moments) < len(session.messages) or not _is_kept_whole(about):
        return None
    said = list(map(Said.of, session.messages))
    if not all(map(_is_kept, said)):
        return None
    messages = [one if (kept := as_kept(one.message)) is one.message else Said.of(kept) for one in said]
    if any(is_recall(one.message) for one in messages):
        return None
    rows = rows_of(messages, source, about, moments[0])
    return Ready(rows, min(moments), max(moments), sum(len(row["text"]) + len(as_json(row["payload"])) for row in rows))


def _is_kept(said: Said) -> bool:
    message = said.message
    if _is_private(message.text) or holds_secret(message.text):
        return False
    if IDENTITY.issuperset(message.more) and not message.context:  # most of them
        return True
    about = {name: held for name, held in message.more.items() if name not in IDENTITY}
    return _is_kept_whole(about) and _is_kept_whole(message.context)


def _is_kept_whole(value: Any) -> bool:
    return not value or (not _is_private(value) and mask_value(value, b"any") == value)


def _is_private(value: Any) -> bool:
    if isinstance(value, str):
        return without_private(value) is not value
    held = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return any(map(_is_private, held))


def rows_of(messages: Sequence[Said], source: str, about: Mapping[str, Any], received_at: datetime) -> list[Row]:
    """Messages of a new channel, as they are kept. A user message opens a turn, the rest belong to it."""
    common = common_fields(source, source)
    meta = storable(about)
    rows: list[Row] = []
    turn = None
    for seq, (message, text, words, each) in enumerate(messages):
        if message.role is Role.USER or turn is None:
            turn = seq
        row = row_of(message, text, digest_of(message.role, text, words), meta)
        row.update(common, seq=seq, turn=turn, place=seq + 1.0, timestamp=message.timestamp or received_at)
        add_words(row, each)
        rows.append(row)
    return rows


def common_fields(source: str, of_channel: str) -> Row:
    """Return the fields that all messages of a source in a channel share."""
    record_type = SNAPSHOT if of_channel in PAGES else "conversation"
    return {"record_type": record_type, "source": source, "deleted": False, "analyzer_version": ANALYZER_VERSION}


def row_of(message: Message, text: str, digest: bytes, meta: Mapping[str, Any]) -> Row:
    """Return a message's row (`text` as it can be stored), with `meta` of the moment."""
    carried = {**message.more, "context": message.context} if message.context else message.more
    payload = storable(carried) | ({"meta": meta} if meta else {})
    native_id = message.more.get("native_id")
    return {
        "role": message.role.value,
        "text": text,
        "digest": digest,
        "native_id": native_id if isinstance(native_id, str) else None,
        "payload": payload,
    }


def add_words(row: Row, words: Iterable[str] | None = None) -> None:
    """Make a row complete but for its channel: with its id, and what it is found by. `words`: each of its text."""
    is_found = UNINDEXED not in row["payload"]
    tokens = (analyze(row["text"]) if words is None else tokens_of(words)) if is_found else []
    scope = scope_tokens(row["source"], row["role"], row["timestamp"]) if is_found else []
    row["id"] = new_id("snap" if row["record_type"] == SNAPSHOT else "conv")
    row["length"] = len(tokens)
    row["words"] = " ".join([*scope, *tokens])


RECALLS = (
    *("extract", "search_sessions", "list_sessions", "list_recent_sessions", "find_sessions_by_tag"),
    *("fetch_session_by_id", "fetch_session_by_nickname", "get_session_detail"),
)
"""The tools that bring in another conversation."""
OTHERS = ("conversation_log", "tag_current_session", "export_session")

CALL, PROMPT, QUESTION = "a call of our own", "a prompt of our own", "the question of a recall"
"""Why a message is kept but not searched, as RECALL is; in its payload. Stored."""
NOTE = "[Context Registry]"
"""What a note of ours begins with, in a session that we wrote for another client: nobody said it."""
LONGEST_QUESTION = 300  # characters; a longer question is more than a request for another conversation

_TOOL = f"({'|'.join([*RECALLS, *OTHERS])})"
# Clients put the server's name before the tool's, each in its own way; VS Code cuts it to `context-regis`.
_NAMED_OURS = re.compile(rf"(?:^|[^a-z0-9])context[-_. ]?regis[a-z]*[^a-z0-9]+{_TOOL}$", re.IGNORECASE)
_NAMED_LIKE_OURS = re.compile(rf"(?:^|[^a-z0-9]){_TOOL}$", re.IGNORECASE)
# The beginning of an answer of ours; inside other JSON its quotes are escaped.
_ANSWER = re.compile(
    rf'(?:\s*```\w*)?\s*\{{\s*\\*"ok\\*"\s*:\s*(?:true|false)\s*,\s*\\*"tool\\*"\s*:\s*\\*"{_TOOL}\\*"'
)
_CHANNEL = re.compile(r'\\*"channel\\*"\s*:\s*\\*"([^"\\]+)')
_PROMPT = re.compile(r"Call the tool \w+ of the MCP server context-registry ")
_BEGINNING = 4000  # characters of an answer that are searched

_KEPT = ("native_id", "time", "model", "request_id")
"""What a mark keeps of its message, beside the time: by these it is recognised when it comes again."""

# Where a call's parameters say what it is about, the outermost first: some clients wrap them.
_SIGNIFICANT = (
    *("arguments", "args", "parameters", "tools"),
    *("query", "text", "nickname", "tag", "session_id", "channel"),
)


def as_kept(message: Message) -> Message:
    """Return the message as the registry keeps it: of a call of our own tools a mark, any other as it came."""
    if message.role is Role.USER and _PROMPT.match(message.text):
        return replace(message, more={**message.more, UNINDEXED: PROMPT})
    name = _own_tool(message) if message.role is Role.TOOL else None
    return message if name is None else _mark(message, name)


def is_recall(message: Message) -> bool:
    """Return whether a message, as it is kept, is the mark of another conversation having been asked for."""
    return message.more.get(UNINDEXED) == RECALL


def _mark(message: Message, name: str) -> Message:
    said = "recalled" if name in RECALLS else "called"
    about = _about(_tool(message).get("params")) or _about_in_text(message.text)
    text = f"{said}: {name} — {about}" if about else f"{said}: {name}"
    more = {key: value for key, value in message.more.items() if key in _KEPT}
    more[UNINDEXED] = RECALL if name in RECALLS else CALL
    if isinstance(message.more.get("tool"), Mapping):
        kept = {key: value for key, value in _tool(message).items() if key in ("name", "status", "id")}
        more["tool"] = {**kept, "params": {}, "result": None}
    return Message(message.role, text, message.timestamp, more=more)


def _tool(message: Message) -> Mapping[str, Any]:
    given = message.more.get("tool")
    return given if isinstance(given, Mapping) else {}


def _own_tool(message: Message) -> str | None:
    names = list(_names(message))
    is_likely = any(map(_NAMED_LIKE_OURS.search, names))
    looked_for = [(_NAMED_OURS.search, names), (_ANSWER.search if is_likely else _ANSWER.match, _answers(message))]
    found = next((found for look, texts in looked_for for text in texts if (found := look(text))), None)
    return found[1].lower() if found else None


def _names(message: Message) -> Iterator[str]:
    tool = _tool(message)
    params = tool.get("params")
    for given in (tool, params if isinstance(params, Mapping) else {}, message.more):
        servers = [given.get(key) for key in ("server", "serverName", "server_name")]
        for key in ("name", "toolName", "tool_name", "tool"):
            if isinstance(given.get(key), str):
                yield given[key]
                yield from (f"{server}.{given[key]}" for server in servers if isinstance(server, str))
    if "name" not in tool:
        yield next(iter(message.text[:200].split()), "").rstrip(":")


def _answers(message: Message) -> Iterator[str]:
    yield message.text[:_BEGINNING]
    result = _tool(message).get("result")
    if isinstance(result, str):
        yield result[:_BEGINNING]
    elif isinstance(result, Mapping):
        yield json.dumps(dict(islice(result.items(), 2)), default=str)[:_BEGINNING]


def _about(given: object, deeper: int = 6) -> str:
    match given:
        case str() if given.lstrip().startswith("{"):
            return _about(_parsed(given), deeper - 1) if deeper else ""
        case str():
            return preview_of(given)
        case [first, *_] if deeper:
            return _about(first, deeper - 1)
        case Mapping() if deeper:
            return next(filter(None, (_about(given.get(key), deeper - 1) for key in _SIGNIFICANT)), "")
    return ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _about_in_text(text: str) -> str:
    if not _ANSWER.match(text[:_BEGINNING]):
        return preview_of("".join(text.split("\n", 1)[0].split(None, 1)[1:]))
    found = _CHANNEL.search(text[:_BEGINNING])
    return found[1] if found else ""
