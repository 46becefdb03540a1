"""Fill a large registry within minutes, by copying the texts of the question sets and recorded runs into the tables.

The first channel is long, and every hundredth channel is deleted. Rows are inserted in the order of their times, which
end now.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from typing import Any

from sqlalchemy import Table, insert, select
from sqlalchemy.dialects import sqlite

from benchmarks.retrieval.question_sets import Question, Session, own_sets
from orchestrator.service import Orchestrator
from registry.domain import Role, digest_of, now, preview_of
from registry.registry import Registry
from registry.storage.conversations.channels import title_entry
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.index.message_index import index_of, message_entry
from registry.storage.tables import channel, conversation, execution, tag
from registry.text.analysis.analyzer import ANALYZER_VERSION, analyze

MAX_MESSAGES = 8
LONG = 3_000  # messages of the first channel
DAYS = 400
DELETED_EACH, TAGGED_EACH, FAILED_EACH = 100, 10, 97  # one channel, channel and run in this many
BATCH = 10_000
COPIED = str(insert(execution).compile(dialect=sqlite.dialect(paramstyle="named")))
"""Plain SQL: parsing and writing the JSON columns would take most of the time."""
SOURCES = ("cursor", "claude-code", "codex", "claude", "chatgpt", "gemini-cli")
CLIENTS = ("cursor-vscode 1.7.3", "claude-code/2.1.330", "codex/0.169.0", "claude-desktop/1.2", None)
MODELS = ("gpt-5-codex", "claude-sonnet-4-5", "gemini-2.5-pro")
ERROR = {"code": "TIMEOUT", "message": "The operation took longer than 30 s", "details": "Ask for less at once."}
FAILURE = {"status": "failed", "error_code": ERROR["code"], "error": json.dumps(ERROR), "result": None}


def fill(registry: Registry, channels: int, executions: int) -> None:
    """Fill an empty registry with channels of up to `MAX_MESSAGES` messages, and with runs."""
    dice = random.Random(5)
    with registry.engine.execution_options(write=True).connect() as connection:
        tx = WriteTransaction(ReadTransaction(connection))
        for rows in _batches(_channel_rows(channels, dice), BATCH // MAX_MESSAGES):
            with connection.begin():
                _store(tx, rows)
        templates = asyncio.run(_runs(registry))
        for rows in _batches(_execution_rows(executions, channels, templates, dice), BATCH):
            with connection.begin():
                connection.exec_driver_sql(COPIED, rows)
        with connection.begin():
            connection.exec_driver_sql("ANALYZE")


def _batches(rows: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    stream = iter(rows)
    while batch := list(islice(stream, size)):
        yield batch


@cache
def _material() -> tuple[list[Session], list[Question]]:
    sets = own_sets()
    return [one for each in sets for one in each.sessions], [one for each in sets for one in each.questions]


@cache
def _tokens(text: str) -> list[str]:
    return analyze(text)


def _channel_rows(count: int, dice: random.Random) -> Iterator[dict[str, Any]]:
    sessions, _ = _material()
    until = now()
    for number in range(1, count + 1):
        like = sessions[number % len(sessions)]
        said = min(len(like.messages), MAX_MESSAGES) if number > 1 else LONG
        started = until - timedelta(days=DAYS * (1 - number / count), minutes=said + 1000 * dice.random())
        project = like.project and f"{like.project}-{number % 7}"
        yield {
            "number": number,
            "name": _name(number),
            "source": SOURCES[number % len(SOURCES)],
            "title": like.title and f"{like.title} ({number})",
            "project_path": project,
            "project_name": project and project.rstrip("/").rsplit("/", 1)[-1],
            "first_message_preview": preview_of(like.messages[0].text),
            "meta": {},
            "message_count": said,
            "seq_count": said,
            "token_count": sum(len(_tokens(_said(like, seq))) for seq in range(said)),
            "created_at": started,
            "updated_at": started + timedelta(minutes=said - 1),
            "deleted": not number % DELETED_EACH,
        }


def _name(number: int) -> str:
    return f"{SOURCES[number % len(SOURCES)]}_session_{number:06}"


def _said(like: Session, seq: int) -> str:
    return like.messages[seq % len(like.messages)].text


def _store(tx: WriteTransaction, rows: list[dict[str, Any]]) -> None:
    sessions, _ = _material()
    _insert(tx, channel, rows)
    _insert(tx, tag, [{"channel_number": one["number"], "name": "later"} for one in rows if _is_tagged(one)])
    messages = [one for row in rows for one in _message_rows(row, sessions[row["number"] % len(sessions)])]
    _insert(tx, conversation, messages)
    numbers = [one["number"] for one in rows]
    stored = tx.execute(select(conversation).where(conversation.c.channel_number.in_(numbers))).mappings()
    said = [message_entry(dict(one), _tokens(one["text"])) for one in stored if not one["deleted"]]
    kept = tx.execute(select(channel).where(channel.c.number.in_(numbers), channel.c.deleted.is_(False)))
    index_of(tx).add(tx, [*said, *(title_entry(one, {}) for one in kept)])


def _insert(tx: WriteTransaction, table: Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        tx.execute(insert(table), rows)


def _is_tagged(row: Mapping[str, Any]) -> bool:
    return not row["number"] % TAGGED_EACH


def _message_rows(row: Mapping[str, Any], like: Session) -> Iterator[dict[str, Any]]:
    for seq in range(row["message_count"]):
        text = _said(like, seq)
        role = Role.ASSISTANT if seq % 2 else Role.USER
        at = row["created_at"] + timedelta(minutes=seq)
        yield {
            "id": f"conv_{row['number']:020}{seq:06}",
            "record_type": "conversation",
            "source": row["source"],
            "channel": row["name"],
            "payload": _usage(len(text), seq) if role is Role.ASSISTANT else {},
            "timestamp": at,
            "actor": row["source"],
            "deleted": row["deleted"],
            "with_channel": row["deleted"],
            "channel_number": row["number"],
            "seq": seq,
            "place": float(seq),
            "turn": seq - seq % 2,
            "role": role.value,
            "text": text,
            "digest": digest_of(role, text),
            "received_at": at,
            "length": len(_tokens(text)),
            "analyzer_version": ANALYZER_VERSION,
        }


def _usage(length: int, seq: int) -> dict[str, Any]:
    tokens = {"input_tokens": 9 * length, "output_tokens": length, "cache_read_input_tokens": 40 * length}
    return {"model": MODELS[seq % len(MODELS)], "usage": tokens}


async def _runs(registry: Registry) -> list[dict[str, Any]]:
    """Run frequent operations on the registry; return their execution rows, with JSON as it is stored."""
    _, questions = _material()
    orchestrator = Orchestrator(registry)
    asked = [one.text for one in questions[::60]]
    said = [{"role": Role.USER.value, "text": text} for text in asked]
    requests: list[dict[str, Any]] = [
        *(
            {"operation": "conversation_log", "channel": f"told_{at}", "messages": said[:at]}
            for at in range(1, len(said))
        ),
        *({"operation": "list", "query": {"limit": 20}} for _ in asked),
        *({"operation": "search_sessions", "query": {"text": text, "limit": 5}} for text in asked[::3]),
        *({"operation": "search", "query": {"text": text, "limit": 5}} for text in asked[::3]),
        *({"operation": "extract", "query": {"text": text}} for text in asked[::3]),
        {"operation": "extract", "query": {"text": "quokka xyzzy"}},
        {"operation": "search", "query": {"text": "quokka xyzzy"}},
    ]
    for request in requests:
        await orchestrator.run({"source": "cursor", **request}, CLIENTS[0])
    await orchestrator.settle()
    with registry.engine.connect() as connection:
        return [dict(row) for row in connection.exec_driver_sql("SELECT * FROM execution").mappings()]


def _execution_rows(
    count: int, channels: int, templates: list[dict[str, Any]], dice: random.Random
) -> Iterator[dict[str, Any]]:
    """Yield rows like the templates, denser towards now; one in `FAILED_EACH` has failed."""
    _, questions = _material()
    until = now()
    for number in range(count):
        like = templates[number % len(templates)]
        started = until - timedelta(days=DAYS / 4 * (1 - number / count) ** 2)
        yield {
            **like,
            **(FAILURE if number % FAILED_EACH == 0 else {}),
            **_asking(like, questions[number % len(questions)].text),
            **_times(started, like["duration_ms"] * dice.lognormvariate(0, 0.6)),
            "number": None,
            "id": f"exec_{number:026}",
            "source": SOURCES[number % len(SOURCES)],
            "client": CLIENTS[number % len(CLIENTS)],
            "channel": like["channel"] and _name(number % channels + 1),
        }


def _asking(like: Mapping[str, Any], words: str) -> dict[str, Any]:
    request = json.loads(like["request"])
    if "text" not in request.get("query", {}):
        return {}
    asked = {**request, "query": {**request["query"], "text": words}}
    return {"asked": preview_of(words), "request": json.dumps(asked, ensure_ascii=False)}


def _times(started: datetime, took: float) -> dict[str, Any]:
    finished = started + timedelta(milliseconds=took)
    stored = [moment.replace(tzinfo=None).isoformat(" ", "microseconds") for moment in (started, finished)]
    rounded = float(f"{took:.1e}")
    return {"started_at": stored[0], "finished_at": stored[1], "duration_ms": took, "duration_rounded": rounded}
