"""What may be asked, as checked shapes: the one place where every door's arguments are validated.

Light to import: an MCP server shows these shapes before it opens a registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from orchestrator.field_types import (
    MOST_COUNTED,
    MOST_MESSAGES,
    Also,
    AlsoBy,
    ChannelName,
    Day,
    EndInstant,
    Instant,
    Limit,
    Mode,
    NameKind,
    Nickname,
    Offset,
    Order,
    RoleName,
    Roles,
    SourceName,
    Tag,
    Timestamp,
    UtcOffset,
)
from orchestrator.operation_names import ALIASES, Operation
from orchestrator.refusals import invalid_request
from registry.domain import DEEPEST, Session, is_too_deep
from registry.errors import InvalidRequest
from sources.base import FoundSession


class MessageIn(BaseModel):
    """Further fields are kept with a message."""

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
    """About the conversation; anything else is kept too."""

    model_config = ConfigDict(extra="allow")

    source: str | None = Field(None, max_length=64, description="cursor, claude, chatgpt, gemini, …")
    project: str | None = Field(None, description="workspace folder")
    file: str | None = None
    language: str | None = None
    model: str | None = None
    title: str | None = None
    additional_context: dict[str, Any] | None = None


class ExtractQuery(BaseModel):
    """The part that is wanted. A plain string is its `text`."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    text: str | None = Field(None, max_length=4000, description="what it was about, in the user's own words")
    also: Also = []
    also_by: AlsoBy = None
    limit: Limit = Field(20, description="messages at most")
    cursor: str | None = Field(None, description="next_cursor of the last answer")
    mode: Mode = "raw"
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None
    roles: Roles = Field(["user", "assistant"], min_length=1)
    max_tokens: int | None = Field(None, ge=1, description="of all texts together")
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
    utc_offset_minutes: UtcOffset | None = None
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
    is_complete: bool = Field(False, description="each message with all that is kept of it")

    @property
    def is_first_look(self) -> bool:
        """Whether it is asked what the session is, and not for a part of it or for all."""
        return self.message_limit is not None and not (self.before or self.message_id or self.cursor)


class SessionsQuery(BaseModel):
    """Which sessions are wanted, by what was said in them."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    text: Annotated[str, Field(min_length=1, max_length=4000)]
    also: Also = []
    also_by: AlsoBy = None
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
    utc_offset_minutes: UtcOffset | None = None


class TagQuery(BaseModel):
    """What to call a channel from now on; what is not given stays."""

    model_config = ConfigDict(extra="forbid")

    title: str | None = Field(None, max_length=300)
    nickname: Nickname | None = None
    tags: list[Tag] | None = Field(None, description="all it shall have")
    add_tags: list[Tag] = []
    remove_tags: list[Tag] = []
    pinned: bool | None = Field(None, description="whether it stands above the others")


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


class BriefingQuery(BaseModel):
    """The day that is reported, of the clock that is `utc_offset_minutes` ahead of UTC."""

    model_config = ConfigDict(extra="forbid")

    date: Day
    data_types: list[Literal["conversation_summaries", "notion_snapshots"]] = ["conversation_summaries"]
    language: Literal["", "en", "ko"] = ""
    utc_offset_minutes: UtcOffset = 0
    again: bool = Field(False, description="hand it also to a system where it is not known whether it has it")


class CreateBackupQuery(BaseModel):
    """What goes into a backup beside the registry, and where it is written."""

    model_config = ConfigDict(extra="forbid")

    path: str | None = Field(None, min_length=1, description="a new file; default: one in the folder of backups")
    stores: bool = Field(True, description="also the clients' own histories")
    is_scheduled: bool = Field(False, description="one of a series, of which older ones are thinned by age")


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

    to: str = Field("", description="the folder's path now")
    workspace: str | None = Field(None, min_length=1, description="the folder's path before")
    dry_run: bool = Field(False, description="only say which sessions would move")
    in_cursor: bool = Field(False, description="also inside Cursor's own database, while Cursor does not run")
    undo: str | None = Field(None, min_length=1, description="instead: the journal of a move in Cursor, to put it back")


class CompleteQuery(BaseModel):
    """What somebody has typed so far, and of what it is the beginning."""

    model_config = ConfigDict(extra="forbid")

    kind: NameKind
    text: str = Field("", max_length=300)
    limit: Limit = 20


class ResumeQuery(BaseModel):
    """In which client a session goes on, and how much of it is taken along."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    session_id: str = Field(min_length=1, max_length=300)
    client: str = Field(alias="in", description="claude-code, codex, gemini-cli, opencode, copilot-cli or qwen-code")
    last: int | None = Field(None, ge=1, description="only the last so many questions with their answers")
    max_tokens: int = Field(100_000, ge=1, description="what is older than fits is left out, and said to be")
    folder: str | None = Field(None, description="where the client is started; default: the session's own folder")
    dry_run: bool = False
    undo: bool = False


class NoteQuery(BaseModel):
    """Where a new chat begins, and which one it is."""

    model_config = ConfigDict(extra="forbid")

    folder: str = Field(min_length=1, description="the folder it works in")
    session_id: str | None = Field(None, description="the chat itself, of which nothing is told")


class BlameQuery(BaseModel):
    """What came about somewhere: a file or one line of it, a commit; or the session whose commits are asked for."""

    model_config = ConfigDict(extra="forbid")

    file: str | None = Field(None, min_length=1, max_length=4000, description="FILE or FILE:LINE")
    commit: str | None = Field(None, min_length=1, max_length=300)
    session_id: str | None = Field(None, min_length=1, max_length=300)
    folder: str = Field(".", min_length=1, description="where a relative path begins, and the repository is looked for")
    limit: int = Field(5, ge=1, le=100)


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


class NoteRequest(Request):
    operation = Operation.NOTE
    query: NoteQuery


class BlameRequest(Request):
    operation = Operation.BLAME
    query: BlameQuery


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


class CompleteRequest(Request):
    operation = Operation.COMPLETE
    query: CompleteQuery


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
        NoteRequest,
        BlameRequest,
        CreateBackupRequest,
        ListBackupsRequest,
        ValidateBackupRequest,
        RestoreBackupRequest,
        MigrateRequest,
        CompleteRequest,
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
