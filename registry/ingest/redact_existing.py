"""Find and mask secrets in what is stored already, from before a rule for them existed."""

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
from registry.ingest.intake import keeping_of
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

SCANNED = "scanned.json"  # in the registry's folder: the rules of the last scan, and what it found
logger = logging.getLogger(__name__)
Progress = Callable[[int, int], None]  # called with rows done and rows in total
Done = tuple[int, int] | None

_TEXTS: dict[Table, tuple[str, ...]] = {
    conversation: ("text", "payload"),
    channel: ("made_summary", "title", "summary", "nickname", "meta", "first_message_preview"),
    execution: ("request", "result", "steps", "error"),
    extract_result: ("metadata",),
}
"""Columns with text, by table."""


@dataclass(slots=True)
class Held:
    """The rows with secrets by table, and secrets by kind."""

    rows: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        names = {"conversation": "messages", "channel": "channels", "execution": "executions"}
        rows = {shown: self.rows[name] for name, shown in names.items()}
        return {**rows, "secrets": dict(self.kinds.most_common()), "total": self.kinds.total()}


async def scan(database: Database, on_progress: Progress) -> Held:
    return await _walk(database, on_progress, is_dry=True)


async def redact(database: Database, on_progress: Progress) -> Held:
    """Mask the secrets batch by batch; after an interruption the next run masks the rest."""
    held = await _walk(database, on_progress, is_dry=False)
    if held.rows:
        await wipe(database)
    return held


async def _walk(database: Database, on_progress: Progress, *, is_dry: bool, pause_s: float = 0) -> Held:
    held = Held()
    total = await database.read(
        lambda tx: sum(tx.execute(select(func.count()).select_from(table)).scalar_one() for table in _TEXTS)
    )
    done = 0
    for table in _TEXTS:
        last = 0
        while found := await _next(database, partial(_batch, table=table, last=last, held=held, is_dry=is_dry), is_dry):
            last, count = found
            done += count
            on_progress(min(done, total), total)
            if pause_s:
                await asyncio.sleep(pause_s)
    return held


async def _next(database: Database, batch: Callable[[WriteTransaction], Done], is_dry: bool) -> Done:
    if is_dry:
        return await database.read(lambda tx: batch(WriteTransaction(tx)))
    return await database.write(batch)


async def scan_again(database: Database, home: Path) -> None:
    """Scan the registry if the rules are others than at the last scan."""
    if scanned(home).get("rules") == load_rules().digest:
        return
    try:
        note_scanned(home)  # no other process scans meanwhile
        held = await _walk(database, lambda _done, _total: None, is_dry=True, pause_s=0.05)
        note_scanned(home, held)
    except Exception:  # the server goes on, whatever is wrong here
        logger.exception("The registry is not scanned for secrets: ctxr scan")
        return
    if held.rows:
        logger.warning("%d secrets are stored in clear. Mask them: ctxr redact --existing", held.kinds.total())


def scanned(home: Path) -> dict[str, Any]:
    """Return the digest of the rules of the last scan, and what it found; nothing if there was none."""
    with suppress(OSError, ValueError):
        return dict(json.loads((home / SCANNED).read_text(encoding="utf-8")))
    return {}


def note_scanned(home: Path, held: Held | None = None) -> None:
    """Note by which rules the registry was scanned last, and what they found."""
    with suppress(OSError):  # a folder that cannot be written is scanned by the next process
        (home / SCANNED).write_text(
            json.dumps({"rules": load_rules().digest, **(held or Held()).as_dict()}), encoding="utf-8"
        )


def _batch(tx: WriteTransaction, table: Table, last: int, held: Held, is_dry: bool) -> Done:
    """Mask the next rows after `last`; returns the last number of them and their count."""
    rows = tx.execute(select(table).where(table.c.number > last).order_by(table.c.number).limit(500)).all()
    if not rows:
        return None
    key, kept = b"any" if is_dry else key_of(tx), _unmasked(tx)
    changed = []
    for row in rows:
        if table in (conversation, channel) and row._mapping[_CHANNEL[table]] in kept:
            continue
        was = {name: row._mapping[name] for name in _TEXTS[table] if row._mapping[name]}
        now = mask_value(was, key)
        if table is channel:
            now = _with_made_titles(tx, row.number, now)
        if now != was:
            changed.append((row, {name: now[name] for name in was if now[name] != was[name]}))
            held.rows[table.name] += 1
            held.kinds.update(_marks(now) - _marks(was))
    if changed and not is_dry:
        _change(tx, table, changed)
    return rows[-1].number, len(rows)


def _with_made_titles(tx: WriteTransaction, number: int, texts: dict[str, Any]) -> dict[str, Any]:
    """Replace a title that was cut from a message inside a secret, and so still shows a part of it."""
    masked = select(conversation.c.text).where(
        conversation.c.channel_number == number, conversation.c.text.contains(MARK_BEGIN, autoescape=True)
    )
    lines = [" ".join(text.split()) for text in tx.execute(masked).scalars()]
    made = {**texts, **_made_titles(lines, texts, ("title", "first_message_preview"))}
    if meta := texts.get("meta"):  # also holds the title as the client sent it
        made["meta"] = {**meta, **_made_titles(lines, meta, ("title",))}
    return made


def _made_titles(lines: Sequence[str], texts: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    made = {}
    for name in names:
        title = texts.get(name)
        if not isinstance(title, str):
            continue
        for line in lines:
            begins = (mark.start() for mark in MARK.finditer(line))
            if any(3 < at < len(title) and _is_unmasked_at(title, line, at) for at in begins):
                made[name] = preview_of(line, len(title) + len(MARK_BEGIN))
    return made


def _is_unmasked_at(title: str, line: str, at: int) -> bool:
    """Return whether the title has something else where the line has a mark. The mark may be cut off at its end."""
    shown = title[at : at + len(MARK_BEGIN)].rstrip("… ")
    return title.startswith(line[:at]) and not MARK_BEGIN.startswith(shown)


_CHANNEL = {conversation: "channel_number", channel: "number"}


def _unmasked(tx: WriteTransaction) -> set[int]:
    keeping = keeping_of(tx)
    if not keeping.unmasked:
        return set()
    rows = tx.execute(select(channel.c.number, channel.c.project_path))
    return {number for number, project in rows if not keeping.masks(project)}


def _marks(value: Any) -> Counter[str]:
    return Counter(mark.split(":")[1] for mark in MARK.findall(json.dumps(value, ensure_ascii=False)))


Changes = Sequence[tuple[MessageRow, Mapping[str, Any]]]


def _change(tx: WriteTransaction, table: Table, changes: Changes) -> None:
    if table is conversation:
        _change_messages(tx, changes)
        return
    for row, news in changes:
        if table is channel:
            change_channel(tx, row, news)
        else:
            asked = {"asked": beginning_of(news["request"])} if "request" in news else {}
            tx.execute(update(table).where(table.c.number == row.number).values({**news, **asked}))


def _change_messages(tx: WriteTransaction, changes: Changes) -> None:
    digests = [{"digest": digest_of(Role(row.role), news["text"])} if "text" in news else {} for row, news in changes]
    revise(tx, [(row, {**news, **more}) for (row, news), more in zip(changes, digests, strict=True)])
    tx.execute(delete(message_vector).where(message_vector.c.message_number.in_([row.number for row, _ in changes])))
    for number in {row.channel_number for row, _ in changes}:
        recount_channel(tx, number)
