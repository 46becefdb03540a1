"""Decide what may be stored, for tool, hook and reader alike, before anything is recognised.

Secrets become marks, so that a message sent again is recognised as the masked one. Text between `<private>` and
`</private>`, in a private channel, or under a rule of the settings is not stored at all. An impossible time, such as
the year 9999, is a client's mistake: it would hold its channel on top of every list.

Forgotten conversations stay forgotten: one that comes again is refused, under whichever name.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from registry.domain import EARLIEST, IDENTITY, Message, Role, Session, format_time, now
from registry.ingest.same_conversation import MAX_WIDTH, MIN_SHARED, MIN_WEIGHT, MIN_WEIGHT_ALONE, MIN_WIDTH, width_of
from registry.storage.database import WriteTransaction
from registry.storage.safety.derived import as_text
from registry.storage.safety.forgetting import (
    DERIVED,
    OWNED,
    SAID,
    find_forgotten,
    is_anything_forgotten,
    keyed,
    marks_against,
    marks_against_channel,
    marks_of_channel,
    note_forgotten,
)
from registry.storage.safety.masking import key_of
from registry.storage.safety.visibility import owner_of
from registry.text.privacy.masking import marks_of, mask_cut, mask_value
from registry.text.privacy.secrets import is_like, map_texts, without_private

_PATHS = frozenset({"file", "path", "file_path", "filePath", "filename", "notebook_path", "target_file", "uri"})


@dataclass(frozen=True, slots=True)
class Keeping:
    """The settings of what a registry keeps. Names may hold `*` and `?`."""

    unmasked: tuple[str, ...] = ()  # projects whose secrets are not masked
    # rules of what is never stored: `source:NAME`, `project:FOLDER`, `channel:NAME`, `path:FILE`
    never: tuple[str, ...] = ()

    def rule_against(self, **about: str | None) -> str | None:
        """Return the first rule by which a conversation is not kept at all, if there is one."""
        for rule in (*_PRIVATE_CHANNELS, *self.never):
            kind, _, pattern = rule.partition(":")
            if about.get(kind) and is_like(about[kind] or "", pattern):
                return rule
        return None

    def rule_against_path(self, paths: Sequence[str]) -> str | None:
        """Return the first rule by which a message about one of these files is not kept."""
        rules = [rule for rule in self.never if rule.startswith("path:")] if self.never else []
        return next((rule for rule in rules for path in paths if is_like(path, rule.removeprefix("path:"))), None)

    def masks(self, project: str | None) -> bool:
        return project is None or not any(is_like(project, pattern) for pattern in self.unmasked)


_PRIVATE_CHANNELS = ("channel:private", "channel:private[-_:. ]*")


def keeping_of(tx: WriteTransaction) -> Keeping:
    keeping: Keeping = tx.get_execution_options().get("keeping") or Keeping()
    return keeping


def let_in(
    tx: WriteTransaction,
    messages: Sequence[Message],
    about: Mapping[str, Any],
    *,
    source: str,
    channel: str | None = None,
    project: str | None = None,
    may_be_forgotten: bool = True,
) -> tuple[Sequence[Message], Mapping[str, Any], str | None]:
    """Return the messages and the metadata of a conversation that may be stored; or why nothing of it may.

    `project`: used if `about` names none.
    """
    keeping = keeping_of(tx)
    messages = with_sound_times(messages, now())
    named = about.get("project")
    project = named if isinstance(named, str) and named else project
    if about.get("private") is True:
        return [], {}, "it is private"
    if rule := keeping.rule_against(source=source, project=project, channel=channel):
        return [], {}, f"by the rule {rule!r}"
    key = key_of(tx) if keeping.masks(project) else None
    kept = [_let_in_message(keeping, message, key) for message in messages]
    about = _mask_cut_titles(_let_in_about(about, key), messages, kept, key)
    return kept, _without_forgotten(tx, about) if may_be_forgotten else about, None


def let_in_session(
    tx: WriteTransaction, source: str, session: Session, *, may_be_forgotten: bool = True
) -> tuple[Session, str | None]:
    about = {"title": session.title, "project": session.project, **session.meta}
    kept, known, kept_out = let_in(tx, session.messages, about, source=source, may_be_forgotten=may_be_forgotten)
    meta = {name: value for name, value in known.items() if name in session.meta}
    return replace(session, messages=tuple(kept), title=known.get("title"), meta=meta), kept_out


def _without_forgotten(tx: WriteTransaction, about: dict[str, Any]) -> dict[str, Any]:
    """Leave out titles and other metadata that were forgotten: clients send them again with the next message."""
    if not about or not is_anything_forgotten(tx):
        return about
    key = key_of(tx)
    texts = {name: as_text(value).encode(errors="replace") for name, value in about.items() if name not in IDENTITY}
    digests = {name: keyed(key, DERIVED, text) for name, text in texts.items()}
    noted = find_forgotten(tx, list(digests.values()))
    return {name: value for name, value in about.items() if digests.get(name) not in noted}


def _mask_cut_titles(
    about: dict[str, Any], messages: Sequence[Message], kept: Sequence[Message], key: bytes | None
) -> dict[str, Any]:
    """Mask secrets of the messages in a title or summary, which a client may have made of them and cut."""
    if key is None:
        return about
    changed = [(was.text, now.text) for was, now in zip(messages, kept, strict=True) if was.text is not now.text]
    marks = marks_of([was for was, _ in changed], [now for _, now in changed], key)
    cut = {
        name: mask_cut(about[name], marks)
        for name in ("title", "summary")
        if marks and isinstance(about.get(name), str)
    }
    return {**about, **cut}


def _let_in_about(about: Mapping[str, Any], key: bytes | None) -> dict[str, Any]:
    return {name: value if name in IDENTITY else _let_in_value(value, key, name) for name, value in about.items()}


def _let_in_message(keeping: Keeping, message: Message, key: bytes | None) -> Message:
    rule = keeping.rule_against_path(list(_paths(message))) if keeping.never else None
    if rule:
        kept = {name: message.more[name] for name in IDENTITY & message.more.keys()}
        return Message(message.role, f"[not kept: {rule}]", message.timestamp, more=kept)
    text = _let_in_value(message.text, key)
    more, context = message.more, message.context
    if more.keys() - IDENTITY or context:
        more = _let_in_about(more, key)
        context = None if context is None else _let_in_value(context, key)
    if text is message.text and more is message.more and context is None:  # most of them
        return message
    if key is not None and more != message.more:
        text = mask_cut(text, marks_of(dict(message.more), more, key))  # a call's title is made of its parameters
    return replace(message, text=text, more=more, context=context)


def _let_in_value(value: Any, key: bytes | None, name: str = "") -> Any:
    value = map_texts(value, without_private)
    if key is None:
        return value
    return mask_value({name: value}, key)[name] if name else mask_value(value, key)


def _paths(message: Message) -> Iterator[str]:
    tool = message.more.get("tool")
    params = tool.get("params") if isinstance(tool, Mapping) else None
    for held in (message.context, message.more, params):
        if isinstance(held, Mapping):
            yield from (held[name] for name in _PATHS & held.keys() if isinstance(held[name], str))
    attached = message.more.get("attachments")
    for each in attached if isinstance(attached, list) else ():
        found = each.values() if isinstance(each, Mapping) else [each]
        yield from (path for path in found if isinstance(path, str))


AHEAD = timedelta(days=1)  # tolerated lead of another machine's clock or time zone


def with_sound_times(messages: Sequence[Message], received_at: datetime) -> Sequence[Message]:
    """Replace impossible times by that of the message before, and note the original as `said_at`."""
    latest = received_at + AHEAD
    is_sound = [message.timestamp is None or EARLIEST <= message.timestamp <= latest for message in messages]
    if all(is_sound):
        return messages
    pairs = list(zip(messages, is_sound, strict=True))
    at = next((message.timestamp for message, sound in pairs if sound and message.timestamp), None)
    done = []
    for message, sound in pairs:
        if sound:
            at = message.timestamp
            done.append(message)
        else:
            said = format_time(message.timestamp) if message.timestamp else None
            done.append(replace(message, timestamp=at, more={**message.more, "time": "inferred", "said_at": said}))
    return done


FORGOTTEN = "it was forgotten"


def is_forgotten(
    tx: WriteTransaction, messages: Sequence[Message], *, channel: str | None = None, session_id: str | None = None
) -> bool:
    """Return whether a new conversation was forgotten: by its name, its client's id, or its words.

    If it is recognised by its words alone, its name is noted as forgotten too.
    """
    if not is_anything_forgotten(tx):
        return False
    key, owner = key_of(tx), owner_of(tx)
    called = [channel] if channel else []
    named = marks_against_channel(key, called, session_id, owner)
    names = [digest for digest, _ in named]
    compared = {each.digest: each for each in messages[-500:]}.values()  # only the last messages
    said = {digest: each for each in compared for digest, _ in marks_against(key, SAID, each.digest, owner)}
    noted = find_forgotten(tx, [*names, *said])
    if not noted.keys().isdisjoint(names):
        return True
    known: dict[str, list[Message]] = defaultdict(list)
    for digest, (_, receipt) in noted.items():
        known[receipt].append(said[digest])
    asked = sum(map(_is_question, compared))
    enough = [receipt for receipt, some in known.items() if _is_enough(some, asked)]
    if enough:
        marks = marks_of_channel(key, called, session_id, owner)
        if (OWNED, enough[0]) in noted.values():  # a person's words: the name is free for other people
            marks = [mark for mark in named if mark[1] == OWNED]
        note_forgotten(tx, marks, enough[0], now())
    return bool(enough)


def _is_enough(known: Sequence[Message], asked: int) -> bool:
    questions = [width_of(each.text) for each in known if _is_question(each)]
    weight = sum(min(width, MAX_WIDTH) for width in questions)
    is_answered = any(each.role is Role.ASSISTANT and width_of(each.text) >= MIN_WIDTH for each in known)
    is_wide = weight >= (MIN_WEIGHT if is_answered else MIN_WEIGHT_ALONE)
    is_one_turn = len(questions) == 1 and is_answered and weight >= MIN_WEIGHT // 2
    return len(questions) >= MIN_SHARED * asked and (is_one_turn or (is_wide and len(questions) > 1))


def _is_question(message: Message) -> bool:
    return message.role is Role.USER and width_of(message.text) >= MIN_WIDTH
