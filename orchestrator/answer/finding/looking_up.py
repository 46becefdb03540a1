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
    KnownNames,
    ParsedRequest,
    parse_request,
    resolve_project,
    resolve_source,
)
from sources.clients import CLIENTS

if TYPE_CHECKING:
    from orchestrator.semantic.meaning import Meant

Asked = TypeVar("Asked", bound=Request)
SPOKEN = ["user", "assistant"]  # roles that are shown
AT_ANY_TIME, A_WEEK_BEFORE = "at any time", "a week before"  # what of a request may be given up


def with_known_names(tx: ReadTransaction, request: Asked) -> Asked:
    """Return the request with its source and project spelled as in the registry; InvalidRequest for an unknown source.

    A path is a project as it stands.
    """
    if isinstance(request, ExtractRequest):
        return request.model_copy(update={"project": _known_project(tx, request.project)})
    query = getattr(request, "query", None)
    if not isinstance(query, NarrowedQuery):
        return request
    source = None if query.source is None else _known_source(tx, query.source)
    named = query.model_copy(update={"source": source, "project": _known_project(tx, query.project)})
    return request.model_copy(update={"query": named})


_IS_PATH = re.compile(r"[/\\]")


def _known_project(tx: ReadTransaction, given: str | None) -> str | None:
    return given if given is None or _IS_PATH.search(given) else resolve_project(given, known_names(tx).projects)


def _known_source(tx: ReadTransaction, given: str) -> str:
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
    """Return the part of the registry that a query names."""
    return Scope(
        channel_number=channel_number,
        sources=[query.source] if query.source else [],
        project=query.project,
        tags=[query.tag] if query.tag else [],
        roles=query.roles,
        from_=query.from_,
        to=query.to,
    )


def ask(tx: ReadTransaction, text: str, utc_offset_minutes: int | None, given: Scope) -> tuple[ParsedRequest, Scope]:
    """Parse a request in its writer's time zone; return it with its scope, narrowed by the filters in its words."""
    read = parse_request(text, local_time(utc_offset_minutes), KnownNames(*known_names(tx)))
    scope = narrow_scope(given, read.search)
    if read.sources and not given.sources:
        scope = replace(scope, sources=read.sources)
    return read, scope


def without_the_asking_chat(tx: ReadTransaction, run: Run, source: str, request: str, scope: Scope) -> Scope:
    """Return the scope without the chat in which this is asked: its client may have stored the question already.

    A question that has waited for more than ten minutes is not the one that is being answered.
    """
    if run.recorder.client is None or source == UNKNOWN or scope.channel_number is not None:
        return scope
    asking = channels_awaiting_answer(tx, source, request, now() - timedelta(minutes=10))
    return replace(scope, exclude_numbers=[*scope.exclude_numbers, *asking])


def local_time(utc_offset_minutes: int | None) -> datetime:
    """Return the present time in the user's zone; in this machine's if that is unknown."""
    zone = None if utc_offset_minutes is None else timezone(timedelta(minutes=utc_offset_minutes))
    return now().astimezone(zone)


def find(tx: ReadTransaction, run: Run, read: ParsedRequest, scope: Scope, also: Sequence[str] = ()) -> SearchResult:
    """Find the messages and channels in scope by words and, if a model is configured, by meaning.

    What was said is found by what its tools printed, too: an error is often seen there alone.
    """
    if scope.roles and {*scope.roles} == {*SPOKEN}:
        scope = replace(scope, roles=[*SPOKEN, Role.TOOL])
    moment = local_time(None)
    others = [words for text in also if (words := parse_request(text, moment).search.words)]
    compare = partial(_similar, run.meant) if run.meant else None
    return find_messages(tx, read.search, scope, also=others, dates=read.dates, compare=compare)


def _similar(meant: Meant, tx: ReadTransaction, scope: Scope) -> SimilarMessages:
    if meant.model is None:
        return SimilarMessages(note=meant.note)
    from registry.search.meaning import similar_messages  # imports numpy: slow

    return similar_messages(tx, scope, meant.model, meant.vector)


Query = TypeVar("Query", ExtractQuery, SessionsQuery)


@dataclass(frozen=True, slots=True)
class Lookup(Generic[Query]):
    """A parsed request with its scope and transaction."""

    tx: ReadTransaction
    run: Run
    query: Query
    said: ParsedRequest
    scope: Scope

    def find(self) -> SearchResult:
        """Run the search."""
        return find(self.tx, self.run, self.said, self.scope, self.query.also)

    def at_any_time(self) -> Lookup[Query]:
        """Return the look-up without the time in its words; a time given as a filter holds."""
        said = replace(self.said, search=self.said.search.at_any_time())
        return replace(self, said=said, scope=replace(self.scope, from_=self.query.from_, to=self.query.to))

    def relaxed(self, attempt: str) -> Lookup[Query]:
        """Return the look-up of an attempt: "" is the first one."""
        if attempt == AT_ANY_TIME:
            return self.at_any_time()
        if attempt != A_WEEK_BEFORE or not self.said.week_before:
            return self
        said = replace(self.said, search=replace(self.said.search, when=self.said.week_before))
        scope = narrow_scope(replace(self.scope, from_=self.query.from_, to=self.query.to), said.search)
        return replace(self, said=said, scope=scope)

    def relaxation(self, *, has_channel: bool) -> str:
        """Return the part of the request that may be given up if nothing, or nothing sure, is found; "" for none.

        Who wants to continue may name a time in passing; "last Tuesday" on a Thursday may mean that of last week.
        """
        if self.said.is_continuation and self.said.search.when_words and (has_channel or self.said.has_words):
            return AT_ANY_TIME
        return A_WEEK_BEFORE if self.said.week_before else ""


def understood(read: ParsedRequest, result: SearchResult | None, *, relaxed: str = "") -> dict[str, Any]:
    """Return how a request was understood, without empty fields."""
    search = read.search
    said = {
        "words": [word.text for word in (result.query if result else parse_query(search.words)).words],
        "also": [wording.text for wording in result.wordings[1:]] if result else [],
        "excluded": list(search.excluded),
        "tags": list(search.tags),
        "when": search.when_words,
        "from": _time(search.from_),
        "to": _time(search.to),
        "dates": [f"{_time(span.start)}/{_time(span.end)}" for span in read.dates],
        "sources": list(read.sources),
        "project": search.project,
        "continues": read.is_continuation,
        "typos": dict(result.typos) if result else {},
        "relaxed": relaxed,
    }
    return {name: value for name, value in said.items() if value}


def subject_of(text: str) -> str:
    """Return the words of a request without what it says of time and place."""
    return parse_request(text, local_time(None)).search.words


def _time(given: datetime | None) -> str | None:
    return format_time(given) if given else None
