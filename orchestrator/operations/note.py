"""The note of a new chat."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.answer.delivery import message_dict
from orchestrator.answer.digests.start_note import LOOKED_AT, READ, STANDING, Standing, told, without_the_new_one
from orchestrator.answer.standing import where_it_stands
from orchestrator.operation import Operation
from orchestrator.requests.shapes import Request
from orchestrator.state import Run, Steps
from registry.access import Level
from registry.storage.conversations.channels import ChannelFilter, numbers_of, some_channels
from registry.storage.conversations.messages import messages_of
from registry.storage.conversations.remembered import remembered
from registry.storage.database import ReadTransaction


class NoteQuery(BaseModel):
    """The folder of a new chat, and its id."""

    model_config = ConfigDict(extra="forbid")

    folder: str = Field(min_length=1, description="the folder it works in")
    session_id: str | None = Field(None, description="the chat itself: of it only this id is told")


class NoteRequest(Request):
    operation = "note"
    query: NoteQuery


def latest_conversations(tx: ReadTransaction, run: Run, request: NoteRequest) -> tuple[list[Standing], list[str]]:
    """Return the last few of a folder, without the one that begins, and the sentences to remember in it."""
    latest, total = latest_of(tx, request.query.folder, request.query.session_id)
    run.recorder.explain(by="the folder's last activity", candidates=total)
    return latest, [one["text"] for one in remembered(tx, request.query.folder)]


def latest_of(tx: ReadTransaction, folder: str, session_id: str | None) -> tuple[list[Standing], int]:
    """The last few of a folder without the one that begins, the latest first; and how many the folder has."""
    some, total = some_channels(tx, ChannelFilter(project=folder), limit=READ, offset=0)
    others = without_the_new_one(some, session_id)
    numbers = numbers_of(tx, [each["channel"] for each in others[:STANDING]])
    standing = [Standing(each, _stands_at(tx, numbers[each["channel"]])) for each in others[:STANDING]]
    return standing + [Standing(each, {}) for each in others[STANDING:]], total


def _stands_at(tx: ReadTransaction, number: int) -> dict[str, Any]:
    return where_it_stands([message_dict(row) for row in messages_of(tx, number, limit=LOOKED_AT)])


async def make_note(run: Run, request: NoteRequest, data: tuple[list[Standing], list[str]]) -> dict[str, Any]:
    """The note within its tokens; "" where there is nothing to tell of."""
    run.recorder.explain(kept=len(data[0]), dropped=0, reason="max_tokens")
    return told(*data, request.query.session_id)


OPERATION = Operation(
    request=NoteRequest,
    level=Level.READ,
    syncs_first=True,
    steps=Steps[NoteRequest, tuple[list[Standing], list[str]]](query=latest_conversations, keep=make_note),
)
