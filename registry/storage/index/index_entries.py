"""Build index entries: a message's tokens, and scope tokens of its channel and source. Pure.

A filter is one more required token, so that it narrows the look-up itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    return Entry(row["number"], [channel_token(row["channel_number"]), source_token(row["source"]), *tokens])


def searched_tokens(row: Mapping[str, Any]) -> list[str]:
    """Return the tokens of a row's text; none if it is only kept."""
    return [] if UNINDEXED in row["payload"] else analyze(row["text"])


def channel_token(number: int) -> str:
    """Carried by every message of a channel, so that a search inside it reads only its own postings."""
    return f"zzc{number}"


def source_token(source: str) -> str:
    """Carried by every message of a source; of another one too, whose name has the same letters."""
    return "zzs" + "".join(filter(str.isalnum, source.lower()))
