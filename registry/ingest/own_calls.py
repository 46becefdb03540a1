"""Replace calls of our own tools, and our notes, by short marks in the chats that clients store. Pure.

The answers quote messages that are stored already. Stored again in the asking chat, they would be found instead of the
original conversation.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from registry.domain import Message, Role, preview_of
from registry.storage.index.message_index import RECALL, UNINDEXED

RECALL_TOOLS = (
    *("extract", "search_sessions", "list_sessions", "list_recent_sessions", "find_sessions_by_tag"),
    *("fetch_session_by_id", "fetch_session_by_nickname", "get_session_detail"),
)
"""The tools that bring another conversation into a chat."""
OTHER_TOOLS = ("conversation_log", "tag_current_session", "export_session", "remember")

CALL, PROMPT, QUESTION = "a call of our own", "a prompt of our own", "the question of a recall"
OUR_NOTE = "a note of our own"
"""Reasons, like RECALL, for storing a message but not indexing it; stored in its payload."""
NOTE = "[Context Registry]"
"""The prefix of our note in a session that we wrote for another client; it is not a message of the conversation."""

_TOOL = f"({'|'.join([*RECALL_TOOLS, *OTHER_TOOLS])})"
# Clients prefix the tool's name with the server's in different forms; VS Code cuts it to `context-regis`.
_FULL_TOOL_NAME = re.compile(rf"(?:^|[^a-z0-9])context[-_. ]?regis[a-z]*[^a-z0-9]+{_TOOL}$", re.IGNORECASE)
_BARE_TOOL_NAME = re.compile(rf"(?:^|[^a-z0-9]){_TOOL}$", re.IGNORECASE)
# The beginning of our answers; inside other JSON its quotes are escaped.
_ANSWER = re.compile(
    rf'(?:\s*```\w*)?\s*\{{\s*\\*"ok\\*"\s*:\s*(?:true|false)\s*,\s*\\*"tool\\*"\s*:\s*\\*"{_TOOL}\\*"'
)
_CHANNEL = re.compile(r'\\*"channel\\*"\s*:\s*\\*"([^"\\]+)')
NOTE_MARK = "told: a note of Context Registry"
_NOTE_TEXT = re.compile(  # our hooks' text for the model, without an empty line; some clients put it into a tag
    r"(?:\A|(?<=\n\n)|(?=<))(?:<(?:hook_context|qwen:[a-z-]+-context)>)?\s*"
    r"(?:The session_id of this chat for context-registry: "
    r"|Context Registry(?:, quoted from \d{4}-\d\d-\d\d|: an earlier conversation may answer this"
    r"|: what this chat's summary left out|: what the user asked to remember"
    r"| has earlier conversations of this project, from all AI clients)[:.])"
    r".*?(?:</(?:hook_context|qwen:[a-z-]+-context)>|(?=\n\n)|\Z)",
    re.DOTALL,
)
_PROMPT = re.compile(r"Call the tool \w+ of the MCP server context-registry ")
_SEARCHED_LENGTH = 4000  # characters of an answer that are searched

_IDENTIFYING_FIELDS = ("native_id", "time", "model", "request_id")
"""Fields of a message that its mark keeps besides the time, so that a resend is recognised."""

# Parameters with the subject of a call, outermost first, because some clients wrap the parameters.
_SUBJECT_FIELDS = (
    *("arguments", "args", "parameters", "tools"),
    *("query", "text", "nickname", "tag", "session_id", "channel"),
)


def replace_own_call(message: Message) -> Message:
    """Return a mark for a call or note of our own, and any other message unchanged."""
    if message.role is Role.SYSTEM and message.more.get("injected"):
        text = _NOTE_TEXT.sub(NOTE_MARK, message.text)
        return replace(
            message, text=text, more={**message.more, UNINDEXED: OUR_NOTE} if text == NOTE_MARK else message.more
        )
    if message.role is Role.USER and _PROMPT.match(message.text):
        return replace(message, more={**message.more, UNINDEXED: PROMPT})
    name = _own_tool_name(message) if message.role is Role.TOOL else None
    return message if name is None else _mark_of(message, name)


def is_recall(message: Message) -> bool:
    """Return True for the mark of a call that returned another conversation."""
    return message.more.get(UNINDEXED) == RECALL


def _mark_of(message: Message, name: str) -> Message:
    verb = "recalled" if name in RECALL_TOOLS else "called"
    subject = _subject_of(_tool(message).get("params")) or _subject_in_text(message.text)
    text = f"{verb}: {name} — {subject}" if subject else f"{verb}: {name}"
    more = {key: value for key, value in message.more.items() if key in _IDENTIFYING_FIELDS}
    more[UNINDEXED] = RECALL if name in RECALL_TOOLS else CALL
    if isinstance(message.more.get("tool"), Mapping):
        tool = {key: value for key, value in _tool(message).items() if key in ("name", "status", "id")}
        more["tool"] = {**tool, "params": {}, "result": None}
    return Message(message.role, text, message.timestamp, more=more)


def _tool(message: Message) -> Mapping[str, Any]:
    given = message.more.get("tool")
    return given if isinstance(given, Mapping) else {}


def _own_tool_name(message: Message) -> str | None:
    names = list(_tool_names(message))
    is_likely = any(map(_BARE_TOOL_NAME.search, names))
    searches = [(_FULL_TOOL_NAME.search, names), (_ANSWER.search if is_likely else _ANSWER.match, _answers(message))]
    found = next((found for search, texts in searches for text in texts if (found := search(text))), None)
    return found[1].lower() if found else None


def _tool_names(message: Message) -> Iterator[str]:
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
    yield message.text[:_SEARCHED_LENGTH]
    result = _tool(message).get("result")
    if isinstance(result, str):
        yield result[:_SEARCHED_LENGTH]
    elif isinstance(result, Mapping):
        yield json.dumps(dict(islice(result.items(), 2)), default=str)[:_SEARCHED_LENGTH]


def _subject_of(given: object, depth: int = 6) -> str:
    match given:
        case str() if given.lstrip().startswith("{"):
            return _subject_of(_parsed(given), depth - 1) if depth else ""
        case str():
            return preview_of(given)
        case [first, *_] if depth:
            return _subject_of(first, depth - 1)
        case Mapping() if depth:
            return next(filter(None, (_subject_of(given.get(key), depth - 1) for key in _SUBJECT_FIELDS)), "")
    return ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _subject_in_text(text: str) -> str:
    if not _ANSWER.match(text[:_SEARCHED_LENGTH]):
        return preview_of("".join(text.split("\n", 1)[0].split(None, 1)[1:]))
    found = _CHANNEL.search(text[:_SEARCHED_LENGTH])
    return found[1] if found else ""
