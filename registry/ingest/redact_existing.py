"""Find and mask secrets in stored rows that were written before a rule for them existed."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Table, delete, func, select, update

from registry.domain import Role, digest_of, preview_of
from registry.ingest.intake import storage_rules_of
from registry.storage.conversations.channels import change_channel, recount_channel
from registry.storage.conversations.messages import MessageRow, revise
from registry.storage.database import Database, WriteTransaction
from registry.storage.records.executions import beginning_of
from registry.storage.safety.forgetting import wipe
from registry.storage.safety.masking import key_of
from registry.storage.tables import channel, conversation, execution, extract_result, message_vector
from registry.text.privacy.masking import mask_value
from registry.text.privacy.rules import load_rules
from registry.text.privacy.secrets import MARK, MARK_BEGIN

SCAN_FILE = "scanned.json"  # in the registry's folder: the digest of the rules of the last scan, and its counts
logger = logging.getLogger(__name__)
Progress = Callable[[int, int], None]  # called with rows done and rows in total
BatchResult = tuple[int, int] | None

_TEXTS: dict[Table, tuple[str, ...]] = {
    conversation: ("text", "payload"),
    channel: ("made_summary", "title", "summary", "nickname", "meta", "first_message_preview"),
    execution: ("request", "result", "steps", "error"),
    extract_result: ("metadata",),
}
"""Columns with text, by table."""


@dataclass(slots=True)
class SecretCounts:
    """The number of rows with secrets by table, and of secrets by kind."""

    rows: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        names = {"conversation": "messages", "channel": "channels", "execution": "executions"}
        rows = {shown: self.rows[name] for name, shown in names.items()}
        return {**rows, "secrets": dict(self.kinds.most_common()), "total": self.kinds.total()}


async def scan(database: Database, on_progress: Progress) -> SecretCounts:
    return await _scan_tables(database, on_progress, is_dry=True)


async def redact(database: Database, on_progress: Progress) -> SecretCounts:
    """Mask the secrets in batches; after an interruption the next run masks the rest."""
    counts = await _scan_tables(database, on_progress, is_dry=False)
    if counts.rows:
        await wipe(database)
    return counts


async def _scan_tables(database: Database, on_progress: Progress, *, is_dry: bool, pause_s: float = 0) -> SecretCounts:
    counts = SecretCounts()
    total = await database.read(
        lambda tx: sum(tx.execute(select(func.count()).select_from(table)).scalar_one() for table in _TEXTS)
    )
    done = 0
    for table in _TEXTS:
        last = 0
        batch = partial(_mask_batch, table=table, counts=counts, is_dry=is_dry)
        while result := await _run(database, partial(batch, last=last), is_dry):
            last, count = result
            done += count
            on_progress(min(done, total), total)
            if pause_s:
                await asyncio.sleep(pause_s)
    return counts


async def _run(database: Database, batch: Callable[[WriteTransaction], BatchResult], is_dry: bool) -> BatchResult:
    if is_dry:
        return await database.read(lambda tx: batch(WriteTransaction(tx)))
    return await database.write(batch)


async def rescan_if_rules_changed(database: Database, home: Path) -> None:
    """Scan the registry if the rules have changed since the last scan."""
    if read_last_scan(home).get("rules") == load_rules().digest:
        return
    try:
        write_last_scan(home)  # so that no other process scans meanwhile
        counts = await _scan_tables(database, lambda _done, _total: None, is_dry=True, pause_s=0.05)
        write_last_scan(home, counts)
    except Exception:  # a failed scan must not stop the server
        logger.exception("Scanning the registry for secrets failed. Try again: ctxr scan")
        return
    if counts.rows:
        logger.warning("%d secrets are stored unmasked. Mask them: ctxr redact --existing", counts.kinds.total())


def read_last_scan(home: Path) -> dict[str, Any]:
    """Return the digest of the rules of the last scan, and its counts; an empty dict if there was none."""
    with suppress(OSError, ValueError):
        return dict(json.loads((home / SCAN_FILE).read_text(encoding="utf-8")))
    return {}


def write_last_scan(home: Path, counts: SecretCounts | None = None) -> None:
    """Store the digest of the current rules, and the counts of the scan."""
    with suppress(OSError):  # if the folder is not writable, the next process scans again
        (home / SCAN_FILE).write_text(
            json.dumps({"rules": load_rules().digest, **(counts or SecretCounts()).as_dict()}), encoding="utf-8"
        )


def _mask_batch(tx: WriteTransaction, table: Table, last: int, counts: SecretCounts, is_dry: bool) -> BatchResult:
    """Mask the rows after number `last`; return the last number of the batch and its row count, None at the end."""
    rows = tx.execute(select(table).where(table.c.number > last).order_by(table.c.number).limit(500)).all()
    if not rows:
        return None
    key, unmasked = b"any" if is_dry else key_of(tx), _unmasked_channels(tx)
    changed = []
    for row in rows:
        if table in (conversation, channel) and row._mapping[_CHANNEL_COLUMN[table]] in unmasked:
            continue
        before = {name: row._mapping[name] for name in _TEXTS[table] if row._mapping[name]}
        after = mask_value(before, key)
        if table is channel:
            after = _with_masked_titles(tx, row.number, after)
        if after != before:
            changed.append((row, {name: after[name] for name in before if after[name] != before[name]}))
            counts.rows[table.name] += 1
            counts.kinds.update(_count_marks(after) - _count_marks(before))
    if changed and not is_dry:
        _update_changed(tx, table, changed)
    return rows[-1].number, len(rows)


def _with_masked_titles(tx: WriteTransaction, number: int, texts: dict[str, Any]) -> dict[str, Any]:
    """Mask titles that were cut from a message in the middle of a secret, and so still show a part of it."""
    masked = select(conversation.c.text).where(
        conversation.c.channel_number == number, conversation.c.text.contains(MARK_BEGIN, autoescape=True)
    )
    lines = [" ".join(text.split()) for text in tx.execute(masked).scalars()]
    masked_texts = {**texts, **_masked_titles(lines, texts, ("title", "first_message_preview"))}
    if meta := texts.get("meta"):  # also contains the title as the client sent it
        masked_texts["meta"] = {**meta, **_masked_titles(lines, meta, ("title",))}
    return masked_texts


def _masked_titles(lines: Sequence[str], texts: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    masked_texts = {}
    for name in names:
        title = texts.get(name)
        if not isinstance(title, str):
            continue
        for line in lines:
            begins = (mark.start() for mark in MARK.finditer(line))
            if any(3 < at < len(title) and _is_unmasked_at(title, line, at) for at in begins):
                masked_texts[name] = preview_of(line, len(title) + len(MARK_BEGIN))
    return masked_texts


def _is_unmasked_at(title: str, line: str, at: int) -> bool:
    """Return whether the title has other text where the line has a mark. The mark may be cut off at the title's end."""
    shown = title[at : at + len(MARK_BEGIN)].rstrip("… ")
    return title.startswith(line[:at]) and not MARK_BEGIN.startswith(shown)


