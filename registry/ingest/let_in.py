"""What is let in: the one place that tool, hook and reader share, before anything is recognised or stored.

Secrets become marks, so that a message sent again is recognised as the masked one. What stands between `<private>` and
`</private>`, in a private channel, or under a rule of the settings is not kept at all. A time that cannot be,
of the year 9999, is a client's mistake: taken at its word it would hold its channel on top for ever.

What was forgotten stays forgotten: a conversation that comes again, by whichever way and under whichever name.

Of calls of our own tools, as clients keep them in their chats, only a mark stays, of what was asked. What they answer
is stored already, where it was said. Stored once more as part of the chat that asked, it would be found in place of the
conversation it came from.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from registry.domain import (
    EARLIEST,
    IDENTITY,
    Message,
    Role,
    Session,
    digest_of,
    format_time,
    now,
    preview_of,
    storable,
)
from registry.ingest.same_conversation import ENOUGH, ENOUGH_ALONE, NARROWEST, SHARE, WIDEST, width_of
from registry.storage.database import WriteTransaction
from registry.storage.index.index_entries import RECALL, UNINDEXED
from registry.storage.safety.forgetting import (
    CHANNEL,
    SAID,
    SESSION,
    find_forgotten,
    is_anything_forgotten,
    keyed,
    note_forgotten,
)
from registry.storage.safety.masking import key_of, mask_value
from registry.text.privacy.secrets import is_like, without_private

_PATHS = frozenset({"file", "path", "file_path", "filePath", "filename", "notebook_path", "target_file", "uri"})


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a registry keeps of what comes: the settings of who runs it. Names may hold `*` and `?`."""

    unmasked: tuple[str, ...] = ()
    """Projects whose secrets are kept as they are."""
    never: tuple[str, ...] = ()
    """`source:NAME`, `project:FOLDER`, `channel:NAME`, `path:FILE`: what is never kept."""

    def rule_against(self, **about: str | None) -> str | None:
        """The first rule by which a conversation is not kept at all, if there is one."""
        for rule in (*_PRIVATE_CHANNELS, *self.never):
            kind, _, pattern = rule.partition(":")
            if about.get(kind) and is_like(about[kind] or "", pattern):
                return rule
        return None

    def rule_against_path(self, paths: Sequence[str]) -> str | None:
        """The first rule by which a message about one of these files is not kept."""
        rules = [rule for rule in self.never if rule.startswith("path:")] if self.never else []
        return next((rule for rule in rules for path in paths if is_like(path, rule.removeprefix("path:"))), None)

    def masks(self, project: str | None) -> bool:
        """Whether secrets are masked in this project."""
        return project is None or not any(is_like(project, pattern) for pattern in self.unmasked)


_PRIVATE_CHANNELS = ("channel:private", "channel:private[-_:. ]*")


def keeping_of(tx: WriteTransaction) -> Keeping:
    """The settings of this registry."""
    keeping: Keeping = tx.get_execution_options().get("keeping") or Keeping()
    return keeping


@dataclass(frozen=True, slots=True)
class LetIn:
    """What of a conversation may be stored; `kept_out` says why nothing of it may."""

    messages: Sequence[Message]
    about: Mapping[str, Any]
    kept_out: str | None = None


def let_in(
    tx: WriteTransaction,
    messages: Sequence[Message],
    about: Mapping[str, Any],
    *,
    source: str,
    channel: str | None = None,
    project: str | None = None,
) -> LetIn:
    """What of a conversation, and of what is said about it, may be stored. `project`: if `about` names none."""
    keeping = keeping_of(tx)
    named = about.get("project")
    project = named if isinstance(named, str) and named else project
    if about.get("private") is True:
        return LetIn([], {}, "it is private")
    if rule := keeping.rule_against(source=source, project=project, channel=channel):
        return LetIn([], {}, f"by the rule {rule!r}")
    key = key_of(tx) if keeping.masks(project) else None
    return LetIn([_let_in_message(keeping, message, key) for message in messages], _let_in_about(about, key))


