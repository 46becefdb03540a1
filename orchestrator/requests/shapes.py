"""Define the requests that `orchestrator.answer` reads; the others are in the operations' files."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from orchestrator.requests.field_types import (
    Also,
    ChannelName,
    EndInstant,
    GivenMode,
    GivenRole,
    Instant,
    Limit,
    Offset,
    Order,
    RoleName,
    Roles,
    SourceName,
    Timestamp,
    UtcOffset,
)
from orchestrator.requests.messages import as_message
from registry.domain import MAX_DEPTH, is_too_deep


class QueryShape(BaseModel):
    """A shape that refuses fields it does not have."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not empty; leave out empty messages")
    return text


class MessageIn(BaseModel):
    """Further fields are kept with a message."""

    model_config = ConfigDict(extra="allow")

    role: GivenRole
    text: Annotated[str, AfterValidator(_not_blank)]
    timestamp: Timestamp | None = Field(
        None, description="ISO 8601 with offset; missing: the call's timestamp, else now"
    )
    context: dict[str, Any] | None = Field(None, description="e.g. file, line, language")

    @model_validator(mode="before")
    @classmethod
    def _as_models_write(cls, given: Any) -> Any:
        return as_message(given) if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _check_depth(self) -> Self:
        if is_too_deep(self.context) or is_too_deep(self.model_extra):
            raise ValueError(f"lists and objects nested at most {MAX_DEPTH} deep")
        return self


class Meta(BaseModel):
    """About the conversation; anything else is kept too."""

    model_config = ConfigDict(extra="allow")

    source: str | None = Field(None, max_length=64, description="cursor, claude, chatgpt, gemini, …")
    project: str | None = Field(None, description="workspace folder")
    file: str | None = None
    language: str | None = None
    model: str | None = None
    title: str | None = None
    additional_context: dict[str, Any] | None = None


class Request(BaseModel):
    """The fields of every request."""

    model_config = ConfigDict(extra="forbid")
    operation: ClassVar[str]
    takes_long: ClassVar[bool] = False  # the operation has no time limit
    is_awaited: ClassVar[bool] = True  # a caller waits for the answer
    is_optional: ClassVar[bool] = False  # no failure if the caller stops waiting for it

    channel: ChannelName | None = None
    source: SourceName = "unknown"
    timestamp: Timestamp | None = Field(None, description="when it was asked")
    metadata: Meta = Field(Meta(), validation_alias=AliasChoices("metadata", "meta"))

    @property
    def is_about_current_chat(self) -> bool:
        """Return True if the messages written just now are stored first."""
        return False

    @property
    def is_shortened(self) -> bool:
        """Return True if a summary or digest is requested."""
        return False

    @property
    def is_permanent(self) -> bool:
        """Return True if it deletes permanently."""
        return False

    @property
    def limited_to_owner(self) -> str | None:
        """Return the person whose chats it is limited to; None: not limited."""
        return None

    @property
    def write_target(self) -> str | None:
        """Return the key of its target; requests with the same key are stored one after the other."""
        return self.channel

    def summary(self) -> dict[str, Any]:
        """Summarise the request for its record: counts and ids, never texts of messages."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"metadata", "source"})


class ExtractQuery(QueryShape):
    """The part that is wanted. A plain string is its `text`."""

    text: str | None = Field(None, max_length=4000, description="what it was about, in the user's own words")
    also: Also = []
    limit: Limit = Field(20, description="messages at most")
    cursor: str | None = Field(None, description="next_cursor of the last answer")
    mode: GivenMode = "raw"
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None
    roles: Roles = Field(["user", "assistant"], min_length=1)
    max_tokens: int | None = Field(None, ge=1, description="of the whole answer")
    utc_offset_minutes: SkipJsonSchema[UtcOffset | None] = None

    @model_validator(mode="before")
    @classmethod
    def _text_alone(cls, given: object) -> object:
        return {"text": given} if isinstance(given, str) else given


class NarrowedQuery(QueryShape):
    """The client, project and tag to search in."""

    source: str | None = None
    project: str | None = Field(None, description="path or folder name")
    tag: str | None = None


class WordsQuery(NarrowedQuery):
    """The words to search for, and filters on the messages."""

    text: Annotated[str, Field(min_length=1, max_length=4000)]
    roles: list[RoleName] | None = Field(None, min_length=1)
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None


class SearchQuery(WordsQuery):
    """Messages in the whole registry."""

    limit: Limit = 20
    cursor: str | None = None
    order: Order | None = Field(None, description="by time instead of best first; then all matches")


class ListQuery(NarrowedQuery):
    """Sessions by last activity."""

    limit: Limit = 20
    offset: Offset = 0
    tagged_only: bool = False
    since: Instant | None = None
    until: EndInstant | None = None
    is_sized: bool = Field(False, description="only as many sessions as the client accepts")
    as_lines: bool = Field(False, description="one line for each session")


MAX_MATCHES = 3  # matches shown of a session


class SessionsQuery(WordsQuery):
    """Sessions by words in their messages."""

    also: Also = []
    limit: Limit = 10
    offset: Offset = 0
    context_window: int = Field(2, ge=0, le=50, description="messages before and after each match")
    matches: SkipJsonSchema[int] = Field(MAX_MATCHES, ge=1, le=MAX_MATCHES)
    exclude_session: str | None = Field(None, description="session left out, such as the current one")
    order: Order | None = Field(None, description="by last activity instead of best first")
    max_tokens: int | None = Field(None, ge=1, description="limit of all passages together; null: no limit")
    utc_offset_minutes: UtcOffset | None = None


MAX_READ_TOKENS, MAX_READ_MESSAGES = 30_000, 400
"""Limits of the messages read for a summary or a digest, unless the request has its own limit."""


class ExtractRequest(Request):
    operation = "extract"
    query: ExtractQuery = ExtractQuery()
    project: str | None = Field(None, description="only conversations of this path or folder name")
    folder: str | None = Field(
        None, description="the caller's folder; its conversations come first among close matches"
    )

    @property
    def is_shortened(self) -> bool:
        """Return True unless the messages themselves are wanted."""
        return self.query.mode != "raw"

    def for_selection(self) -> Self:
        """Return the request for selecting messages: a summary is written from more messages than its own size."""
        if not self.is_shortened:
            return self
        wanted: dict[str, Any] = {"max_tokens": MAX_READ_TOKENS}
        if "limit" not in self.query.model_fields_set:
            wanted["limit"] = MAX_READ_MESSAGES
        return self.model_copy(update={"query": self.query.model_copy(update=wanted)})


class SearchRequest(Request):
    operation = "search"
    query: SearchQuery


class ListRequest(Request):
    operation = "list"
    query: ListQuery = ListQuery()


class SessionsRequest(Request):
    operation = "search_sessions"
    query: SessionsQuery
