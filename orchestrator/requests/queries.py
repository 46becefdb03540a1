"""Define the queries of questions."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from orchestrator.requests.field_types import (
    Also,
    EndInstant,
    GivenMode,
    Instant,
    Limit,
    Offset,
    Order,
    RoleName,
    Roles,
    UtcOffset,
)


class QueryShape(BaseModel):
    """A shape that refuses fields it does not have."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


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
    """The client, project and tag of the conversations that are looked at."""

    source: str | None = None
    project: str | None = Field(None, description="path or folder name")
    tag: str | None = None


class WordsQuery(NarrowedQuery):
    """Words to look for, and in which messages."""

    text: Annotated[str, Field(min_length=1, max_length=4000)]
    roles: list[RoleName] | None = Field(None, min_length=1)
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None


class SearchQuery(WordsQuery):
    """Messages in the whole registry."""

    limit: Limit = 20
    cursor: str | None = None
    order: Order | None = Field(None, description="by time instead of best first: all that has to do with the words")


class ListQuery(NarrowedQuery):
    """Sessions by last activity."""

    limit: Limit = 20
    offset: Offset = 0
    tagged_only: bool = False
    since: Instant | None = None
    until: EndInstant | None = None
    is_sized: bool = Field(False, description="no more sessions than the asking client lets through")
    as_lines: bool = Field(False, description="one line for each session")


class SessionsQuery(WordsQuery):
    """Sessions by what was said in them."""

    also: Also = []
    limit: Limit = 10
    offset: Offset = 0
    context_window: int = Field(2, ge=0, le=50, description="messages before and after each match")
    exclude_session: str | None = Field(None, description="session left out, such as the current one")
    order: Order | None = Field(None, description="by last activity instead of best first")
    max_tokens: int | None = Field(None, ge=1, description="the passages together stay within it; null: all of them")
    utc_offset_minutes: UtcOffset | None = None
