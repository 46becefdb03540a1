"""Build index entries: a message's tokens, and scope tokens of its channel, source, role and month. Pure.

A filter is one more required token, so that it narrows the look-up itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from registry.text.analysis.analyzer import analyze

UNINDEXED, RECALL = "unindexed", "a recall"
"""In the payload of a message that is kept and shown, but that nothing finds: why."""


class Entry(NamedTuple):
    """A message (or, under a negative number, a channel's title); one of the `tokens` may be several, parted by
    spaces."""

    number: int
    tokens: Sequence[str]


def message_entry(row: Mapping[str, Any], tokens: Sequence[str]) -> Entry:
    """Return the entry of a row of `conversation` with its `searched_tokens`."""
    if UNINDEXED in row["payload"]:
        return Entry(row["number"], [])
    scope = [channel_token(row["channel_number"]), *scope_tokens(row["source"], row["role"], row["timestamp"])]
    return Entry(row["number"], [*scope, *tokens])


def scope_tokens(source: str, role: str, moment: datetime) -> list[str]:
    """Return a message's scope tokens, except its channel's."""
    return [source_token(source), role_token(role), month_token(moment)]


def searched_tokens(row: Mapping[str, Any]) -> list[str]:
    """Return the tokens of a row's text; none if it is only kept."""
    return [] if UNINDEXED in row["payload"] else analyze(row["text"])


def channel_token(number: int) -> str:
    """Carried by every message of a channel, so that a search inside it reads only its own postings."""
    return f"zzc{number}"


@lru_cache(1024)
def source_token(source: str) -> str:
    """Carried by every message of a source; of another one too, whose name has the same letters."""
    return "zzs" + "".join(filter(str.isalnum, source.lower()))


def role_token(role: str) -> str:
    """Carried by every message of a role."""
    return f"zzr{role}"


def month_token(moment: datetime) -> str:
    """Carried by every message of a month (UTC)."""
    at = moment.astimezone(UTC)
    return f"zzm{at.year}{at.month:02}"


def month_tokens(first: datetime, last: datetime) -> list[str]:
    """Return the tokens of all months (UTC) between two moments; none if there are too many."""
    first, last = first.astimezone(UTC), last.astimezone(UTC)
    months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    if not 0 < len(months) <= 36:
        return []
    return [f"zzm{month // 12:04}{month % 12 + 1:02}" for month in months]
