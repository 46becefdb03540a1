"""What may be asked, as checked shapes: the one place where every door's arguments are validated, or refused in words.

Light to import: an MCP server shows these shapes before it opens a registry.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
    PrivateAttr,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from registry.domain import DEEPEST, Session, is_too_deep, now, parse_time
from registry.errors import InvalidRequest
from registry.text.spans import Span
from registry.text.time_words import parse_span
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
    RESUME = "resume"
    CREATE_BACKUP = "create_backup"
    LIST_BACKUPS = "list_backups"
    VALIDATE_BACKUP = "validate_backup"
    RESTORE_BACKUP = "restore_backup"
    MIGRATE = "migrate"


ALIASES = {"save": Operation.CONVERSATION_LOG, "retrieve": Operation.EXTRACT}
"""Shorter names, accepted wherever an operation is named."""

READING = frozenset(
    {
        Operation.EXTRACT,
        Operation.SEARCH,
        Operation.SEARCH_SESSIONS,
        Operation.LIST,
        Operation.FETCH,
        Operation.DAILY_BRIEFING,
        Operation.CREATE_BACKUP,
    }
)
"""Operations that answer from what is there, so that it is worth looking first for what has come in."""


LOCAL = frozenset(
    {
        Operation.CREATE_BACKUP,
        Operation.LIST_BACKUPS,
        Operation.VALIDATE_BACKUP,
        Operation.RESTORE_BACKUP,
        Operation.MIGRATE,
    }
)
"""Operations on files of this machine, or on everything that is kept: not for whoever reaches a server's HTTP side."""


def full_name(operation: str) -> str:
    """The operation's full name for one of its aliases; any other word as it is."""
    return ALIASES.get(operation, operation)


def _begin(given: object) -> object:
    """The first instant of what is said in words (yesterday, 지난주, 7d), or the time itself."""
    return _instant_of(given, lambda span: span.start)


def _end(given: object) -> object:
    """The last instant of what is said; a day as the end of a span means all of it."""
    return _instant_of(given, lambda span: span.end)


def _instant_of(given: object, end_of: Callable[[Span], datetime | None]) -> object:
    if isinstance(given, datetime):
        return given
    if isinstance(given, str):
        with suppress(ValueError):
            return _iso(given)
        here = now() if _DAY.fullmatch(given.strip()) else now().astimezone()  # a date without an offset is UTC's
        span = parse_span(given, here)
        if span and (moment := end_of(span)):
            return moment
    raise ValueError("a time such as 2025-09-29T14:30:15Z, yesterday, last week, 7d or 지난주")


def _iso(given: object) -> object:
    """A time as ISO 8601 writes it. A bare day is a span and no time."""
    if isinstance(given, datetime):
        return given
    if isinstance(given, str) and not _DAY.fullmatch(given.strip()):
        with suppress(ValueError):
            return parse_time(given)
    raise ValueError("an ISO 8601 time such as 2025-09-29T14:30:15.123Z")


def _visible(given: str) -> str:
    if not given.strip() or any(unicodedata.category(letter) == "Cc" for letter in given):
        raise ValueError("must have visible characters, and no control characters")
    return given


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


Timestamp = Annotated[
    datetime,
    BeforeValidator(_iso, json_schema_input_type=str),
    AfterValidator(parse_time),
    Field(json_schema_extra={"format": "date-time"}),
]
Instant = Annotated[
    datetime,
    BeforeValidator(_begin, json_schema_input_type=str),
    AfterValidator(parse_time),
]
EndInstant = Annotated[
    datetime,
    BeforeValidator(_end, json_schema_input_type=str),
    AfterValidator(parse_time),
]
ChannelName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_visible)]
RoleName = Literal["user", "assistant", "system", "tool", "thinking", "error"]
Limit = Annotated[int, Field(ge=1, le=1000)]
MOST_MESSAGES = 20_000
"""In one call: more would hold up all others while they are stored. A conversation may be longer."""
MOST_COUNTED = 2**31 - 1
"""No channel and no list is longer, and every database can count so far."""
Offset = Annotated[int, Field(ge=0, le=MOST_COUNTED)]
Mode = Literal["raw", "summary", "digest"]
Order = Literal["asc", "desc"]
UtcOffset = Annotated[int, Field(ge=-14 * 60, le=14 * 60, description="whose days 'yesterday' means")]
Also = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=400)]],
    Field(
        max_length=8,
        description="always 3-4 other wordings of the same question: synonyms, technical words, likely words of the "
        'answer, the other language; for "make login faster": ["speed up sign-in", "auth latency", "cache sessions", '
        '"로그인 속도"]',
    ),
]
SourceName = Annotated[str, Field(min_length=1, max_length=64)]
Nickname = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Tag = Annotated[str, Field(min_length=1, max_length=64)]


