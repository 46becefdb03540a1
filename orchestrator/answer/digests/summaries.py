"""The summaries of sessions: the client's own where it wrote one, else one that is made here and kept."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.answer.delivery import within
from orchestrator.answer.digests.summary import WRITER, summary_of
from orchestrator.state import Run
from registry.domain import preview_of
from registry.storage.conversations.channels import (
    CLIENT,
    ChannelRow,
    MadeSummary,
    channels_by_number,
    content_state,
    numbers_of,
)
from registry.storage.conversations.messages import MessageRow, both_ends
from registry.storage.database import ReadTransaction

TOKENS = 200
"""A session's summary is no longer."""
BEGINNING, END = 20, 100
"""Messages of a longer session that are read: its first and its last ones."""
LISTED = 300
"""Characters of it in a list."""
FOUND = 120
"""Characters of it beside the passages of a search."""
AT_ONCE = 50
"""Summaries made for one answer; further ones are made for later answers."""
_LONGEST = 4000
_PREAMBLE = re.compile(r"\A.*?(?:Primary Request and Intent:|<summary>|Summary:)", re.DOTALL)
_LEAST = 80
"""A shorter compaction says only that there was one."""


def add_summaries(
    tx: ReadTransaction,
    run: Run,
    sessions: Sequence[dict[str, Any]],
    width: int = 0,
) -> None:
    """Fill in the summaries that are missing; they are kept with the record of this run.

    `width`: at most so many characters of each are shown, on one line; 0: all of it.
    """
    _fill_in(tx, run, sessions)
    for one in sessions:
        if width and one["summary"]:
            one["summary"] = preview_of(one["summary"], width)


def _fill_in(tx: ReadTransaction, run: Run, sessions: Sequence[dict[str, Any]]) -> None:
    lacking = [one for one in sessions if not one["summary"] and one["message_count"]][:AT_ONCE]
    if not lacking:
        return
    names = [one["channel"] for one in lacking]
    rows = {row.name: row for row in channels_by_number(tx, list(numbers_of(tx, names).values())).values()}
    messages = both_ends(tx, [row.number for row in rows.values()], BEGINNING, END)
    for one in lacking:
        row = rows.get(one["channel"])
        if row and (made := make_summary(row, messages[row.number])).text:
            one |= {"summary": made.text, "summary_by": made.by}
            run.recorder.summaries.append(made)


def make_summary(row: ChannelRow, messages: Sequence[MessageRow]) -> MadeSummary:
    """A channel's summary: what its client noted when it made room, else its significant sentences."""
    noted = _noted(messages)
    text, by = (noted, CLIENT) if noted else (summary_of([as_said(one) for one in messages], TOKENS), WRITER)
    return MadeSummary(row.number, text, by, content_state(row))


def _noted(messages: Sequence[MessageRow]) -> str:
    """The client's own summary, where it went on from one near the end."""
    for place, message in reversed(list(enumerate(messages))):
        if "compaction" in message.payload and len(message.text) > _LEAST and place > len(messages) * 2 / 3:
            return within(" ".join(_PREAMBLE.sub("", message.text).split()), TOKENS)
    return ""


def as_said(message: MessageRow) -> Mapping[str, Any]:
    """A message as `orchestrator.answer.digests.summary` reads it; what nobody typed is no part of the talk."""
    role = "system" if message.payload.get("injected") else message.role
    return {"role": role, "text": message.text[:_LONGEST], "tool": message.payload.get("tool")}
