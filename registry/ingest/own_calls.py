"""Replace calls of our own tools and our notes, as clients keep them in their chats, by marks. Pure.

Their answers are stored already, where they were said. Stored once more as part of the chat that asked, they would be
found in place of the conversation they came from.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from registry.domain import Message, Role, preview_of
from registry.storage.index.message_index import RECALL, UNINDEXED

RECALLS = (
    *("extract", "search_sessions", "list_sessions", "list_recent_sessions", "find_sessions_by_tag"),
    *("fetch_session_by_id", "fetch_session_by_nickname", "get_session_detail"),
)
"""The tools that bring another conversation into a chat."""
OTHERS = ("conversation_log", "tag_current_session", "export_session", "remember")

CALL, PROMPT, QUESTION = "a call of our own", "a prompt of our own", "the question of a recall"
TOLD = "a note of our own"
"""Reasons, like RECALL, why a message is kept but not searched; stored in its payload."""
NOTE = "[Context Registry]"
"""Begins the note of ours in a session that we wrote for another client: no message of the conversation."""

_TOOL = f"({'|'.join([*RECALLS, *OTHERS])})"
# Clients put the server's name before the tool's, each in its own way; VS Code cuts it to `context-regis`.
_NAMED_OURS = re.compile(rf"(?:^|[^a-z0-9])context[-_. ]?regis[a-z]*[^a-z0-9]+{_TOOL}$", re.IGNORECASE)
_NAMED_LIKE_OURS = re.compile(rf"(?:^|[^a-z0-9]){_TOOL}$", re.IGNORECASE)
# The beginning of an answer of ours; inside other JSON its quotes are escaped.
_ANSWER = re.compile(
    rf'(?:\s*```\w*)?\s*\{{\s*\\*"ok\\*"\s*:\s*(?:true|false)\s*,\s*\\*"tool\\*"\s*:\s*\\*"{_TOOL}\\*"'
)
_CHANNEL = re.compile(r'\\*"channel\\*"\s*:\s*\\*"([^"\\]+)')
NOTE_MARK = "told: a note of Context Registry"
_OUR_NOTE = re.compile(  # what a hook of ours told the model, without an empty line; some clients put it into a tag
    r"(?:\A|(?<=\n\n))(?:<(?:hook_context|qwen:[a-z-]+-context)>)?\s*"
    r"(?:The session_id of this chat for context-registry: "
    r"|Context Registry(?:, quoted from \d{4}-\d\d-\d\d|: an earlier conversation may answer this"
    r"|: what this chat's summary left out|: what the user asked to remember"
    r"| has earlier conversations of this project, from all AI clients)[:.])"
    r".*?(?:</(?:hook_context|qwen:[a-z-]+-context)>|(?=\n\n)|\Z)",
    re.DOTALL,
)
_PROMPT = re.compile(r"Call the tool \w+ of the MCP server context-registry ")
_BEGINNING = 4000  # characters of an answer that are searched

_KEPT = ("native_id", "time", "model", "request_id")
"""Fields of a message that its mark keeps beside the time, to be recognised when it comes again."""

# Where a call's parameters say what it is about, the outermost first: some clients wrap them.
_SIGNIFICANT = (
    *("arguments", "args", "parameters", "tools"),
    *("query", "text", "nickname", "tag", "session_id", "channel"),
)


def as_kept(message: Message) -> Message:
    """Return the message as the registry keeps it: of a call or a note of our own a mark, any other as it came."""
    if message.role is Role.SYSTEM and message.more.get("injected"):
        text = _OUR_NOTE.sub(NOTE_MARK, message.text)
        return replace(
            message, text=text, more={**message.more, UNINDEXED: TOLD} if text == NOTE_MARK else message.more
        )
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
