"""The daily briefing: what was said in a day, made short, sent outside and kept."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

from orchestrator.delivery import FirstSentences, MessageDict, message_dict
from orchestrator.requests import BriefingRequest
from orchestrator.state import Run, State, Steps
from registry.domain import new_id, now
from registry.errors import NotFound
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.extract_results import save_result
from registry.storage.messages import messages_between

MOST_OF_CHANNEL = 1000
"""Of a channel that says more in a day, the last so many messages."""

_summarizer = FirstSentences()


def the_day(tx: ReadTransaction, run: Run, request: BriefingRequest) -> list[MessageDict]:
    """The messages of the day's conversations, channel by channel."""
    start = datetime.combine(request.query.date, time(), UTC)
    rows = messages_between(tx, start, start + timedelta(days=1, milliseconds=-1), MOST_OF_CHANNEL)
    channels = len({row.channel_number for row in rows})
    run.recorder.explain(channels=channels, messages=len(rows), day=str(request.query.date))
    if not rows:
        raise NotFound("No conversations on that day", f"date: given {request.query.date}")
    return [message_dict(row) for row in rows]


def in_short(run: Run, _request: BriefingRequest, state: State) -> State:
    """The day as a text."""
    text = _summarizer.summarize(state["data"])
    run.recorder.explain(by=_summarizer.name, messages=len(state["data"]), characters=len(text))
    return {"transformed_data": text}


def keep_briefing(tx: WriteTransaction, run: Run, request: BriefingRequest, state: State) -> dict[str, Any]:
    """Keep a briefing: the ids it was made of, and its text."""
    result_id = new_id("brief")
    text = state["transformed_data"]
    save_result(
        tx,
        result_id,
        record_type="briefing",
        channel=f"briefing_{request.query.date}",
        result_type="summary",
        items=[message["id"] for message in state["data"]],
        metadata={"execution_id": run.recorder.id, "date": str(request.query.date), "text": text},
        timestamp=now(),
    )
    run.recorder.explain(briefing=result_id)
    return {"briefing": {"id": result_id, "date": str(request.query.date), "text": text}}


BRIEFING = Steps[BriefingRequest, list[MessageDict]](
    query=the_day, shorten=in_short, write=keep_briefing, is_published=True
)
