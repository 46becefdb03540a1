"""What may be asked, as checked shapes: the one place where every door's arguments are validated, or refused in words.

Light to import: an MCP server shows these shapes before it opens a registry.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from registry.domain import DEEPEST, Session, is_too_deep, parse_time
from registry.errors import InvalidRequest
from sources.base import FoundSession


class Operation(StrEnum):
    """The operations by their full names."""

    CONVERSATION_LOG = "conversation_log"
    EXTRACT = "extract"
    SEARCH = "search"
    SEARCH_SESSIONS = "search_sessions"
    LIST = "list"
    FETCH = "fetch"
    TAG = "tag"
    DELETE = "delete"
    RESTORE = "restore"
    IMPORT = "import"
    DAILY_BRIEFING = "daily_briefing"


ALIASES = {"save": Operation.CONVERSATION_LOG, "retrieve": Operation.EXTRACT}
"""Shorter names, accepted wherever an operation is named."""

READING = frozenset({Operation.EXTRACT, Operation.SEARCH, Operation.SEARCH_SESSIONS, Operation.LIST, Operation.FETCH})
"""Operations that answer from what is there, so that it is worth looking first for what has come in."""


def full_name(operation: str) -> str:
    """The operation's full name for one of its aliases; any other word as it is."""
    return ALIASES.get(operation, operation)


def _time_in_words(given: object) -> object:
    if isinstance(given, datetime):
        return given
    try:
        return parse_time(str(given)) if isinstance(given, str) else _no_time()
    except ValueError:
        return _no_time()


def _no_time() -> object:
    raise ValueError("an ISO 8601 time such as 2025-09-29T14:30:15.123Z")


def _visible(given: str) -> str:
    if not given.strip() or any(unicodedata.category(letter) == "Cc" for letter in given):
        raise ValueError("must have visible characters, and no control characters")
    return given


def _end_of_day(given: object) -> object:
    """A day as the end of a span means all of it."""
    return f"{given}T23:59:59.999Z" if isinstance(given, str) and _DAY.fullmatch(given) else given


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


Instant = Annotated[
    datetime,
    BeforeValidator(_time_in_words, json_schema_input_type=str),
    AfterValidator(parse_time),
    Field(json_schema_extra={"format": "date-time"}),
]
EndInstant = Annotated[Instant, BeforeValidator(_end_of_day, json_schema_input_type=str)]
ChannelName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_visible)]
RoleName = Literal["user", "assistant", "system", "tool", "thinking", "error"]
Limit = Annotated[int, Field(ge=1, le=1000)]
Mode = Literal["raw", "summary", "digest"]
Order = Literal["asc", "desc"]
UtcOffset = Annotated[int, Field(ge=-14 * 60, le=14 * 60, description="whose days 'yesterday' means")]
Nickname = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Tag = Annotated[str, Field(min_length=1, max_length=64)]


class MessageIn(BaseModel):
    """One message as a client sends it; further fields are kept with it."""

    model_config = ConfigDict(extra="allow")

    role: RoleName
    text: str
    timestamp: Instant | None = Field(None, description="ISO 8601 with offset; missing = now")
    context: dict[str, Any] | None = Field(None, description="e.g. file, line, language")

    @model_validator(mode="after")
    def _followable(self) -> MessageIn:
        if is_too_deep(self.context) or is_too_deep(self.model_extra):
            raise ValueError(f"lists and objects nested at most {DEEPEST} deep")
        return self


class Meta(BaseModel):
    """What a client tells about the conversation; anything else is kept too."""

    model_config = ConfigDict(extra="allow")

    source: str | None = Field(None, max_length=64, description="cursor, claude, chatgpt, gemini, …")
    project: str | None = Field(None, description="workspace folder")
    file: str | None = None
    language: str | None = None
    model: str | None = None
    title: str | None = None
    additional_context: dict[str, Any] | None = None


class ExtractQuery(BaseModel):
    """Which part of a conversation is wanted."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    text: str | None = Field(None, max_length=4000, description="what it was about, in the user's own words")
    limit: Limit = Field(20, description="messages at most")
    cursor: str | None = Field(None, description="next_cursor of the last answer")
    mode: Mode = "raw"
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None
    roles: list[RoleName] | None = Field(None, min_length=1)
    max_tokens: int | None = Field(None, ge=1, description="the texts together stay within it")


class SearchQuery(BaseModel):
    """Which messages are wanted, in the whole registry."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    text: Annotated[str, Field(min_length=1, max_length=4000)]
    limit: Limit = 20
    cursor: str | None = None
    source: str | None = None
    project: str | None = None
    tag: str | None = None
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None
    roles: list[RoleName] | None = Field(None, min_length=1)
    order: Order | None = Field(None, description="by time instead of best first: all that has to do with the words")


class ListQuery(BaseModel):
    """Which sessions are wanted, by last activity; with `text`, those that speak of it or are called so."""

    model_config = ConfigDict(extra="forbid")

    text: str | None = Field(None, min_length=1, max_length=4000)
    limit: Limit = 20
    offset: int = Field(0, ge=0)
    project: str | None = None
    source: str | None = None
    tag: str | None = None
    tagged_only: bool = False
    since: Instant | None = None
    until: EndInstant | None = None
    cursor: str | None = Field(None, description="next_cursor of the last answer")
    order: Order = "desc"
    utc_offset_minutes: UtcOffset = 0


class FetchQuery(BaseModel):
    """Which part of one session is wanted: its end, or what stands before a sequence number."""

    model_config = ConfigDict(extra="forbid")

    session_id: str = Field(min_length=1, max_length=300)
    message_limit: Limit | None = None
    before: int | None = Field(None, ge=1)
    is_folded: bool = False


