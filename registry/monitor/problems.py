"""Find recurring problems: errors that several conversations name, also across projects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from registry.domain import format_time
from registry.storage.conversations.channels import ChannelRow, channels_by_number
from registry.storage.conversations.messages import MessageRow, by_numbers
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import index_of
from registry.text.analysis.analyzer import analyze
from registry.text.problems import problems_in

SHOWN, SESSIONS = 50, 10
_SIGNS = ("error", "exception", "failed", "panicked", "fatal", "오류", "에러", "econnrefused", "eaddrinuse", "enoent")


class Named(NamedTuple):
    """A message and the line in which it names a problem."""

    message: MessageRow
    line: str

    @property
    def channel_number(self) -> int:
        return int(self.message.channel_number)


def recurring_problems(tx: ReadTransaction) -> list[dict[str, Any]]:
    """Return the problems that at least two conversations name, those of most projects first.

    Each: `problem`, an example of its `line`, its `projects`, the number of `sessions` and the latest of them with the
    message that names it, `first_seen` and `last_seen`.
    """
    tokens = sorted({analyze(sign)[0] for sign in _SIGNS})
    # only the newest messages that mention an error
    rows = by_numbers(tx, sorted(index_of(tx).holders(tx, [tokens]), reverse=True)[:2000])
    found: dict[str, list[Named]] = defaultdict(list)
    for row in rows:
        for problem, line in problems_in(row.text[:20_000]).items():  # characters of each
            found[problem].append(Named(row, line))
    several = {problem: named for problem, named in found.items() if len({one.channel_number for one in named}) > 1}
    channels = channels_by_number(tx, list({one.channel_number for named in several.values() for one in named}))
    told = [_as_item(problem, named, channels) for problem, named in several.items()]
    told.sort(key=lambda one: (len(one["projects"]), one["sessions"], one["last_seen"]), reverse=True)
    return told[:SHOWN]


def _as_item(problem: str, named: Iterable[Named], channels: Mapping[int, ChannelRow]) -> dict[str, Any]:
    ordered = sorted(named, key=lambda one: one.message.timestamp, reverse=True)
    latest = {one.channel_number: one for one in reversed(ordered)}
    projects = {channels[number].project_name or "General" for number in latest}
    newest = sorted(latest.values(), key=lambda one: one.message.timestamp, reverse=True)[:SESSIONS]
    return {
        "problem": problem,
        "line": ordered[0].line,
        "projects": sorted(projects),
        "sessions": len(latest),
        "first_seen": format_time(ordered[-1].message.timestamp),
        "last_seen": format_time(ordered[0].message.timestamp),
        "latest": [_session(one, channels[one.channel_number]) for one in newest],
    }


def _session(named: Named, row: ChannelRow) -> dict[str, Any]:
    return {
        "channel": row.name,
        "title": row.title or row.first_message_preview or row.name,
        "project": row.project_name or "General",
        "message": named.message.id,
        "timestamp": format_time(named.message.timestamp),
    }
