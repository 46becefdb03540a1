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
    total: int = Field(description="how many there are on all pages")
    next_cursor: str | None = Field(description="pass it as `cursor` to go on; null: this was the last page")


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
    time: str | None = Field(None, description='"inferred" where its client stored no times')
    last_accessed: str | None = Field(None, description="when it was last given to somebody who asked for it")
    owner: str | None = Field(None, description="the person whose token first wrote it; left out without one")
    shared_with: str | None = Field(None, description="project or team; left out where its owner alone sees it")
    shared_until: str | None = None
    first_message_preview: str | None
    summary: str | None


class Passage(BaseModel):
    """A passage of a message that matches a search; the words found stand between `**`."""

    id: str = Field(description="the message")
    snippet: str
    role: str | None = None
    sequence: int | None = None
    timestamp: str | None = None


class FoundChannel(ChannelItem):
    """A channel in a list; of a search with what was found in it."""

    deleted: bool | None = None
    match_count: int | None = Field(None, description="messages that match")
    passages: list[Passage] = Field([], description="the best matches, of a search")


class ShownChannel(ChannelItem):
    """A channel with its other names and the channels that may be the same conversation."""

    also_known_as: list[str] = Field([], description="names under which it was logged and goes on being found")
    maybe_same_as: list[str] = Field([], description="channels that may be the same conversation")


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
    """A message that answers a search, best first."""

    score: float | None = Field(
        description="what it holds of the words, as a share of the best, and what its neighbours add; null for a time"
        " or a place alone, which are listed by time"
    )
    words: list[str] = Field(description="the words of the query that it contains")


class MessageItem(SpokenMessage):
    """A stored message."""

    actor: str
    deleted: bool
    payload: dict[str, JsonValue]
    record_type: str
    received_at: str


class ChangesPage(BaseModel):
    """Messages as they came, one page."""

    items: list[MessageItem]
    place: int = Field(description="pass it as `after` to go on")
    is_all: bool = Field(description="nothing newer is there yet")
    starts_over: bool = Field(
        description="`after` is no place of this registry, as after the restore of a backup: this is the first page"
    )
    registry: str = Field(description="the registry's id, the same at every address")
    owner: str | None = Field(description="the person whose token asks")


class EditItem(QueryShape):
    """An edit of a channel or a message, with its time."""

    field: str = Field(
        pattern="^(title|nickname|tag:.{1,64}|pinned|shared|deleted|forgotten|text)$",
        description="`title`, `nickname`, `tag:NAME`, `pinned`, `shared`, `deleted`, `forgotten`, or `text`: a"
        " message has more words by now",
        examples=["nickname"],
    )
    value: JsonValue = Field(
        description="the name; whether it has the tag, is pinned or deleted; the group and the end of sharing;"
        " forgotten ids; the message's id and digest"
    )
    done_at: Timestamp = Field(description="by the clock where it was done", examples=[TIME])
    names: list[str] = Field([], description="what the channel is called there", max_length=1000)
    source: str = ""
    session_id: str | None = None
    message_id: str | None = Field(None, description="of a message, its id in the registry that is asked")
    of_other_person: bool = Field(False, description="of a channel that is another person's than the token's")

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        kinds = {"title": str | None, "nickname": str | None, **dict.fromkeys(("shared", "forgotten", "text"), dict)}
        if not isinstance(self.value, kinds.get(self.field, bool)):
            raise ValueError(f"a value that {self.field} may have")
        if self.field == "forgotten":
            Forgotten.model_validate(self.value)
        return self


class Forgotten(QueryShape):
    """Which messages are forgotten, or a whole channel by some of its messages."""

    is_channel: bool
    ids: list[str]


class EditsPage(BaseModel):
    """A page of edits."""

    items: list[EditItem]
    place: int = Field(description="pass it as `after` to go on")
    is_all: bool = Field(description="nothing newer is there yet")


class EditsBody(QueryShape):
    """Edits that were made in another registry."""

    items: list[EditItem] = Field(max_length=200)


class EditDone(BaseModel):
    """The outcome of one edit."""

    why: str | None = Field(description="why it is not done here")


class EditsDone(BaseModel):
    """The outcomes, in the order of the edits."""

    items: list[EditDone]


class Logged(BaseModel):
    """The result of a call that stored messages, as of conversation_log."""

    not_kept: str | None = Field(None, description="why nothing of it is kept; then there are no ids")
    stored_ids: list[str] = Field(description="one per message sent, in order")
    channel: str
    message_count: int
    timestamp: str
    new_count: int
    duplicate_count: int


class ResultItem(BaseModel):
    """A kept result: what was delivered to whom, as ids."""

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
