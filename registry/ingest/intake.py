"""Filter incoming messages of tools, hooks and readers, before they are compared with stored ones.

Secrets are replaced by marks, so that a resent message equals the masked one. Text between `<private>` and
`</private>`, in a private channel, or excluded by a rule of the settings is not stored. An impossible time, such as the
year 9999, is replaced: it would keep its channel first in every list.

Forgotten conversations are refused when they are sent again, under any name.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select

from registry.domain import EARLIEST, IDENTITY, Message, Role, Session, format_time, now, parse_time
from registry.ingest.same_conversation import MAX_WIDTH, MIN_SHARED, MIN_WEIGHT, MIN_WEIGHT_ALONE, MIN_WIDTH, width_of
from registry.storage.conversations.channels import recount_channel
from registry.storage.conversations.messages import revise
from registry.storage.database import WriteTransaction
from registry.storage.safety.derived import as_text
from registry.storage.safety.forgetting import find_forgotten, is_anything_forgotten, note_forgotten
from registry.storage.safety.forgotten_digests import (
    DERIVED,
    OWNED,
    WORDS,
    channel_digests_to_check,
    channel_digests_to_note,
    digests_to_check,
    keyed_digest,
)
from registry.storage.safety.masking import key_of
from registry.storage.safety.visibility import owner_of
from registry.storage.tables import conversation
from registry.text.privacy.masking import marks_of, mask_cut, mask_value
from registry.text.privacy.secrets import is_like, map_texts, without_private

_PATH_FIELDS = frozenset({"file", "path", "file_path", "filePath", "filename", "notebook_path", "target_file", "uri"})


@dataclass(frozen=True, slots=True)
class StorageRules:
    """The settings that exclude conversations from storage or from masking. Patterns may contain `*` and `?`."""

    unmasked: tuple[str, ...] = ()  # projects whose secrets are not masked
    # rules that exclude from storage: `source:NAME`, `project:FOLDER`, `channel:NAME`, `path:FILE`
    never: tuple[str, ...] = ()

    def rule_against(self, **about: str | None) -> str | None:
        """Return the first rule that excludes a conversation; None if there is none."""
        for rule in (*_PRIVATE_CHANNELS, *self.never):
            kind, _, pattern = rule.partition(":")
            if about.get(kind) and is_like(about[kind] or "", pattern):
                return rule
        return None

    def rule_against_path(self, paths: Sequence[str]) -> str | None:
        """Return the first rule that excludes messages about one of these files; None if there is none."""
        rules = [rule for rule in self.never if rule.startswith("path:")] if self.never else []
        return next((rule for rule in rules for path in paths if is_like(path, rule.removeprefix("path:"))), None)

    def is_masking(self, project: str | None) -> bool:
        return project is None or not any(is_like(project, pattern) for pattern in self.unmasked)


_PRIVATE_CHANNELS = ("channel:private", "channel:private[-_:. ]*")


def storage_rules_of(tx: WriteTransaction) -> StorageRules:
    rules: StorageRules = tx.get_execution_options().get("storage_rules") or StorageRules()
    return rules


def admit_messages(
    tx: WriteTransaction,
    messages: Sequence[Message],
    metadata: Mapping[str, Any],
    *,
    source: str,
    channel: str | None = None,
    project: str | None = None,
    may_be_forgotten: bool = True,
) -> tuple[Sequence[Message], Mapping[str, Any], str | None]:
    """Return the storable messages and metadata of a conversation, and the reason if all of it is refused.

    `project`: used if `metadata` has none.
    """
    rules = storage_rules_of(tx)
    messages = replace_impossible_times(messages, now())
    named = metadata.get("project")
    project = named if isinstance(named, str) and named else project
    if metadata.get("private") is True:
        return [], {}, "it is private"
    if rule := rules.rule_against(source=source, project=project, channel=channel):
        return [], {}, f"by the rule {rule!r}"
    key = key_of(tx) if rules.is_masking(project) else None
    admitted = [_admit_message(rules, message, key) for message in messages]
    metadata = _mask_cut_titles(_clean_metadata(metadata, key), messages, admitted, key)
    return admitted, _drop_forgotten_metadata(tx, metadata) if may_be_forgotten else metadata, None


def admit_session(
    tx: WriteTransaction, source: str, session: Session, *, may_be_forgotten: bool = True
) -> tuple[Session, str | None]:
    metadata = {"title": session.title, "project": session.project, **session.meta}
    admitted, details, refusal = admit_messages(
        tx, session.messages, metadata, source=source, may_be_forgotten=may_be_forgotten
    )
    meta = {name: value for name, value in details.items() if name in session.meta}
    return replace(session, messages=tuple(admitted), title=details.get("title"), meta=meta), refusal


def _drop_forgotten_metadata(tx: WriteTransaction, metadata: dict[str, Any]) -> dict[str, Any]:
    """Drop titles and other metadata that were forgotten: clients send them again with the next message."""
    if not metadata or not is_anything_forgotten(tx):
        return metadata
    key = key_of(tx)
    texts = {name: as_text(value).encode(errors="replace") for name, value in metadata.items() if name not in IDENTITY}
    digests = {name: keyed_digest(key, DERIVED, text) for name, text in texts.items()}
    noted = find_forgotten(tx, list(digests.values()))
    return {name: value for name, value in metadata.items() if digests.get(name) not in noted}


def _mask_cut_titles(
    metadata: dict[str, Any], messages: Sequence[Message], admitted: Sequence[Message], key: bytes | None
) -> dict[str, Any]:
    """Mask secrets and private text in titles and summaries that a client has cut out of the messages."""
    changed = [(was.text, now.text) for was, now in zip(messages, admitted, strict=True) if was.text is not now.text]
    marks = marks_of([was for was, _ in changed], [now for _, now in changed], key)
    cut = {
        name: mask_cut(metadata[name], marks)
        for name in ("title", "summary")
        if marks and isinstance(metadata.get(name), str)
    }
    return {**metadata, **cut}


def _clean_metadata(metadata: Mapping[str, Any], key: bytes | None) -> dict[str, Any]:
    return {name: value if name in IDENTITY else _clean_value(value, key, name) for name, value in metadata.items()}


def _admit_message(rules: StorageRules, message: Message, key: bytes | None) -> Message:
    rule = rules.rule_against_path(list(_paths_of(message))) if rules.never else None
    if rule:
        kept = {name: message.more[name] for name in IDENTITY & message.more.keys()}
        return Message(message.role, f"[not kept: {rule}]", message.timestamp, more=kept)
    text = _clean_value(message.text, key)
    more, context = message.more, message.context
    if more.keys() - IDENTITY or context:
        more = _clean_metadata(more, key)
        context = None if context is None else _clean_value(context, key)
    if text is message.text and more is message.more and context is None:  # the usual case
        return message
    if without_private(message.text) != message.text:  # an image may show what the private text says
        message = replace(message, images={})
    if key is not None and more != message.more:
        text = mask_cut(text, marks_of(dict(message.more), more, key))  # a call's text may quote its parameters
    return replace(message, text=text, more=more, context=context)


def _clean_value(value: Any, key: bytes | None, name: str = "") -> Any:
    value = map_texts(value, without_private)
    if key is None:
        return value
    return mask_value({name: value}, key)[name] if name else mask_value(value, key)


def _paths_of(message: Message) -> Iterator[str]:
    tool = message.more.get("tool")
    params = tool.get("params") if isinstance(tool, Mapping) else None
    for fields in (message.context, message.more, params):
        if isinstance(fields, Mapping):
            yield from (fields[name] for name in _PATH_FIELDS & fields.keys() if isinstance(fields[name], str))
    attachments = message.more.get("attachments")
    for attachment in attachments if isinstance(attachments, list) else ():
        values = attachment.values() if isinstance(attachment, Mapping) else [attachment]
        yield from (path for path in values if isinstance(path, str))


MAX_CLOCK_LEAD = timedelta(days=1)  # tolerated lead of a message's time, for wrong clocks and time zones


def replace_impossible_times(messages: Sequence[Message], received_at: datetime) -> Sequence[Message]:
    """Replace impossible times by the previous message's time; store the original as `said_at`."""
    is_sound = [message.timestamp is None or _is_possible(message.timestamp, received_at) for message in messages]
    if all(is_sound):
        return messages
    pairs = list(zip(messages, is_sound, strict=True))
    before = next((message.timestamp for message, sound in pairs if sound and message.timestamp), None)
    done = []
    for message, sound in pairs:
        if sound:
            before = message.timestamp
            done.append(message)
        else:
            given = format_time(message.timestamp) if message.timestamp else None
            done.append(replace(message, timestamp=before, more={**message.more, "time": "inferred", "said_at": given}))
    return done


