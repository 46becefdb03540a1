"""Query parameters: filters and pagination of the lists."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from orchestrator.operations import aliases, operations
from orchestrator.requests.field_types import ChannelName, EndInstant, Instant, Limit, RoleName
from orchestrator.requests.shapes import QueryShape
from orchestrator.views.conversations import Page
from registry.domain import storable
from registry.errors import ErrorCode, InvalidRequest

_BUCKETS = {"minute": 60, "hour": 3600, "day": 86_400}
_OPERATIONS = [*operations(), *aliases(), "unknown"]


def _known_operation(given: str) -> str:
    if given not in _OPERATIONS:
        raise ValueError(f"must be one of {', '.join(_OPERATIONS)}")
    return aliases().get(given, given)


def _seconds(given: object) -> object:
    if given in _BUCKETS:
        return _BUCKETS[str(given)]
    if isinstance(given, str) and not given.isdecimal():
        raise ValueError("minute, hour, day, or a number of seconds")
    return given


_TIME_SCHEMA = {
    "anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}],
    "examples": ["2025-09-29", "2025-09-29T14:30:15.123Z", "yesterday", "7d"],
}
Start = Annotated[Instant, WithJsonSchema(_TIME_SCHEMA)]
End = Annotated[EndInstant, WithJsonSchema(_TIME_SCHEMA)]
Word = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(storable)]
OperationName = Annotated[
    str, AfterValidator(_known_operation), WithJsonSchema({"type": "string", "enum": _OPERATIONS})
]
Bucket = Annotated[
    int,
    BeforeValidator(_seconds),
    Field(ge=1, le=31_536_000),
    WithJsonSchema({"anyOf": [{"enum": [*_BUCKETS]}, {"type": "integer", "minimum": 1, "maximum": 31_536_000}]}),
]

IN_CHANNEL, OF_CLIENT, TAGGED = "only this channel", "only of this client", "only with this tag"


class PageQuery(QueryShape):
    limit: Limit = Field(20, description="items at most")
    cursor: str | None = Field(None, max_length=500, description="`next_cursor` of the last answer")
    order: Literal["asc", "desc"] = Field("desc", description="newest first, or `asc`: oldest first")

    @property
    def page(self) -> Page:
        return Page(self.limit, self.cursor, self.order)


class Period(QueryShape):
    """A period, both ends included."""

    from_: Start | None = Field(None, alias="from", description="from this instant on; a date means its start (UTC)")
    to: End | None = Field(None, description="up to this instant; a date means its end (UTC)")


class ChannelsQuery(PageQuery, Period):
    """Filters of channels; times are those of the last activity."""

    source: Word | None = Field(None, description=OF_CLIENT, examples=["cursor"])
    project: Word | None = Field(None, description="the folder's path, or its name")
    tag: Word | None = Field(None, description=TAGGED)
    q: Word | None = Field(None, description="words in the title, nickname, project or content")
    order: Literal["relevance", "newest", "asc", "desc"] | None = Field(  # type: ignore[assignment]
        None, description="best first where there are words, else newest first (`newest`, `desc`); `asc`: oldest first"
    )
    deleted: bool = Field(False, description="deleted channels; words are searched in their names only")

    @property
    def is_by_relevance(self) -> bool:
        return bool(self.q) and not self.deleted and self.order in (None, "relevance")

    @property
    def filters(self) -> dict[str, Any]:
        words = {"q": self.q} if self.deleted and self.q else {}
        return {**self.model_dump(include={"source", "project", "tag", "from_", "to", "deleted"}), **words}

    @property
    def page(self) -> Page:
        return Page(self.limit, self.cursor, "asc" if self.order == "asc" else "desc")

    def as_search(self, utc_offset_minutes: int | None = None) -> dict[str, Any]:
        """Return the query of the `search_sessions` operation; its pages are counted, so a cursor is an offset."""
        if self.cursor and not self.cursor.isdecimal():
            allowed = "the next_cursor of the last answer"
            raise InvalidRequest("The cursor is not valid.", f"cursor: given {self.cursor!r}; allowed: {allowed}")
        query = {"text": self.q, "from": self.from_, "to": self.to, "utc_offset_minutes": utc_offset_minutes}
        query |= self.model_dump(include={"source", "project", "tag", "limit"}) | {"context_window": 0}
        query["offset"] = int(self.cursor or 0)
        query["order"] = None if self.is_by_relevance else self.page.order
        return {name: value for name, value in query.items() if value is not None}


class MessageFilters(Period):
    """Filters that a list and a search of messages share."""

    channel: ChannelName | None = Field(None, description=IN_CHANNEL)
    source: Word | None = Field(None, description=OF_CLIENT, examples=["cursor"])
    role: list[RoleName] | None = Field(None, description="may be given several times")
    q: Word | None = None

    def as_query(self) -> dict[str, Any]:
        query = {"text": self.q, "roles": self.role, "from": self.from_, "to": self.to}
        query |= self.model_dump(include={"source", "project", "tag", "limit", "cursor", "order"})
        return {name: value for name, value in query.items() if value is not None}


class MessagesQuery(PageQuery, MessageFilters):
    q: Word | None = Field(None, description="words to search messages for; deleted ones are not found")
    include_deleted: bool = Field(False, description="softly deleted messages too")

    @property
    def filters(self) -> dict[str, Any]:
        return {"roles": self.role, **self.model_dump(include={"channel", "source", "from_", "to", "include_deleted"})}


class MessageQuery(QueryShape):
    include_deleted: bool = Field(False, description="also when it is softly deleted")


class ChangesQuery(QueryShape):
    """The place to continue from."""

    after: int = Field(0, ge=0, le=2**62, description="`place` of the last answer; 0: from the beginning")


class OwnerQuery(QueryShape):
    owner: Word = Field(description="the person; below `admin` only the token's own person", examples=["kim"])


class DeletionQuery(QueryShape):
    soft: bool = Field(True, description="keep it, so that it can be restored; `false` removes it for good")


class SearchParameters(MessageFilters):
    """The words of a search and its filters."""

    q: Annotated[Word, Field(max_length=4000)] = Field(description="in the user's own words", examples=["fibonacci"])
    project: Word | None = Field(None, description="the folder's path, or its name")
    tag: Word | None = Field(None, description=TAGGED)
    limit: Limit = Field(20, description="messages at most")
    cursor: str | None = Field(None, max_length=500, description="`next_cursor` of the last answer")


class ExtractsQuery(PageQuery):
    channel: ChannelName | None = Field(None, description=IN_CHANNEL)


class ExecutionsQuery(PageQuery, Period):
    operation: OperationName | None = Field(None, description="full name, or `save`, `retrieve`")
    channel: ChannelName | None = Field(None, description="only runs on this channel")
    status: Literal["running", "succeeded", "guessed", "not_found", "failed"] | None = Field(
        None, description="only runs with this outcome, or those that have not ended"
    )
    source: Word | None = Field(None, description="only runs that this client or page started")
    error_code: ErrorCode | None = Field(None, description="only runs with this error code")
    q: Word | None = Field(None, description="characters that the question contains")
    client: Word | None = Field(None, description="a part of the client's name")
    min_duration_ms: float | None = Field(None, ge=0, description="only runs of at least this duration")
    without_source: Word | None = Field(None, description="only runs of other sources")

    @property
    def filters(self) -> dict[str, Any]:
        return {"words": self.q, **self.model_dump(exclude={"q", "limit", "cursor", "order"})}


class StatisticsQuery(Period):
    """A period of runs, and the size of the series' buckets."""

    bucket: Bucket | None = Field(None, description="minute, hour, day, or seconds; chosen from the period if missing")

    def bucket_s(self, now: datetime) -> int:
        """Return the seconds of one point of the series: a few hundred points at most, for the usual periods."""
        if self.bucket is not None:
            return self.bucket
        if self.from_ is None:
            return _BUCKETS["day"]
        span = ((self.to or now) - self.from_).total_seconds()
        fitting = (seconds for seconds in _BUCKETS.values() if span <= 200 * seconds)
        return next(fitting, _BUCKETS["day"])