class MessageIn(BaseModel):
    """One message as a client sends it; further fields are kept with it."""

    model_config = ConfigDict(extra="allow")

    role: RoleName
    text: str
    timestamp: Timestamp | None = Field(None, description="ISO 8601 with offset; missing = now")
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
    """Which part of a conversation is wanted. A plain string is its `text`."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    text: str | None = Field(None, max_length=4000, description="what it was about, in the user's own words")
    also: Also = []
    limit: Limit = Field(20, description="messages at most")
    cursor: str | None = Field(None, description="next_cursor of the last answer")
    mode: Mode = "raw"
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None
    roles: list[RoleName] = Field(["user", "assistant"], min_length=1)
    max_tokens: int | None = Field(None, ge=1, description="the texts together stay within it")
    utc_offset_minutes: SkipJsonSchema[UtcOffset | None] = None

    @model_validator(mode="before")
    @classmethod
    def _text_alone(cls, given: object) -> object:
        return {"text": given} if isinstance(given, str) else given


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
    offset: Offset = 0
    project: str | None = None
    source: str | None = None
    tag: str | None = None
    tagged_only: bool = False
    since: Instant | None = None
    until: EndInstant | None = None
    cursor: str | None = Field(None, description="next_cursor of the last answer")
    order: Order = "desc"
    utc_offset_minutes: UtcOffset = 0
    is_sized: bool = Field(False, description="no more sessions than the asking client lets through")


class FetchQuery(BaseModel):
    """Which part of one session is wanted: its end, or what stands before a sequence number."""

    model_config = ConfigDict(extra="forbid")

    session_id: str = Field(min_length=1, max_length=300)
    message_limit: Limit | None = None
    before: int | None = Field(None, ge=1, le=MOST_COUNTED)
    message_id: str | None = Field(None, description="that message, whole")
    max_tokens: int | None = Field(None, ge=1, description="what is longer comes in pages, or shortened")
    cursor: str | None = Field(None, description='next_cursor of the last answer; "" for the beginning')
    is_folded: bool = False


class SessionsQuery(BaseModel):
    """Which sessions are wanted, by what was said in them."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    text: Annotated[str, Field(min_length=1, max_length=4000)]
    also: Also = []
    limit: Limit = 10
    offset: Offset = 0
    source: str | None = None
    project: str | None = Field(None, description="path or folder name")
    tag: str | None = None
    roles: list[RoleName] | None = Field(None, min_length=1)
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None
    context_window: int = Field(2, ge=0, le=50, description="messages before and after each match")
    exclude_session: str | None = Field(None, description="session left out, such as the current one")
    max_tokens: int = Field(1500, ge=1, description="the passages together stay within it")
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
    """One message by its id, or the whole channel of the request when there is none.

    For good (`soft` false) also a project, what is older, what holds some words: all that is given must hold.
    """

    model_config = ConfigDict(extra="forbid")

    id: str | None = None
    soft: bool = True
    project: str | None = Field(None, min_length=1)
    before: Instant | None = None
    matching: str | None = Field(None, min_length=1, max_length=4000)
    dry_run: bool = Field(False, description="only say what would be forgotten")

    @model_validator(mode="after")
    def _for_good(self) -> DeleteQuery:
        if self.soft and self.model_fields_set & {"project", "before", "matching", "dry_run"}:
            raise ValueError("project, before, matching and dry_run with soft = false")
        return self


class RestoreQuery(BaseModel):
    """The deleted message that comes back, or all of the request's channel when there is none."""

    model_config = ConfigDict(extra="forbid")

    id: str | None = None


def _day(given: object) -> object:
    """The day that a word means here; what is a date already stays as it is."""
    if isinstance(given, str) and not _DAY.fullmatch(given.strip()):
        here = now().astimezone()
        span = parse_span(given, here)
        if span and span.start:
            return span.start.astimezone(here.tzinfo).date()
    return given


class BriefingQuery(BaseModel):
    """The day that is reported, of the clock that is `utc_offset_minutes` ahead of UTC."""

    model_config = ConfigDict(extra="forbid")

    date: Annotated[date, BeforeValidator(_day)]
    data_types: list[Literal["conversation_summaries", "notion_snapshots"]] = ["conversation_summaries"]
    language: Literal["", "en", "ko"] = ""
    utc_offset_minutes: UtcOffset = 0
    again: bool = Field(False, description="hand it also to a system where it is not known whether it has it")


class CreateBackupQuery(BaseModel):
    """What goes into a backup beside the registry, and where it is written."""

    model_config = ConfigDict(extra="forbid")

    path: str | None = Field(None, min_length=1, description="a new file; default: one in the folder of backups")
    stores: bool = Field(True, description="also the clients' own histories")


class ListBackupsQuery(BaseModel):
    """Nothing is asked but which backups there are."""

    model_config = ConfigDict(extra="forbid")