_CHANNEL_COLUMN = {conversation: "channel_number", channel: "number"}


def _unmasked_channels(tx: WriteTransaction) -> set[int]:
    rules = storage_rules_of(tx)
    if not rules.unmasked:
        return set()
    rows = tx.execute(select(channel.c.number, channel.c.project_path))
    return {number for number, project in rows if not rules.is_masking(project)}


def _count_marks(value: Any) -> Counter[str]:
    return Counter(mark.split(":")[1] for mark in MARK.findall(json.dumps(value, ensure_ascii=False)))


Changes = Sequence[tuple[MessageRow, Mapping[str, Any]]]


def _update_changed(tx: WriteTransaction, table: Table, changes: Changes) -> None:
    if table is conversation:
        _change_messages(tx, changes)
        return
    for row, news in changes:
        if table is channel:
            change_channel(tx, row, news)
        else:
            question = {"asked": beginning_of(news["request"])} if "request" in news else {}
            tx.execute(update(table).where(table.c.number == row.number).values({**news, **question}))


def _change_messages(tx: WriteTransaction, changes: Changes) -> None:
    digests = [{"digest": digest_of(Role(row.role), news["text"])} if "text" in news else {} for row, news in changes]
    revise(tx, [(row, {**news, **more}) for (row, news), more in zip(changes, digests, strict=True)])
    tx.execute(delete(message_vector).where(message_vector.c.message_number.in_([row.number for row, _ in changes])))
    for number in {row.channel_number for row, _ in changes}:
        recount_channel(tx, number)
