"""Messages made into rows of `conversation`, as far as that needs no registry. Pure.

So another process can do it while this one stores others (`orchestrator.sync.reading_ahead`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from registry.domain import IDENTITY, Message, Role, Session, as_json, digest_of, new_id, storable
from registry.ingest.own_calls import as_kept, is_recall
from registry.storage.index.index_entries import UNINDEXED, scope_tokens
from registry.text.analysis.analyzer import ANALYZER_VERSION, analyze, tokens_of
from registry.text.privacy.masking import mask_value, note_clean
from registry.text.privacy.secrets import find_secrets, without_private

SNAPSHOT = "notion_snapshot"
"""The type of a record that holds a page as it was, and nothing that was said."""
PAGES = frozenset({"notion"})
"""The sources of pages."""

Row = dict[str, Any]
"""Fields of `conversation`; and `words`, by which it is found: all tokens but its channel's, parted by spaces."""


@dataclass(frozen=True, slots=True)
class Ready:
    """All messages of a session, none of which is a recall, as rows of a channel of their own."""

    rows: Sequence[Row]
    first: datetime
    last: datetime
    characters: int
    """About how much they say and carry."""

    def __reduce__(self) -> tuple[type[Ready], tuple[Any, ...]]:
        """Between processes in a third of the time that a data class takes by itself."""
        return Ready, (self.rows, self.first, self.last, self.characters)


class Said(NamedTuple):
    """A message and its words, as white space parts them: long texts are taken apart once."""

    message: Message
    words: list[str]

    @classmethod
    def of(cls, message: Message) -> Said:
        """The message with its words, of what of it can be stored."""
        return cls(message, storable(message.text).split())


_PER_MESSAGE = ("file", "language", "model", "additional_context")


def of_the_moment(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of the moment rather than of the channel: kept with the messages new at that moment."""
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
    return Ready(rows, min(moments), max(moments), sum(len(row["text"]) + len(row["payload"]) for row in rows))


def _is_kept(said: Said) -> bool:
    """Whether all of a message is kept as it is (`let_in`)."""
    message = said.message
    if _is_private(message.text) or find_secrets(message.text, said.words):
        return False
    note_clean([message.text])  # a tool's message says what its result holds
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
    for seq, (message, words) in enumerate(messages):
        if message.role is Role.USER or turn is None:
            turn = seq
        where = {"seq": seq, "turn": turn, "place": seq + 1.0, "timestamp": message.timestamp or received_at}
        rows.append(common | row_of(message, digest_of(message.role, storable(message.text), words), meta) | where)
        add_words(rows[-1], words)
    return rows


def common_fields(source: str, of_channel: str) -> Row:
    """What is the same for all messages of a source that come into a channel."""
    record_type = SNAPSHOT if of_channel in PAGES else "conversation"
    return {"record_type": record_type, "source": source, "deleted": False, "analyzer_version": ANALYZER_VERSION}


def row_of(message: Message, digest: bytes, meta: Mapping[str, Any]) -> Row:
    """What a message, as it is kept, says, and with it what `meta` says of the moment."""
    carried = {**message.more, "context": message.context} if message.context else message.more
    payload = storable(carried) | ({"meta": meta} if meta else {})
    native_id = message.more.get("native_id")
    return {
        "role": message.role.value,
        "text": storable(message.text),
        "digest": digest,
        "native_id": native_id if isinstance(native_id, str) else None,
        "payload": payload,
    }


def add_words(row: Row, words: Sequence[str] | None = None) -> None:
    """Make a row complete but for its channel: with its id, and what it is found by. `words`: those of its text."""
    is_found = UNINDEXED not in row["payload"]
    tokens = (analyze(row["text"]) if words is None else tokens_of(dict.fromkeys(words))) if is_found else []
    scope = scope_tokens(row["source"], row["role"], row["timestamp"]) if is_found else []
    row |= {
        "id": new_id("snap" if row["record_type"] == SNAPSHOT else "conv"),
        "payload": as_json(row["payload"]),
        "length": len(tokens),
        "words": " ".join([*scope, *tokens]),
    }
