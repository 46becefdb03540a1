"""Find and forget records derived from forgotten messages: executions, results, briefings, cases, views, titles.

Their ids are recorded as keyed digests, so that restoring a backup does not restore them.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote_plus

from sqlalchemy import Table, Text, cast, delete, select, update

from registry.storage.conditions import is_one_of
from registry.storage.conversations.channels import change_channel
from registry.storage.database import ReadTransaction, WriteTransaction, update_rows
from registry.storage.exchange.edits import TAGGED
from registry.storage.records.executions import full_steps
from registry.storage.records.extract_results import RESUMED
from registry.storage.tables import channel, edit, execution, expectation, extract_result, saved_view, tag

_TEXT_COLUMNS = ("title", "summary", "made_summary", "nickname")


@dataclass(frozen=True, slots=True)
class ForgottenMessages:
    """The forgotten messages from which records may have been derived."""

    names: Collection[str] = ()  # names and aliases of channels that are forgotten completely
    partial_names: Collection[str] = ()  # names of channels that lose some messages
    ids: AbstractSet[str] = frozenset()
    numbers: AbstractSet[int] = frozenset()
    matching: str | None = None
    is_exact: bool = False
    """Match records by channel and message id only, not by a channel's name in a text, which may be any word."""


Derived = Mapping[str, Sequence[str]]
"""The ids of derived `executions`, `results`, `cases` and `views`; and `texts`: titles, summaries, nicknames, tags and
metadata of channels that stay."""
_TABLES: dict[str, Table] = {
    "executions": execution,
    "results": extract_result,
    "cases": expectation,
    "views": saved_view,
}


def spellings(words: str | None) -> list[str]:
    """Return the forms in which words may be stored, in lower case: NFC, NFD, and escaped for JSON."""
    if not words:
        return []
    forms = [words.lower(), *(normalize(form, words.lower()) for form in ("NFC", "NFD"))]
    return list(dict.fromkeys([*forms, *(json.dumps(form, ensure_ascii=False)[1:-1] for form in forms)]))


def find_derived(tx: ReadTransaction, sources: ForgottenMessages) -> Derived:
    """Return the records derived from the messages."""
    matching = spellings(sources.matching)
    words = [*(() if sources.is_exact else map(str.lower, sources.names)), *matching]

    def mentions(text: str) -> bool:
        return _contains_any(text, words) or not sources.ids.isdisjoint(_MESSAGE_ID.findall(text))

    return {
        "executions": [id_ for id_, name, text in _executions(tx) if name in sources.names or mentions(text)],
        "results": _results(tx, sources),
        "cases": [
            row.id
            for row in tx.execute(select(expectation))
            if row.message_number in sources.numbers or mentions(as_text(row.request))
        ],
        "views": [
            row.id for row in tx.execute(select(saved_view)) if mentions(f"{row.name} {unquote_plus(row.address)}")
        ],
        "texts": [text for text in _channel_texts(tx) if _contains_any(text, matching)] if matching else [],
    }


def forget_derived(tx: WriteTransaction, derived: Derived) -> None:
    """Delete derived records. Executions keep times and outcomes, but lose request, result and texts of steps."""
    for name in ("results", "cases", "views"):
        tx.execute(delete(_TABLES[name]).where(is_one_of(_TABLES[name].c.id, derived[name])))
    runs = tx.execute(select(execution).where(is_one_of(execution.c.id, derived["executions"]))).all()
    update_rows(tx, execution, [_without_words(row) for row in runs])
    if derived["texts"]:
        _forget_texts(tx, set(derived["texts"]))


def all_derived(tx: ReadTransaction) -> Derived:
    """Return all records that may be derived from messages."""
    records = {name: tx.execute(select(table.c.id)).scalars().all() for name, table in _TABLES.items()}
    return {**records, "texts": _channel_texts(tx)}