def restore_original_time(message: Message, received_at: datetime) -> Message:
    """Undo `replace_impossible_times` of another registry, whose clock was behind, if the time is possible here."""
    given = message.more.get("said_at")
    with suppress(ValueError):
        if isinstance(given, str) and _is_possible(said_at := parse_time(given), received_at):
            more = {name: value for name, value in message.more.items() if name not in ("time", "said_at")}
            return replace(message, timestamp=said_at, more=more)
    return message


def restore_stored_times(tx: WriteTransaction, channel_number: int, messages: Sequence[Message]) -> None:
    """Undo `replace_impossible_times` for stored messages that are sent again, if the clock accepts the times now."""
    is_replaced = conversation.c.payload["said_at"].as_string().is_not(None)
    sent = conversation.c.digest.in_({one.digest for one in messages})
    query = select(conversation).where(conversation.c.channel_number == channel_number, sent, is_replaced)
    changes = []
    for row in tx.execute(query).all():
        restored = restore_original_time(Message(Role(row.role), row.text, row.timestamp, more=row.payload), now())
        if restored.more != row.payload:
            changes.append((row, {"timestamp": restored.timestamp, "payload": dict(restored.more)}))
    if changes:
        revise(tx, changes)
        recount_channel(tx, channel_number)


def _is_possible(moment: datetime, received_at: datetime) -> bool:
    return EARLIEST <= moment <= received_at + MAX_CLOCK_LEAD


