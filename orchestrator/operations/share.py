"""share: share a conversation with others, or stop sharing it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from orchestrator.requests.field_types import ChannelName, EndInstant
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import GeneralState, Operation, Run, Steps
from registry.access import Level
from registry.domain import format_time, now
from registry.errors import InvalidRequest
from registry.storage.conversations.belonging import set_sharing
from registry.storage.conversations.channels import ChannelRow, find_channel, get_channel, item_of
from registry.storage.conversations.references import resolve_edited
from registry.storage.database import WriteTransaction
from registry.storage.exchange.edits import SHARED, SharingEdit, record_edits

NOBODY = "nobody"


class ShareQuery(QueryShape):
    """The group that may read a conversation; `nobody` stops sharing."""

    with_: Literal["project", "team", "nobody"] = Field(alias="with")
    until: EndInstant | None = None

    @model_validator(mode="after")
    def _until_with_somebody(self) -> Self:
        if self.until and self.with_ == NOBODY:
            raise ValueError("until with project or team")
        return self


class ShareRequest(Request):
    operation = "share"
    channel: ChannelName
    query: ShareQuery


def share(tx: WriteTransaction, run: Run, request: ShareRequest, _state: GeneralState) -> dict[str, Any]:
    """Share a channel of the caller. An edit from another registry is ignored if a later one is known."""
    row, query = resolve_edited(tx, request.channel, request.timestamp), request.query
    run.recorder.set_channel(row.name)
    if query.until and not request.timestamp and query.until <= now():
        given = format_time(query.until)
        raise InvalidRequest(
            "That time is in the past.", f"query.until: given {given}; allowed: a time in the future, or none"
        )
    if query.with_ == "project" and row.project_path is None:
        raise InvalidRequest("The conversation belongs to no project.", "query.with: allowed: team, nobody")
    _share(tx, row, query, request.timestamp)
    row = get_channel(tx, row.name, with_deleted=True)
    return {"channel": item_of(tx, row)}


def _share(tx: WriteTransaction, row: ChannelRow, query: ShareQuery, done_at: datetime | None) -> None:
    edit = query.model_dump(mode="json", by_alias=True, exclude_none=True)
    if record_edits(tx, row.number, {SHARED: edit}, done_at):
        set_sharing(tx, row.number, None if query.with_ == NOBODY else query.with_, query.until)


def restrict_again(tx: WriteTransaction, edits: Iterable[SharingEdit]) -> None:
    """Apply later edits of sharing to what a restored backup shares. What it does not share stays private."""
    for edit in edits:
        row = find_channel(tx, edit.name)
        if row and row.shared_with:
            _share(tx, row, ShareQuery.model_validate(edit.value), edit.done_at)


OPERATION = Operation(
    request=ShareRequest,
    level=Level.WRITE,
    steps=Steps[ShareRequest, None](write=share),
    labels={"with": ("shared with", "공유 대상")},
)
