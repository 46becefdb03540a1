"""What may be asked, as checked shapes: the one place where every door's arguments are validated.

Light to import: an MCP server shows these shapes before it opens a registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from orchestrator.requests.field_types import (
    MOST_MESSAGES,
    ChannelName,
    RoleName,
    SourceName,
    Timestamp,
)
from orchestrator.requests.operation_names import ALIASES, Operation
from orchestrator.requests.queries import (
    BlameQuery,
    BriefingQuery,
    CompleteQuery,
    CreateBackupQuery,
    DeleteQuery,
    ExtractQuery,
    FetchQuery,
    ListBackupsQuery,
    ListQuery,
    MigrateQuery,
    NoteQuery,
    RestoreBackupQuery,
    RestoreQuery,
    ResumeQuery,
    SearchQuery,
    SessionsQuery,
    TagQuery,
    ValidateBackupQuery,
)
from orchestrator.requests.refusals import invalid_request
from registry.domain import DEEPEST, Session, is_too_deep
from registry.errors import InvalidRequest
from sources.base import FoundSession


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not empty; leave such a message out")
    return text


class MessageIn(BaseModel):
    """Further fields are kept with a message."""

    model_config = ConfigDict(extra="allow")

    role: RoleName
    text: Annotated[str, AfterValidator(_not_blank)]
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


class Request(BaseModel):
    """The fields of every request."""

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
        """Return whether a shorter form is asked for than what was said."""
        return False


class LogRequest(Request):
    operation = Operation.CONVERSATION_LOG
    channel: ChannelName
    messages: Annotated[list[MessageIn], Field(min_length=1, max_length=MOST_MESSAGES)]
    follows: str | None = Field(None, description="id of the message that these come right behind")
    grows: str | None = Field(None, description="id of the message of which this one has all words and more")
    _known: Sequence[str] = PrivateAttr(())
    _whole: Callable[[], Request] | None = PrivateAttr(None)

    @property
    def known(self) -> Sequence[str]:
        """The ids of messages that were sent before these, and have been stored already."""
        return self._known

    @property
    def count(self) -> int:
        """Return how many messages were sent."""
        return len(self._known) + len(self.messages)

    def behind(self, known: Sequence[str], whole: Callable[[], Request]) -> LogRequest:
        """The request, of which that much is known; `whole` makes the one that has all messages."""
        self._known, self._whole = known, whole
        return self

    def whole(self) -> LogRequest:
        """The request with all that was sent."""
        found = self._whole() if self._whole else self
        return found if isinstance(found, LogRequest) else self


READ_TOKENS, READ_MESSAGES = 30_000, 400
"""So much of a conversation is read for a summary or a digest; with a limit of its own only that."""


class ExtractRequest(Request):
    operation = Operation.EXTRACT
    query: ExtractQuery = ExtractQuery()
    folder: str | None = Field(None, description="worked in; of conversations that are close its own come first")

    @property
    def is_shortened(self) -> bool:
        """All but the messages as they are."""
        return self.query.mode != "raw"

    def as_read(self) -> ExtractRequest:
        """Return the request as it selects messages: a summary may read more than its own size."""
        if not self.is_shortened:
            return self
        wanted: dict[str, Any] = {"max_tokens": READ_TOKENS}
        if "limit" not in self.query.model_fields_set:
            wanted["limit"] = READ_MESSAGES
        return self.model_copy(update={"query": self.query.model_copy(update=wanted)})


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
    """Messages of a session from a client's hooks. Only from our own spool."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    operation = Operation.CONVERSATION_LOG

    session: Session


class PulledRequest(Request):
    """Messages of a conversation from another registry. Only from our own exchange."""

    operation = Operation.CONVERSATION_LOG

    said: LogRequest
    url: str
    ids: list[str]
    """What each of the messages is called there."""


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