FORGOTTEN = "it was forgotten"
CONTINUED = "continued_elsewhere"
"""Key in the `meta` of a channel that was forgotten, and has messages again that another machine wrote meanwhile."""


def note_if_forgotten(
    tx: WriteTransaction, messages: Sequence[Message], *, channel: str | None = None, session_id: str | None = None
) -> str | None:
    """Return the receipt if a new conversation was forgotten, by its name, its session id, or its messages.

    If only its messages match, its name and session id are recorded as forgotten, too.
    """
    if not is_anything_forgotten(tx):
        return None
    key, owner = key_of(tx), owner_of(tx)
    names = [channel] if channel else []
    name_marks = channel_digests_to_check(key, names, session_id, owner)
    name_digests = [digest for digest, _ in name_marks]
    compared = {each.digest: each for each in messages[-500:]}.values()  # only the last messages
    by_digest = {digest: each for each in compared for digest, _ in digests_to_check(key, WORDS, each.digest, owner)}
    noted = find_forgotten(tx, [*name_digests, *by_digest])
    if named := [noted[digest][1] for digest in name_digests if digest in noted]:
        return named[0]
    by_receipt: dict[str, list[Message]] = defaultdict(list)
    for digest, (_, receipt) in noted.items():
        by_receipt[receipt].append(by_digest[digest])
    question_count = sum(map(_is_question, compared))
    receipts = [receipt for receipt, some in by_receipt.items() if _is_same_conversation(some, question_count)]
    if receipts:
        marks = channel_digests_to_note(key, names, session_id, owner)
        if (OWNED, receipts[0]) in noted.values():  # forgotten for one person: other people may use the name
            marks = [mark for mark in name_marks if mark[1] == OWNED]
        note_forgotten(tx, marks, receipts[0], now())
    return receipts[0] if receipts else None


def _is_same_conversation(known: Sequence[Message], question_count: int) -> bool:
    questions = [width_of(each.text) for each in known if _is_question(each)]
    weight = sum(min(width, MAX_WIDTH) for width in questions)
    is_answered = any(each.role is Role.ASSISTANT and width_of(each.text) >= MIN_WIDTH for each in known)
    is_wide = weight >= (MIN_WEIGHT if is_answered else MIN_WEIGHT_ALONE)
    is_one_turn = len(questions) == 1 and is_answered and weight >= MIN_WEIGHT // 2
    return len(questions) >= MIN_SHARED * question_count and (is_one_turn or (is_wide and len(questions) > 1))


def _is_question(message: Message) -> bool:
    return message.role is Role.USER and width_of(message.text) >= MIN_WIDTH
