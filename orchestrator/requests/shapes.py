"""Define requests. Those that the answer reads are here; those of other operations are in the operations' files."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, model_validator

from orchestrator.requests.field_types import ChannelName, GivenRole, SourceName, Timestamp
from orchestrator.requests.messages import as_message
from orchestrator.requests.queries import ExtractQuery, ListQuery, SearchQuery, SessionsQuery
from registry.domain import DEEPEST, is_too_deep


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not empty; leave such a message out")
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
    operation: ClassVar[str]
    takes_long: ClassVar[bool] = False
    """The operation has no time limit."""
    is_awaited: ClassVar[bool] = True
    """A caller waits for the answer."""
    means_now: ClassVar[bool] = False
    """It is about the chat that is going on: what hooks have told is taken in first."""

    channel: ChannelName | None = None
    source: SourceName = "unknown"
    timestamp: Timestamp | None = Field(None, description="when it was asked")
    metadata: Meta = Field(Meta(), validation_alias=AliasChoices("metadata", "meta"))

    @property
    def is_shortened(self) -> bool:
        """Return True if a shorter form is asked for than what was said."""
        return False

    @property
    def is_for_good(self) -> bool:
        """Return True if it deletes what cannot be restored."""
        return False

    @property
    def written_to(self) -> str | None:
        """Return the name of what it writes to; requests with the same name are stored one after the other."""
        return self.channel

    def summary(self) -> dict[str, Any]:
        """Summarise it for its record: counts and ids, never texts of messages."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"metadata", "source"})


READ_TOKENS, READ_MESSAGES = 30_000, 400
"""Limits of what is read of a conversation for a summary or a digest, unless the request has its own limit."""


class ExtractRequest(Request):
    operation = "extract"
    query: ExtractQuery = ExtractQuery()
    project: str | None = Field(None, description="path or folder name: only conversations of it")
    folder: str | None = Field(None, description="worked in; of conversations that are close its own come first")

    @property
    def is_shortened(self) -> bool:
        """Return True unless the messages themselves are wanted."""
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
    operation = "search"
    query: SearchQuery


class ListRequest(Request):
    operation = "list"
    query: ListQuery = ListQuery()


class SessionsRequest(Request):
    operation = "search_sessions"
    query: SessionsQuery
