"""delete: hide a message or a channel, or erase it permanently."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from orchestrator.requests.field_types import ChannelName, Instant
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import GeneralState, Operation, Run, Steps
from orchestrator.tool import PROJECT, WHEN, Caller, Effect, Outcome, Question, Tool, ToolArguments, select_fields
from registry.access import Level
from registry.errors import InvalidRequest
from registry.storage.conversations.channels import get_channel, item_of
from registry.storage.conversations.messages import (
    delete_channel,
    delete_message,
    get_message,
    message_item,
    set_deleted_with_channel,
)
from registry.storage.database import WriteTransaction
from registry.storage.exchange.edits import (
    DELETED,
    is_deleted_with_channel,
    record_deletions_of_later,
    record_edits,
)
from registry.storage.safety.derived import resume_files, spellings
from registry.storage.safety.forgetting import (
    Affected,
    ForgetSelection,
    affected_by,
    dry_receipt,
    forget,
    forgotten_messages_of,
    wipe,
)
from registry.storage.safety.visibility import access_of, see_everything


class DeleteQuery(QueryShape):
    """A message by its id, else the channel of the request.

    With `soft` false also several messages (`ids`), one person's conversations, a project, older messages, messages
    with some words: all conditions must hold.
    """

    id: str | None = None
    ids: list[str] = Field([], description="several messages, forgotten together")
    soft: bool = True
    owner: str | None = Field(None, min_length=1, description="only conversations of this person")
    project: str | None = Field(None, min_length=1)
    before: Instant | None = None
    matching: str | None = Field(None, min_length=1, max_length=4000)
    trash: bool = Field(False, description="only deleted channels")
    dry_run: bool = Field(False, description="only say what would be forgotten")

    @model_validator(mode="after")
    def _for_good(self) -> Self:
        if self.soft and self.model_fields_set & {"ids", "owner", "project", "before", "matching", "trash", "dry_run"}:
            raise ValueError("ids, owner, project, before, matching, trash and dry_run with soft = false")
        if self.owner and self.matching:  # words are also erased from titles and records of other people
            raise ValueError("either owner or matching")
        return self


class DeleteRequest(Request):
    operation = "delete"
    takes_long = True
    query: DeleteQuery

    @property
    def is_permanent(self) -> bool:
        return not self.query.soft

    @property
    def limited_to_owner(self) -> str | None:
        return self.query.owner

    def summary(self) -> dict[str, Any]:
        if not self.is_permanent:
            return super().summary()
        # a full record would name the erased data
        conditions = sorted(self.query.model_dump(exclude_defaults=True, exclude={"soft", "dry_run"}))
        by = {"by": conditions} if conditions else {}
        return {"soft": False, **by, "dry_run": self.query.dry_run}


def delete(tx: WriteTransaction, run: Run, request: DeleteRequest, _state: GeneralState) -> dict[str, Any]:
    if not request.query.soft:
        return _forget(tx, run, request)
    run.recorder.explain(id=request.query.id, channel=request.channel, soft=request.query.soft)
    if request.query.id:
        message = get_message(tx, request.query.id, include_deleted=True)
        is_newer = record_edits(tx, message.channel_number, {DELETED: True}, request.timestamp, message.number)
        run.recorder.set_channel(message.channel)
        deleted = delete_message(tx, message.id) if is_newer else message_item(message)
        if request.timestamp and is_newer and is_deleted_with_channel(tx, message.channel_number, request.timestamp):
            set_deleted_with_channel(tx, message)
        return {"message": deleted}
    if request.channel is None:
        raise InvalidRequest("Nothing to delete was named.", "query.id: missing; allowed: an id, or a channel")
    row = get_channel(tx, request.channel)
    item = item_of(tx, row)
    if record_edits(tx, row.number, {DELETED: True}, request.timestamp):
        if request.timestamp is None:
            record_deletions_of_later(tx, row.number)
        delete_channel(tx, row, soft=True, until=request.timestamp)
    return {"channel": {**item, "deleted": True}}


def _forget(tx: WriteTransaction, run: Run, request: DeleteRequest) -> dict[str, Any]:
    """Erase permanently; only the receipt is recorded."""
    query = request.query
    run.recorder.channel = None
    wanted = ForgetSelection(
        (query.id,) if query.id else tuple(query.ids),
        request.channel,
        query.project,
        query.before,
        query.matching,
        query.trash,
        owner=query.owner,
    )
    if wanted == ForgetSelection():
        raise InvalidRequest(
            "Nothing to forget was named.", "allowed: query.id, query.ids, channel, owner, project, before, matching"
        )
    found = affected_by(tx, wanted)
    access = access_of(tx)
    is_exact = access is not None and access.level is not Level.ADMIN
    see_everything(tx)
    shown = _describe_target(tx, found, wanted)
    files = files_of(tx, run, found, query.matching)
    receipt = dry_receipt(found) if query.dry_run else forget(tx, found, query.matching, is_exact=is_exact)
    for file in [] if query.dry_run else files:
        file.unlink(missing_ok=True)
    return {**shown, **with_receipt(run, {**asdict(receipt), "files": len(files)})}


def with_receipt(run: Run, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Record the receipt, and return it with the backups that may contain the erased data."""
    run.recorder.explain(receipt=figures)
    backups = sorted(path.name for path in run.local_files.folder.glob("*.zip")) if run.local_files else []
    return {"receipt": {**figures, "backups": backups}}