class SessionsQuery(BaseModel):
    """Which sessions are wanted, by what was said in them."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    text: Annotated[str, Field(min_length=1, max_length=4000)]
    limit: Limit = 10
    offset: int = Field(0, ge=0)
    source: str | None = None
    project: str | None = Field(None, description="path or folder name")
    tag: str | None = None
    roles: list[RoleName] | None = Field(None, min_length=1)
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None
    context_window: int = Field(5, ge=0, le=50, description="messages before and after each match")
    exclude_session: str | None = Field(None, description="session left out, such as the current one")
    utc_offset_minutes: UtcOffset = 0


class TagQuery(BaseModel):
    """What to call a channel from now on; what is not given stays."""

    model_config = ConfigDict(extra="forbid")

    title: str | None = Field(None, max_length=300)
    nickname: Nickname | None = None
    tags: list[Tag] | None = Field(None, description="all it shall have")
    add_tags: list[Tag] = []
    remove_tags: list[Tag] = []


class DeleteQuery(BaseModel):
    """One message by its id, or the whole channel of the request when there is none."""

    model_config = ConfigDict(extra="forbid")

    id: str | None = None
    soft: bool = True


class RestoreQuery(BaseModel):
    """The deleted message that comes back, or all of the request's channel when there is none."""

    model_config = ConfigDict(extra="forbid")

    id: str | None = None


class BriefingQuery(BaseModel):
    """The day that is reported (UTC)."""

    model_config = ConfigDict(extra="forbid")

    date: date
    data_types: list[str] = ["conversation_summaries"]


class Request(BaseModel):
    """What every request has, whatever the operation."""

    model_config = ConfigDict(extra="forbid")
    operation: ClassVar[Operation]

    channel: ChannelName | None = None
    source: str = Field("unknown", min_length=1, max_length=64)
    metadata: Meta = Field(Meta(), validation_alias=AliasChoices("metadata", "meta"))

    @property
    def is_shortened(self) -> bool:
        """Whether a shorter form is asked for than what was said."""
        return False


class LogRequest(Request):
    operation = Operation.CONVERSATION_LOG
    channel: ChannelName
    messages: Annotated[list[MessageIn], Field(min_length=1)]


class ExtractRequest(Request):
    operation = Operation.EXTRACT
    query: ExtractQuery = ExtractQuery()

    @property
    def is_shortened(self) -> bool:
        """All but the messages as they are."""
        return self.query.mode != "raw"


class SearchRequest(Request):
    operation = Operation.SEARCH
    query: SearchQuery


class ListRequest(Request):
    operation = Operation.LIST
    query: ListQuery = ListQuery()


class FetchRequest(Request):
    operation = Operation.FETCH
    query: FetchQuery


class SessionsRequest(Request):
    operation = Operation.SEARCH_SESSIONS
    query: SessionsQuery


class TagRequest(Request):
    """Without a channel the latest one of the source is meant: the chat that is going on."""

    operation = Operation.TAG
    query: TagQuery


class DeleteRequest(Request):
    operation = Operation.DELETE
    query: DeleteQuery


class RestoreRequest(Request):
    operation = Operation.RESTORE
    query: RestoreQuery


class ImportRequest(Request):
    """Sessions as a reader found them in a client's own store. Not for the doors: the reader has checked them."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    operation = Operation.IMPORT

    store: str
    found: list[FoundSession]


class HookRequest(Request):
    """What a client's hooks sent of one session. Not for the doors: it comes out of our own spool."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    operation = Operation.CONVERSATION_LOG

    session: Session


class BriefingRequest(Request):
    operation = Operation.DAILY_BRIEFING
    query: BriefingQuery


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call whose arguments a door has refused itself: recorded as the operation that it would have been."""

    operation: Operation
    source: str
    error: InvalidRequest


REQUESTS: dict[str, type[Request]] = {
    shape.operation.value: shape
    for shape in (
        LogRequest,
        ExtractRequest,
        SearchRequest,
        SessionsRequest,
        ListRequest,
        FetchRequest,
        TagRequest,
        DeleteRequest,
        RestoreRequest,
        BriefingRequest,
    )
}


def parse_request(given: Mapping[str, Any]) -> Request:
    """A request from its wire shape `{operation, channel, messages|query, source, metadata}`; InvalidRequest."""
    name = str(given.get("operation"))
    shape = REQUESTS.get(ALIASES.get(name, name))
    if shape is None:
        allowed = ", ".join([*REQUESTS, *ALIASES])
        raise InvalidRequest("No such operation.", f"operation: given {name!r}; allowed: {allowed}")
    try:
        return shape.model_validate({key: value for key, value in given.items() if key != "operation"})
    except ValidationError as exc:
        raise invalid_request(exc.errors(include_url=False)) from exc


def invalid_request(problems: Sequence[Mapping[str, Any]]) -> InvalidRequest:
    """What pydantic found wrong as one error: each fault names the field, what was given and what is allowed."""
    return InvalidRequest("The request is not valid.", "; ".join(map(_in_words, problems)))


def _in_words(problem: Mapping[str, Any]) -> str:
    field = ".".join(str(part) for part in problem["loc"]) or "request"
    if problem["type"] == "missing":
        return f"{field}: missing; allowed: a value is required"
    return f"{field}: given {_short(problem.get('input'))}; allowed: {_allowed(problem)}"


def _allowed(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "literal_error":
        return str(problem["ctx"]["expected"])
    if problem["type"] == "extra_forbidden":
        return "no such field"
    return str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")


def _short(given: object, width: int = 80) -> str:
    text = json.dumps(given, ensure_ascii=False, default=str)
    return text if len(text) <= width else text[:width] + "…"
