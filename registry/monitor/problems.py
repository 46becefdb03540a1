"""Find recurring problems: errors that several conversations mention, also across projects."""

from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import func, select

from registry.domain import format_time
from registry.project import NO_PROJECT
from registry.storage.conditions import is_one_of
from registry.storage.conversations.messages import MessageRow
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import index_of
from registry.storage.tables import channel, conversation
from registry.text.analysis.analyzer import analyze
from registry.text.problems import find_problems

MAX_PROBLEMS, MAX_SESSIONS = 50, 10
_WORDS = ("error", "exception", "failed", "panicked", "fatal", "오류", "에러", "econnrefused", "eaddrinuse", "enoent")

_COLUMNS = (
    *(conversation.c.number, conversation.c.id, conversation.c.channel_number, conversation.c.timestamp),
    *(channel.c.name, channel.c.title, channel.c.first_message_preview, channel.c.project_name),
    func.substr(conversation.c.text, 1, 20_000).label("text"),  # characters
)


class Mention(NamedTuple):
    """A message with its channel, and the line of it that mentions a problem."""

    message: MessageRow
    line: str


def recurring_problems(tx: ReadTransaction) -> list[dict[str, Any]]:
    """Return the problems that at least two conversations mention, those of most projects first.

    Each: `problem`, an example of its `line`, its `projects`, the number of `sessions` and the latest of them with the
    message that mentions it, `first_seen` and `last_seen`.
    """
    tokens = sorted({analyze(word)[0] for word in _WORDS})
    # only the newest messages that mention an error
    numbers = sorted(index_of(tx).holders(tx, [tokens]), reverse=True)[:2000]
    query = select(*_COLUMNS).join_from(conversation, channel, channel.c.number == conversation.c.channel_number)
    rows = tx.execute(query.where(is_one_of(conversation.c.number, numbers), conversation.c.deleted.is_(False))).all()
    found: dict[str, list[Mention]] = defaultdict(list)
    for row in sorted(rows, key=attrgetter("timestamp", "number")):
        for problem, line in find_problems(row.text).items():
            found[problem].append(Mention(row, line))
    items = [
        _as_item(problem, mentions)
        for problem, mentions in found.items()
        if len({one.message.channel_number for one in mentions}) > 1
    ]
    items.sort(key=lambda one: (len(one["projects"]), one["sessions"], one["last_seen"]), reverse=True)
    return items[:MAX_PROBLEMS]


def _as_item(problem: str, mentions: Iterable[Mention]) -> dict[str, Any]:
    ordered = sorted(mentions, key=lambda one: one.message.timestamp, reverse=True)
    latest = {one.message.channel_number: one.message for one in reversed(ordered)}
    newest = sorted(latest.values(), key=attrgetter("timestamp"), reverse=True)[:MAX_SESSIONS]
    return {
        "problem": problem,
        "line": ordered[0].line,
        "projects": sorted({row.project_name or NO_PROJECT for row in latest.values()}),
        "sessions": len(latest),
        "first_seen": format_time(ordered[-1].message.timestamp),
        "last_seen": format_time(ordered[0].message.timestamp),
        "latest": [_session(row) for row in newest],
    }


def _session(row: MessageRow) -> dict[str, Any]:
    return {
        "channel": row.name,
        "title": row.title or row.first_message_preview or row.name,
        "project": row.project_name or NO_PROJECT,
        "message": row.id,
        "timestamp": format_time(row.timestamp),
    }