def files_of(tx: WriteTransaction, run: Run, found: Affected, matching: str | None) -> list[Path]:
    """Return the session drafts of the erased conversations, and those that contain the words."""
    if run.local_files is None or not run.local_files.drafts.is_dir():
        return []
    written, words = set(resume_files(tx, forgotten_messages_of(tx, found))), spellings(matching)

    def contains_words(file: Path) -> bool:
        text = file.read_text(encoding="utf-8", errors="replace").lower()
        return any(one in text for one in words)

    return [file for file in run.local_files.drafts.iterdir() if str(file) in written or contains_words(file)]


def _describe_target(tx: WriteTransaction, found: Affected, wanted: ForgetSelection) -> dict[str, Any]:
    if len(wanted.ids) == 1:
        return {"message": {**message_item(found.messages[0]), "deleted": True}}
    if wanted == ForgetSelection(channel=wanted.channel):
        row = next(iter(found.channels), None) or get_channel(tx, found.messages[0].channel, with_deleted=True)
        return {"channel": {**item_of(tx, row), "deleted": True}}
    return {}


async def _wipe_after(run: Run, request: DeleteRequest) -> None:
    if not (request.query.soft or request.query.dry_run):
        await wipe(run.registry)


class ForgetArguments(ToolArguments):
    message_id: Annotated[str | None, Field(min_length=1, description="conv_…, snap_…")] = None
    channel: ChannelName | None = None
    project: Annotated[str | None, Field(min_length=1, description=PROJECT)] = None
    before: Annotated[Instant | None, Field(description=WHEN)] = None
    matching: Annotated[str | None, Field(min_length=1, max_length=4000, description="exactly these words")] = None
    dry_run: Annotated[bool, Field(description="only say what would be forgotten")] = True

    def request(self, caller: Caller) -> DeleteRequest:
        narrowed = self.model_dump(include={"project", "before", "matching", "dry_run"})
        query = DeleteQuery(id=self.message_id, soft=False, **narrowed)
        return DeleteRequest(channel=self.channel, query=query, source=caller.source)

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        return select_fields(outcome, "receipt")

    def rehearsal(self) -> Self:
        return self.model_copy(update={"dry_run": True})

    def question(self, result: Mapping[str, Any]) -> Question | None:
        if self.dry_run:
            return None
        receipt = result["receipt"]
        return Question(
            f"Forget this for good? Messages: {receipt['messages']}, whole conversations: {receipt['channels']}",
            {"Forget it": {}, "Keep it": None},
            "The user was asked and did not agree: nothing was forgotten.",
        )


FORGET_TOOL = Tool(
    name="forget",
    title="Forget for good",
    description="Erase a message, a whole conversation, a project's conversations, what is older than a time or what "
    "holds some words: it cannot be restored and does not come back. All that is named must hold. Only when the user "
    "asks for exactly that; call it with dry_run first and tell the user how much it would be.",
    effect=Effect.REPLACES,
    arguments=ForgetArguments,
    returns=["receipt"],
    example={"channel": "<channel>", "dry_run": True},
    toolset="admin",
)
OPERATION = Operation(
    request=DeleteRequest,
    level=Level.WRITE,
    own_level=Level.WRITE,
    names_channel=True,
    steps=Steps[DeleteRequest, None](write=delete, afterwards=_wipe_after),
    tools=[FORGET_TOOL],
    labels={
        "ids": ("messages", "메시지"),
        "matching": ("with exactly these words", "정확히 이 말"),
        "soft": ("can be restored", "복원 가능"),
        "trash": ("only in the trash", "휴지통에 있는 것만"),
    },
)