def let_in_session(tx: WriteTransaction, source: str, session: Session) -> tuple[Session, str | None]:
    """The same of a session as a client has it."""
    about = {"title": session.title, "project": session.project, **session.meta}
    found = let_in(tx, session.messages, about, source=source)
    title = found.about.get("title")
    meta = {name: value for name, value in found.about.items() if name in session.meta}
    return replace(session, messages=tuple(found.messages), title=title, meta=meta), found.kept_out


def _let_in_about(about: Mapping[str, Any], key: bytes | None) -> dict[str, Any]:
    return {name: value if name in IDENTITY else _let_in_value(value, key, name) for name, value in about.items()}


def _let_in_message(keeping: Keeping, message: Message, key: bytes | None) -> Message:
    rule = keeping.rule_against_path(list(_paths(message))) if keeping.never else None
    if rule:
        kept = {name: message.more[name] for name in IDENTITY & message.more.keys()}
        return Message(message.role, f"[not kept: {rule}]", message.timestamp, more=kept)
    text = _let_in_text(message.text, key)
    more, context = message.more, message.context
    if more.keys() - IDENTITY or context:
        more = _let_in_about(more, key)
        context = None if context is None else _let_in_value(context, key)
    if text is message.text and more is message.more and context is None:  # most of them
        return message
    return replace(message, text=text, more=more, context=context)


def _let_in_value(value: Any, key: bytes | None, name: str = "") -> Any:
    value = _without_private(value)
    if key is None:
        return value
    return mask_value({name: value}, key)[name] if name else mask_value(value, key)


def _let_in_text(text: str, key: bytes | None) -> str:
    text = _without_private(text)
    return text if key is None else mask_value(text, key)


def _without_private(value: Any) -> Any:
    match value:
        case str():
            return without_private(value)
        case Mapping():
            return {name: _without_private(held) for name, held in value.items()}
        case list() | tuple():
            return [_without_private(held) for held in value]
    return value


def _paths(message: Message) -> Iterator[str]:
    """The files that a message is about: in its context, in what a tool was called with, attached."""
    tool = message.more.get("tool")
    params = tool.get("params") if isinstance(tool, Mapping) else None
    for held in (message.context, message.more, params):
        if isinstance(held, Mapping):
            yield from (held[name] for name in _PATHS & held.keys() if isinstance(held[name], str))
    attached = message.more.get("attachments")
    for each in attached if isinstance(attached, list) else ():
        found = each.values() if isinstance(each, Mapping) else [each]
        yield from (path for path in found if isinstance(path, str))


AHEAD = timedelta(days=1)
"""So far another machine's clock, or its idea of a time zone, may be ahead of ours."""


def with_sound_times(messages: Sequence[Message], received_at: datetime) -> Sequence[Message]:
    """The messages; those whose times cannot be have their neighbours', else none, and keep what they said."""
    latest = received_at + AHEAD
    is_sound = [message.timestamp is None or EARLIEST <= message.timestamp <= latest for message in messages]
    if all(is_sound):
        return messages
    pairs = list(zip(messages, is_sound, strict=True))
    at = next((message.timestamp for message, sound in pairs if sound and message.timestamp), None)
    done = []
    for message, sound in pairs:
        at = message.timestamp if sound else at
        done.append(message if sound else _at(message, at))
    return done


def _at(message: Message, at: datetime | None) -> Message:
    said = format_time(message.timestamp) if message.timestamp else None
    return replace(message, timestamp=at, more={**message.more, "time": "inferred", "said_at": said})


FORGOTTEN = "it was forgotten"
_MOST = 500
"""So many of a conversation's last messages are looked at."""


def is_forgotten(
    tx: WriteTransaction, messages: Sequence[Message], *, channel: str | None = None, session_id: str | None = None
) -> bool:
    """Whether a conversation that is new here was forgotten: by its name, its client's id, or by what is said in it.

    One that is known by its words alone is known by its name, too, from then on.
    """
    if not is_anything_forgotten(tx):
        return False
    key = key_of(tx)
    names = [(keyed(key, CHANNEL, channel.encode()), CHANNEL)] if channel else []
    names += [(keyed(key, SESSION, session_id.encode()), SESSION)] if session_id else []
    said = {keyed(key, SAID, digest_of(each.role, storable(each.text))): each for each in messages[-_MOST:]}
    noted = find_forgotten(tx, [*(digest for digest, _ in names), *said])
    if any(digest in noted for digest, _ in names):
        return True
    known: dict[str, list[Message]] = defaultdict(list)
    for digest, (_, receipt) in noted.items():
        known[receipt].append(said[digest])
    asked = sum(_is_question(each) for each in said.values())
    enough = [receipt for receipt, some in known.items() if _is_enough(some, asked)]
    if enough:
        note_forgotten(tx, names, enough[0], now())
    return bool(enough)


