"""Summarise sessions: by the client's own summary if it wrote one, else by one that is made here and stored."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.answer.delivery import truncate
from orchestrator.answer.digests.summary import WRITER, summary_of
from orchestrator.state import Run
from registry.storage.conversations.channels import (
    CLIENT,
    ChannelRow,
    MadeSummary,
    channels_by_number,
    content_state,
    numbers_of,
)
from registry.storage.conversations.messages import MessageRow, first_and_last
from registry.storage.database import ReadTransaction

MAX_TOKENS = 200  # tokens of a session's summary
BEGINNING, END = 20, 100  # first and last messages that are read of a longer session
MAX_MADE = 50  # summaries made for one answer; the others are made for later answers
_MAX_MESSAGE = 4000
_PREAMBLE = re.compile(r"\A.*?(?:Primary Request and Intent:|<summary>|Summary:)", re.DOTALL)
_MIN_COMPACTION = 80  # characters; a shorter compaction message has no summary


def add_summaries(tx: ReadTransaction, run: Run, sessions: Sequence[dict[str, Any]]) -> None:
    """Add missing summaries, and record them with this run."""
    lacking = [one for one in sessions if not one["summary"] and one["message_count"]][:MAX_MADE]
    if not lacking:
        return
    names = [one["channel"] for one in lacking]
    rows = {row.name: row for row in channels_by_number(tx, list(numbers_of(tx, names).values())).values()}
    messages = first_and_last(tx, [row.number for row in rows.values()], BEGINNING, END)
    for one in lacking:
        row = rows.get(one["channel"])
        if row and (made := make_summary(row, messages[row.number])).text:
            one |= {"summary": made.text, "summary_by": made.by}
            run.recorder.summaries.append(made)


def make_summary(row: ChannelRow, messages: Sequence[MessageRow]) -> MadeSummary:
    """Return a channel's summary: that of its client's compaction, else its significant sentences."""
    noted = _client_summary(messages)
    text, by = (
        (noted, CLIENT) if noted else (summary_of([as_summary_input(one) for one in messages], MAX_TOKENS), WRITER)
    )
    return MadeSummary(row.number, text, by, content_state(row))


def _client_summary(messages: Sequence[MessageRow]) -> str:
    """Return the client's own summary, if its last compaction is near the end."""
    for index, message in reversed(list(enumerate(messages))):
        if "compaction" in message.payload and len(message.text) > _MIN_COMPACTION and index > len(messages) * 2 / 3:
            return truncate(" ".join(_PREAMBLE.sub("", message.text).split()), MAX_TOKENS)
    return ""


def as_summary_input(message: MessageRow) -> Mapping[str, Any]:
    """Convert a message for `orchestrator.answer.digests.summary`; injected and undone ones do not count."""
    if {"injected", "superseded"} & message.payload.keys():
        return {"role": "system", "text": "", "tool": None}
    return {"role": message.role, "text": message.text[:_MAX_MESSAGE], "tool": message.payload.get("tool")}
