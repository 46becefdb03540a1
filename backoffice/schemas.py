"""Response models of the API."""

from typing import Generic, Literal, Self, TypeVar

from pydantic import BaseModel, Field, JsonValue, model_validator

from orchestrator.requests.field_types import Timestamp
from orchestrator.requests.shapes import QueryShape

TIME = "2025-09-29T14:30:15.123Z"
MESSAGE_ID = "conv_01k6a7m3f9h2x4q8r0s6t1v5w7"
EXECUTION_ID = "exec_01k6a7m3f9h2x4q8r0s6t1v5w8"
CHANNEL = "cursor_session_1759156215"


class Problem(BaseModel):
    """The error of a failed request."""

    code: Literal["INVALID_REQUEST", "UNAUTHORIZED", "NOT_FOUND", "STORAGE_ERROR", "TIMEOUT", "INTERNAL_ERROR"]
    message: str
    details: str = Field(description="what was given, what is allowed, what to do")


class Failure(BaseModel):
    """The envelope of every failed request."""

    ok: Literal[False]
    error: Problem


Item = TypeVar("Item", bound=BaseModel)


class ItemPage(BaseModel, Generic[Item]):
    """A page of a list."""

    items: list[Item]
    total: int = Field(description="number of items on all pages")
    next_cursor: str | None = Field(description="pass it as `cursor` for the next page; null: last page")


class ChannelItem(BaseModel):
    """A channel: one conversation's identity."""

    session_id: str
    channel: str
    source: str
    title: str | None
    nickname: str | None
    tags: list[str]
    project_path: str | None
    project_name: str
    message_count: int
    created_at: str
    updated_at: str
    time: str | None = Field(None, description='"inferred" if its client stored no times')
    last_accessed: str | None = Field(None, description="when it was last delivered to a caller")
    owner: str | None = Field(None, description="the person whose token created it; omitted if none")
    shared_with: str | None = Field(None, description="project or team; omitted if only its owner sees it")
    shared_until: str | None = None
    first_message_preview: str | None
    summary: str | None


class Passage(BaseModel):
    """A passage of a message that matches a search; the matched words are between `**`."""

    id: str = Field(description="the message")
    snippet: str
    role: str | None = None
    sequence: int | None = None
    timestamp: str | None = None
    superseded: bool | None = Field(None, description="true if it was undone or replaced in its client")


class FoundChannel(ChannelItem):
    """A channel in a list; in a search also its best matches."""

    deleted: bool | None = None
    match_count: int | None = Field(None, description="messages that match")
    passages: list[Passage] = Field([], description="the best matches, of a search")


class ShownChannel(ChannelItem):
    """A channel with its other names and the channels that may be the same conversation."""

    also_known_as: list[str] = Field([], description="other names by which it is found")
    maybe_same_as: list[str] = Field([], description="channels that may be the same conversation")
    repository_id: str = Field("", description="the same for all clones of the project's repository, on any machine")


class DeletedChannel(ChannelItem):
    """A channel as it was when it was deleted."""

    deleted: bool


class SpokenMessage(BaseModel):
    """The fields that every message has in an answer."""

    id: str
    channel: str
    source: str
    role: str
    text: str
    timestamp: str
    context: dict[str, JsonValue] | None = None


class FoundMessage(SpokenMessage):
    """A message found by a search."""

    score: float | None = Field(
        description="score of its words as a share of the best, plus that of its neighbours; null if the query has only"
        " a time or a place: then messages are listed by time"
    )
    words: list[str] = Field(description="the words of the query that it contains")
    superseded: bool | None = Field(None, description="true if it was undone or replaced in its client")


class MessageItem(SpokenMessage):
    """A stored message."""

    actor: str
    deleted: bool
    payload: dict[str, JsonValue]
    record_type: str
    received_at: str


class ChangesPage(BaseModel):
    """A page of messages in the order of arrival."""

    items: list[MessageItem]
    place: int = Field(description="pass it as `after` for the next page")
    is_all: bool = Field(description="there is nothing newer yet")
    starts_over: bool = Field(
        description="`after` is not a position of this registry, for example after a restore: this is the first page"
    )
    registry: str = Field(description="the registry's id, the same at every address")
    owner: str | None = Field(description="the person of the caller's token")


class EditItem(QueryShape):
    """An edit of a channel or a message, with its time."""

    field: str = Field(
        pattern="^(title|nickname|tag:.{1,64}|pinned|shared|deleted|superseded|forgotten|text)$",
        description="`title`, `nickname`, `tag:NAME`, `pinned`, `shared`, `deleted`, `superseded`: a message was undone"
        " or replaced in its client, `forgotten`, or `text`: a message has grown",
        examples=["nickname"],
    )
    value: JsonValue = Field(
        description="the name; whether it has the tag, is pinned, deleted or superseded; the group and the end of"
        " sharing; forgotten ids; the message's id and digest"
    )
    done_at: Timestamp = Field(description="by the clock of the machine that made the edit", examples=[TIME])
    names: list[str] = Field([], description="names of the channel there", max_length=1000)
    source: str = ""
    session_id: str | None = None
    message_id: str | None = Field(None, description="for a message: its id in this registry")
    of_other_person: bool = Field(False, description="the channel belongs to another person than the token")

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        kinds = {"title": str | None, "nickname": str | None, **dict.fromkeys(("shared", "forgotten", "text"), dict)}
        if not isinstance(self.value, kinds.get(self.field, bool)):
            raise ValueError(f"a value that {self.field} may have")
        if self.field == "forgotten":
            Forgotten.model_validate(self.value)
        return self


class Forgotten(QueryShape):
    """The forgotten messages, or a forgotten channel, identified by some of its messages."""

    is_channel: bool
    ids: list[str]


class EditsPage(BaseModel):
    """A page of edits."""

    items: list[EditItem]
    place: int = Field(description="pass it as `after` for the next page")
    is_all: bool = Field(description="there is nothing newer yet")


class EditsBody(QueryShape):
    """Edits that were made in another registry."""

    items: list[EditItem] = Field(max_length=200)


class EditDone(BaseModel):
    """The outcome of one edit."""

    why: str | None = Field(description="why it was not applied here")


class EditsDone(BaseModel):
    """The outcomes, in the order of the edits."""

    items: list[EditDone]


class Logged(BaseModel):
    """The result of a call that stored messages, as of conversation_log."""

    not_kept: str | None = Field(None, description="why nothing was stored; then there are no ids")
    stored_ids: list[str] = Field(description="one per message sent, in order")
    channel: str
    message_count: int
    timestamp: str
    new_count: int
    duplicate_count: int


class ResultItem(BaseModel):
    """A stored result: the ids that were delivered to a caller."""

    id: str
    record_type: str
    channel: str
    result_type: str
    items: list[str]
    metadata: dict[str, JsonValue] | None
    timestamp: str
    deleted: bool


class State(BaseModel):
    """The state of the server."""

    status: Literal["ok", "ready"]