def _is_enough(known: Sequence[Message], asked: int) -> bool:
    """As much as makes two channels one conversation (`same_conversation`), of messages known word for word."""
    questions = [width_of(each.text) for each in known if _is_question(each)]
    weight = sum(min(width, WIDEST) for width in questions)
    is_answered = any(each.role is Role.ASSISTANT and width_of(each.text) >= NARROWEST for each in known)
    is_wide = weight >= (ENOUGH if is_answered else ENOUGH_ALONE)
    is_one_turn = len(questions) == 1 and is_answered and weight >= ENOUGH // 2
    return len(questions) >= SHARE * asked and (is_one_turn or (is_wide and len(questions) > 1))


def _is_question(message: Message) -> bool:
    return message.role is Role.USER and width_of(message.text) >= NARROWEST


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
LONGEST_QUESTION = 300
"""Characters. Who writes more says something, and does not only ask for another conversation."""

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
_BEGINNING = 4000
"""So many characters of an answer are looked at."""

_KEPT = ("native_id", "time", "model", "request_id")
"""What a mark keeps of its message, beside the time: by these it is recognised when it comes again."""

# Where a call's parameters say what it is about, the outermost first: some clients wrap them.
_TELLING = (
    *("arguments", "args", "parameters", "tools"),
    *("query", "text", "nickname", "tag", "session_id", "channel"),
)


def as_kept(message: Message) -> Message:
    """The message as the registry keeps it: of a call of our own tools a mark, any other as it came."""
    if message.role is Role.USER and _PROMPT.match(message.text):
        return replace(message, more={**message.more, UNINDEXED: PROMPT})
    name = _own_tool(message) if message.role is Role.TOOL else None
    return message if name is None else _mark(message, name)


def is_recall(message: Message) -> bool:
    """Whether a message, as it is kept, is the mark of another conversation having been asked for."""
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
    """The name of our tool that was called, if it was one of ours."""
    names = list(_names(message))
    is_likely = any(map(_NAMED_LIKE_OURS.search, names))
    looked_for = [(_NAMED_OURS.search, names), (_ANSWER.search if is_likely else _ANSWER.match, _answers(message))]
    found = next((found for look, texts in looked_for for text in texts if (found := look(text))), None)
    return found[1].lower() if found else None


def _names(message: Message) -> Iterator[str]:
    """All that may be the name of the tool; in a headline it is the first word."""
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
    """All that may be what the tool answered; its beginning, as it is stored or as JSON."""
    yield message.text[:_BEGINNING]
    result = _tool(message).get("result")
    if isinstance(result, str):
        yield result[:_BEGINNING]
    elif isinstance(result, Mapping):
        yield json.dumps(dict(islice(result.items(), 2)), default=str)[:_BEGINNING]


def _about(given: object, deeper: int = 6) -> str:
    """The words that say what a call is about, on one line."""
    match given:
        case str() if given.lstrip().startswith("{"):
            return _about(_parsed(given), deeper - 1) if deeper else ""
        case str():
            return preview_of(given)
        case [first, *_] if deeper:
            return _about(first, deeper - 1)
        case Mapping() if deeper:
            return next(filter(None, (_about(given.get(key), deeper - 1) for key in _TELLING)), "")
    return ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _about_in_text(text: str) -> str:
    """What stands behind the name in a headline, else the channel that an answer names."""
    if not _ANSWER.match(text[:_BEGINNING]):
        return preview_of("".join(text.split("\n", 1)[0].split(None, 1)[1:]))
    found = _CHANNEL.search(text[:_BEGINNING])
    return found[1] if found else ""