class ValidateBackupQuery(BaseModel):
    """Which backup is meant."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1, description="its path, or its name in the folder of backups")


class RestoreBackupQuery(ValidateBackupQuery):
    """Which backup takes the place of what is stored."""

    rest: bool = Field(False, description="of a damaged backup, what is left of it")
    stores_to: str | None = Field(None, min_length=1, description="a new folder for the clients' own histories")
    dry_run: bool = Field(False, description="try it in a temporary place, and change nothing")


class MigrateQuery(BaseModel):
    """Which sessions belong to another folder: those of the folder `workspace`, or the request's channel alone."""

    model_config = ConfigDict(extra="forbid")

    to: str = Field(min_length=1, description="the folder's path now")
    workspace: str | None = Field(None, min_length=1, description="the folder's path before")
    dry_run: bool = Field(False, description="only say which sessions would move")


class ResumeQuery(BaseModel):
    """In which client a session goes on, and how much of it is taken along."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    session_id: str = Field(min_length=1, max_length=300)
    client: str = Field(alias="in", description="claude-code, codex, gemini-cli, opencode or copilot-cli")
    last: int | None = Field(None, ge=1, description="only the last so many questions with their answers")
    max_tokens: int = Field(100_000, ge=1, description="what is older than fits is left out, and said to be")
    folder: str | None = Field(None, description="where the client is started; default: the session's own folder")
    dry_run: bool = False
    undo: bool = False


class Request(BaseModel):
    """What every request has, whatever the operation."""

    model_config = ConfigDict(extra="forbid")
    operation: ClassVar[Operation]
    takes_long: ClassVar[bool] = False
    """Whether the operation may take as long as there is much to copy."""

    channel: ChannelName | None = None
    source: SourceName = "unknown"
    timestamp: Timestamp | None = Field(None, description="when it was asked")
    metadata: Meta = Field(Meta(), validation_alias=AliasChoices("metadata", "meta"))

    @property
    def is_shortened(self) -> bool:
        """Whether a shorter form is asked for than what was said."""
        return False


class LogRequest(Request):
    operation = Operation.CONVERSATION_LOG
    channel: ChannelName
    messages: Annotated[list[MessageIn], Field(min_length=1, max_length=MOST_MESSAGES)]
    _known: Sequence[str] = PrivateAttr(())
    _whole: Callable[[], Request] | None = PrivateAttr(None)

    @property
    def known(self) -> Sequence[str]:
        """The ids of messages that were sent before these, and have been stored already."""
        return self._known

    @property
    def count(self) -> int:
        """How many messages were sent."""
        return len(self._known) + len(self.messages)

    def behind(self, known: Sequence[str], whole: Callable[[], Request]) -> LogRequest:
        """The request, of which that much is known; `whole` makes the one that has all messages."""
        self._known, self._whole = known, whole
        return self

    def whole(self) -> LogRequest:
        """The request with all that was sent."""
        found = self._whole() if self._whole else self
        return found if isinstance(found, LogRequest) else self


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
    takes_long = True
    query: BriefingQuery


class ResumeRequest(Request):
    operation = Operation.RESUME
    query: ResumeQuery


class CreateBackupRequest(Request):
    operation = Operation.CREATE_BACKUP
    takes_long = True
    query: CreateBackupQuery = CreateBackupQuery()


class ListBackupsRequest(Request):
    operation = Operation.LIST_BACKUPS
    query: ListBackupsQuery = ListBackupsQuery()


class ValidateBackupRequest(Request):
    operation = Operation.VALIDATE_BACKUP
    takes_long = True
    query: ValidateBackupQuery


class RestoreBackupRequest(Request):
    operation = Operation.RESTORE_BACKUP
    takes_long = True
    query: RestoreBackupQuery


class MigrateRequest(Request):
    operation = Operation.MIGRATE
    query: MigrateQuery


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call whose arguments a door has refused itself: recorded as the operation that it would have been."""

    operation: Operation
    source: str
    error: InvalidRequest
    channel: str | None = None


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
        ResumeRequest,
        CreateBackupRequest,
        ListBackupsRequest,
        ValidateBackupRequest,
        RestoreBackupRequest,
        MigrateRequest,
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


def refuse_too_many(messages: object) -> None:
    """InvalidRequest for more messages than one call may bring; asked before anything looks at each of them."""
    if isinstance(messages, list) and len(messages) > MOST_MESSAGES:
        allowed = f"at most {MOST_MESSAGES} in one call, more in several: the next ones follow on those before"
        raise InvalidRequest("Too many messages at once.", f"messages: given {len(messages)}; allowed: {allowed}")


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
        return ", ".join(["no such field", *problem.get("ctx", {}).get("but", ())])
    if problem["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return "an object"
    return str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")


def _short(given: object, width: int = 80) -> str:
    some = given[:width] if isinstance(given, list | str) else given
    text = json.dumps(some, ensure_ascii=False, default=str)
    return text if len(text) <= width else text[:width] + "…"