def resume_files(tx: ReadTransaction, sources: ForgottenMessages) -> list[str]:
    """Return the files that were written to continue one of the channels in another client."""
    named = extract_result.c.channel.in_([*sources.names, *sources.partial_names])
    rows = tx.execute(select(extract_result.c.metadata).where(extract_result.c.record_type == RESUMED, named)).scalars()
    return [path for metadata in rows for path in (metadata or {}).get("files", ())]


def _without_words(row: Any) -> dict[str, Any]:
    shape = ("node", "started_at", "duration_ms", "status")
    steps = [
        {**{name: step[name] for name in shape}, "error": None, "detail": {}}
        for step in full_steps(row.steps, row.started_at)
    ]
    error = {"code": row.error["code"], "message": "", "details": ""} if row.error else None
    blank = {"channel": None, "request": {"forgotten": True}, "asked": "", "result": None}
    return {"number": row.number, **blank, "steps": steps, "error": error}


_MESSAGE_ID = re.compile(r"(?:conv|snap)_[0-9a-z]+")


def _executions(tx: ReadTransaction) -> Iterator[tuple[str, str | None, str]]:
    """Yield id, channel and all texts of each execution."""
    texts = execution.c.request, execution.c.result, execution.c.steps, execution.c.error
    columns = execution.c.number, execution.c.id, execution.c.channel, *(cast(text, Text) for text in texts)
    query, last = select(*columns).order_by(execution.c.number).limit(1000), 0
    while rows := tx.execute(query.where(execution.c.number > last)).all():
        last = rows[-1].number
        yield from ((id_, name, " ".join(filter(None, found))) for _, id_, name, *found in rows)


def _results(tx: ReadTransaction, sources: ForgottenMessages) -> list[str]:
    """Return the results of forgotten channels, and results that contain one of the messages or the words."""
    columns = extract_result.c.id, extract_result.c.channel, extract_result.c["items"], extract_result.c.metadata
    matching = spellings(sources.matching)
    return [
        id_
        for id_, name, items, metadata in tx.execute(select(*columns))
        if name in sources.names
        or not sources.ids.isdisjoint(items)
        or (matching and _contains_any(as_text(metadata), matching))
    ]


def _channel_texts(tx: ReadTransaction) -> list[str]:
    """Return current and earlier titles, summaries, nicknames, tags and metadata of channels."""
    texts: list[Any] = []
    for row in tx.execute(select(*(channel.c[name] for name in _TEXT_COLUMNS), channel.c.meta)):
        texts += [*row[:-1], *map(as_text, row.meta.values())]
    texts += tx.execute(select(edit.c.value).where(edit.c.field.in_(_TEXT_COLUMNS))).scalars()
    # each tag is recorded in an edit
    tagged = tx.execute(select(edit.c.field).where(edit.c.field.startswith(TAGGED))).scalars()
    texts += (field.removeprefix(TAGGED) for field in tagged)
    return list(dict.fromkeys(text for text in texts if text and isinstance(text, str)))


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _contains_any(text: str, spelled: Iterable[str]) -> bool:
    lowered = text.lower()
    return any(one in lowered for one in spelled)


def _forget_texts(tx: WriteTransaction, texts: Collection[str]) -> None:
    for row in tx.execute(select(channel)).all():
        gone: dict[str, Any] = {name: None for name in _TEXT_COLUMNS if getattr(row, name) in texts}
        kept = {name: value for name, value in row.meta.items() if as_text(value) not in texts}
        if gone or kept != row.meta:
            change_channel(tx, row, {**gone, "meta": kept})
    tx.execute(delete(tag).where(is_one_of(tag.c.name, texts)))
    tx.execute(delete(edit).where(is_one_of(edit.c.field, [f"{TAGGED}{text}" for text in texts])))
    for number, value in tx.execute(select(edit.c.number, edit.c.value).where(edit.c.field.in_(_TEXT_COLUMNS))).all():
        if value in texts:
            tx.execute(update(edit).where(edit.c.number == number).values(value=None))
