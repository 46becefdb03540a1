"""What a request may ask for in its query, as checked shapes: which part of what, and how much of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from orchestrator.requests.field_types import (
    MOST_COUNTED,
    Also,
    Day,
    EndInstant,
    Instant,
    LeastCoverage,
    Limit,
    Mode,
    NameKind,
    Nickname,
    Offset,
    Order,
    RoleName,
    Roles,
    Tag,
    UtcOffset,
)


class ExtractQuery(BaseModel):
    """The part that is wanted. A plain string is its `text`."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    text: str | None = Field(None, max_length=4000, description="what it was about, in the user's own words")
    also: Also = []
    limit: Limit = Field(20, description="messages at most")
    cursor: str | None = Field(None, description="next_cursor of the last answer")
    mode: Mode = "raw"
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None
    roles: Roles = Field(["user", "assistant"], min_length=1)
    max_tokens: int | None = Field(None, ge=1, description="of the whole answer")
    utc_offset_minutes: SkipJsonSchema[UtcOffset | None] = None
    least_coverage: LeastCoverage = None

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
    least_coverage: LeastCoverage = None


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
        """Return whether it is asked what the session is, and not for a part of it or for all."""
        return self.message_limit is not None and not (self.before or self.message_id or self.cursor)


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
    max_tokens: int | None = Field(None, ge=1, description="the passages together stay within it; null: all of them")
    utc_offset_minutes: UtcOffset | None = None
    least_coverage: LeastCoverage = None


class TagQuery(BaseModel):
    """The new names of a channel; what is not given stays."""

    model_config = ConfigDict(extra="forbid")

    title: str | None = Field(None, max_length=300)
    nickname: Nickname | None = None
    tags: list[Tag] | None = Field(None, description="all it shall have")
    add_tags: list[Tag] = []
    remove_tags: list[Tag] = []
    pinned: bool | None = Field(None, description="whether it stands above the others")


class DeleteQuery(BaseModel):
    """A message by its id, or without one the whole channel of the request.

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


DataType = Literal["conversation_summaries", "notion_snapshots"]


class BriefingQuery(BaseModel):
    """The day that is reported, of the clock that is `utc_offset_minutes` ahead of UTC."""

    model_config = ConfigDict(extra="forbid")

    date: Day
    data_types: list[DataType] = Field(["conversation_summaries", "notion_snapshots"], min_length=1)
    language: Literal["", "en", "ko"] = ""
    utc_offset_minutes: UtcOffset = 0
    again: bool = Field(False, description="hand it also to a system where it is not known whether it has it")


class CreateBackupQuery(BaseModel):
    """The parts of a backup beside the registry, and its path."""

    model_config = ConfigDict(extra="forbid")

    path: str | None = Field(None, min_length=1, description="a new file; default: one in the folder of backups")
    stores: bool = Field(True, description="also the clients' own histories")
    is_scheduled: bool = Field(False, description="one of a series, of which older ones are thinned by age")


class ListBackupsQuery(BaseModel):
    """A list of backups takes no arguments."""

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
    mode: Literal["move", "copy"] = Field("move", description="copy: only in Cursor, each conversation with a new id")
    undo: str | None = Field(None, min_length=1, description="instead: the journal of a move in Cursor, to put it back")


class CompleteQuery(BaseModel):
    """The beginning of a word, and what it is to be completed to."""

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
    """The folder of a new chat, and its id."""

    model_config = ConfigDict(extra="forbid")

    folder: str = Field(min_length=1, description="the folder it works in")
    session_id: str | None = Field(None, description="the chat itself, of which nothing is told")


class BlameQuery(BaseModel):
    """A file, a line or a commit whose conversations are wanted; or the session whose commits are wanted."""

    model_config = ConfigDict(extra="forbid")

    file: str | None = Field(None, min_length=1, max_length=4000, description="FILE or FILE:LINE")
    commit: str | None = Field(None, min_length=1, max_length=300)
    session_id: str | None = Field(None, min_length=1, max_length=300)
    folder: str = Field(".", min_length=1, description="where a relative path begins, and the repository is looked for")
    limit: int = Field(5, ge=1, le=100)
