"""Turn a user's words into a search: parse the request, run it, and report how it was understood."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from orchestrator.requests.calls import UNKNOWN
from orchestrator.requests.shapes import ExtractQuery, ExtractRequest, NarrowedQuery, Request, SessionsQuery, WordsQuery
from orchestrator.state import Run
from registry.domain import Role, format_time, now
from registry.errors import InvalidRequest
from registry.search.retrieval import SearchResult, find_messages
from registry.search.scope import Scope, channels_awaiting_answer, narrow_scope
from registry.storage.conversations.facets import known_names
from registry.storage.database import ReadTransaction
from registry.text.ranking.similar import SimilarMessages
from registry.text.request.query import parse_query
from registry.text.request.understanding import (
    ParsedRequest,
    parse_request,
    resolve_project,
    resolve_source,
)
from sources.clients import CLIENTS

if TYPE_CHECKING:
    from orchestrator.semantic.meaning import QueryVector

AnyRequest = TypeVar("AnyRequest", bound=Request)
CONVERSATION_ROLES = ["user", "assistant"]  # roles that answers show
AT_ANY_TIME, A_WEEK_BEFORE = "at any time", "a week before"  # parts of a request that may be dropped


def with_known_names(tx: ReadTransaction, request: AnyRequest) -> AnyRequest:
    """Return the request with its source and project spelled as in the registry; a path is a project already.

    Raise InvalidRequest for an unknown source.
    """
    if isinstance(request, ExtractRequest):
        return request.model_copy(update={"project": _resolve_project(tx, request.project)})
    query = getattr(request, "query", None)
    if not isinstance(query, NarrowedQuery):
        return request
    source = None if query.source is None else _resolve_source(tx, query.source)
    named = query.model_copy(update={"source": source, "project": _resolve_project(tx, query.project)})
    return request.model_copy(update={"query": named})


_IS_PATH = re.compile(r"[/\\]")


def _resolve_project(tx: ReadTransaction, given: str | None) -> str | None:
    return given if given is None or _IS_PATH.search(given) else resolve_project(given, known_names(tx).projects)


def _resolve_source(tx: ReadTransaction, given: str) -> str:
    here = sorted(known_names(tx).sources)
    if given in here:
        return given
    written = {name.casefold(): name for name in [*(client.source for client in CLIENTS), *here]}
    if called := resolve_source(given, here):
        return called
    if given.casefold() in written:
        return written[given.casefold()]
    allowed = ", ".join(here or written.values())
    raise InvalidRequest("No such source.", f"source: given {given!r}; allowed: {allowed}")


def scope_of(query: WordsQuery, channel_number: int | None) -> Scope:
    """Return the scope of a query's filters."""
    return Scope(
        channel_number=channel_number,
        sources=[query.source] if query.source else [],
        project=query.project,
        tags=[query.tag] if query.tag else [],
        roles=query.roles,
        from_=query.from_,
        to=query.to,
    )


def parse_in_scope(
    tx: ReadTransaction, text: str, utc_offset_minutes: int | None, given: Scope
) -> tuple[ParsedRequest, Scope]:
    """Parse a request in the user's time zone; return it, and the scope narrowed by the filters in its words."""
    read = parse_request(text, local_time(utc_offset_minutes), known_names(tx))
    scope = narrow_scope(given, read.search)
    if read.sources and not given.sources:
        scope = replace(scope, sources=read.sources)
    return read, scope


def exclude_asking_chat(tx: ReadTransaction, run: Run, source: str, request: str, scope: Scope) -> Scope:
    """Exclude the chat that makes this request: its client may have stored the question already.

    A question that has been unanswered for more than ten minutes is not this request. A named channel stays.
    """
    if run.recorder.client is None or source == UNKNOWN:
        return scope
    asking = channels_awaiting_answer(tx, source, request, now() - timedelta(minutes=10))
    others = [number for number in asking if number != scope.channel_number]
    return replace(scope, exclude_numbers=[*scope.exclude_numbers, *others])


