"""Write session summaries by the configured model, in the background of a server, for the latest idle sessions.

Nothing waits for them: the extractive summary is shown until one is ready. A session that grows gets a new one.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

from orchestrator.answer.delivery import message_dict
from orchestrator.answer.digests.summaries import BEGINNING, END, TOKENS, as_said, make_summary
from orchestrator.answer.digests.summary import WRITER
from orchestrator.outside.writing import SUMMARY, ModelWriter, WriterUnavailable, transcript
from registry.domain import now
from registry.registry import Registry
from registry.storage.conversations.channels import (
    CLIENT,
    ChannelRow,
    MadeSummary,
    content_state,
    keep_summaries,
    made_summary,
    recent_channels,
)
from registry.storage.conversations.messages import MessageRow, both_ends
from registry.storage.database import ReadTransaction

logger = logging.getLogger(__name__)

AT_REST = timedelta(minutes=2)  # since the last message: a chat is not summarised after every turn
EVERY_S, PAUSE_S = 15.0, 300.0  # between two checks, and after the model did not answer


async def keep_summing_up(registry: Registry, writer: ModelWriter) -> None:
    """Write missing summaries until cancelled."""
    while True:
        wait_s = EVERY_S
        try:
            while await sum_up_one(registry, writer, now()):
                pass
        except WriterUnavailable as exc:
            wait_s = PAUSE_S
            logger.warning("Sessions are not summed up by %s for %.0f s: %s", writer.model.name, wait_s, exc)
        except Exception:  # the server goes on, whatever is wrong here
            wait_s = PAUSE_S
            logger.exception("Sessions are not summed up for %.0f s", wait_s)
        await asyncio.sleep(wait_s)


async def sum_up_one(registry: Registry, writer: ModelWriter, at: datetime) -> bool:
    """Write the summary of the latest session without one by the model; False if there is none.

    Raises WriterUnavailable.
    """
    found = await registry.read(lambda tx: _lacking(tx, writer.model.name, at))
    if found is None:
        return False
    row, messages = found
    spoken = [message_dict(one) for one in messages if as_said(one)["role"] in ("user", "assistant", "tool")]
    text = await writer.model.write(SUMMARY, transcript(spoken), TOKENS)
    made = MadeSummary(row.number, text, writer.model.name, content_state(row))
    await registry.write(lambda tx: keep_summaries(tx, [made]))
    return True


def _lacking(tx: ReadTransaction, by: str, at: datetime) -> tuple[ChannelRow, list[MessageRow]] | None:
    for row in recent_channels(tx, 50):
        is_known = row.summary or (row.made_summary_by in (by, CLIENT) and made_summary(row))
        if is_known or row.updated_at > at - AT_REST:
            continue
        messages = both_ends(tx, [row.number], BEGINNING, END)[row.number]
        made = make_summary(row, messages)
        if made.text and made.by == WRITER:  # its client has not noted one, and there is something to tell
            return row, messages
    return None