def local_time(utc_offset_minutes: int | None) -> datetime:
    """Return the current time in the user's zone, or in this machine's if that is unknown."""
    zone = None if utc_offset_minutes is None else timezone(timedelta(minutes=utc_offset_minutes))
    return now().astimezone(zone)


def find(tx: ReadTransaction, run: Run, parsed: ParsedRequest, scope: Scope, also: Sequence[str] = ()) -> SearchResult:
    """Search messages and channels in scope by words and, if a model is configured, by meaning.

    Include tool output in a search of the conversation, because an error often occurs there only.
    """
    if scope.roles and {*scope.roles} == {*CONVERSATION_ROLES}:
        scope = replace(scope, roles=[*CONVERSATION_ROLES, Role.TOOL])
    moment = local_time(None)
    others = [words for text in also if (words := parse_request(text, moment).search.words)]
    compare = partial(_similar, run.query_vector) if run.query_vector else None
    return find_messages(tx, parsed.search, scope, also=others, dates=parsed.dates, compare=compare)


def _similar(query_vector: QueryVector, tx: ReadTransaction, scope: Scope) -> SimilarMessages:
    if query_vector.model is None:
        return SimilarMessages(note=query_vector.note)
    from registry.search.meaning import similar_messages  # imports numpy: slow

    return similar_messages(tx, scope, query_vector.model, query_vector.vector)


Query = TypeVar("Query", ExtractQuery, SessionsQuery)


@dataclass(frozen=True, slots=True)
class Lookup(Generic[Query]):
    """A parsed request with its query, scope and transaction."""

    tx: ReadTransaction
    run: Run
    query: Query
    parsed: ParsedRequest
    scope: Scope

    def find(self) -> SearchResult:
        """Run the search."""
        return find(self.tx, self.run, self.parsed, self.scope, self.query.also)

    def at_any_time(self) -> Lookup[Query]:
        """Drop the time in the request's words, but not the query's time filter."""
        parsed = replace(self.parsed, search=self.parsed.search.at_any_time())
        return replace(self, parsed=parsed, scope=replace(self.scope, from_=self.query.from_, to=self.query.to))

    def relaxed(self, attempt: str) -> Lookup[Query]:
        """Return the lookup of an attempt; "" is the first one."""
        if attempt == AT_ANY_TIME:
            return self.at_any_time()
        if attempt != A_WEEK_BEFORE or not self.parsed.week_before:
            return self
        parsed = replace(self.parsed, search=replace(self.parsed.search, when=self.parsed.week_before))
        scope = narrow_scope(replace(self.scope, from_=self.query.from_, to=self.query.to), parsed.search)
        return replace(self, parsed=parsed, scope=scope)

    def relaxation(self, *, has_channel: bool) -> str:
        """Return the part of the request to drop if nothing, or nothing sure, is found; "" for none.

        A request to continue may mention a time incidentally; "last Tuesday" on a Thursday may mean last week's.
        """
        if self.parsed.is_continuation and self.parsed.search.when_words and (has_channel or self.parsed.has_words):
            return AT_ANY_TIME
        return A_WEEK_BEFORE if self.parsed.week_before else ""


def describe_request(parsed: ParsedRequest, result: SearchResult | None, *, relaxed: str = "") -> dict[str, Any]:
    """Describe how a request was understood, without empty fields."""
    search = parsed.search
    fields = {
        "words": [word.text for word in (result.query if result else parse_query(search.words)).words],
        "also": [wording.text for wording in result.wordings[1:]] if result else [],
        "excluded": list(search.excluded),
        "tags": list(search.tags),
        "when": search.when_words,
        "from": _time(search.from_),
        "to": _time(search.to),
        "dates": [f"{_time(span.start)}/{_time(span.end)}" for span in parsed.dates],
        "sources": list(parsed.sources),
        "project": search.project,
        "continues": parsed.is_continuation,
        "typos": dict(result.typos) if result else {},
        "relaxed": relaxed,
    }
    return {name: value for name, value in fields.items() if value}


def subject_of(text: str) -> str:
    """Return the words of a request without its time, client and project."""
    return parse_request(text, local_time(None)).search.words


def _time(given: datetime | None) -> str | None:
    return format_time(given) if given else None
