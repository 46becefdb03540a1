"""search_sessions: find sessions by words in their messages."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from orchestrator.answer.delivery import tokens_for, tokens_of
from orchestrator.answer.finding.choosing import order_channels
from orchestrator.answer.finding.elsewhere import OtherTimeMatch, nearest_other_time
from orchestrator.answer.finding.lookup import (
    AT_ANY_TIME,
    CONVERSATION_ROLES,
    Lookup,
    describe_request,
    exclude_asking_chat,
    parse_in_scope,
    scope_of,
    subject_of,
)
from orchestrator.answer.finding.relevance import (
    JudgedSearch,
    best_channels,
    confidence_in,
    describe_search,
    has_subject,
    judge_messages,
)
from orchestrator.answer.session_list import SessionsFound, fit_client, list_found_sessions, pagination
from orchestrator.requests.calls import project_of, searched_project, utc_offset_minutes
from orchestrator.requests.field_types import Also, EndInstant, Instant, Limit, Offset
from orchestrator.requests.shapes import SessionsQuery, SessionsRequest
from orchestrator.state import AttemptOutcome, Operation, Run, Steps
from orchestrator.tool import WHEN, Caller, Effect, Outcome, ProjectName, Tool, ToolArguments
from registry.access import Level
from registry.domain import format_time, preview_of
from registry.errors import InvalidRequest, NotFound
from registry.search.sessions import list_latest_sessions
from registry.storage.conversations.channels import latest_activity
from registry.storage.conversations.references import resolve_session
from registry.storage.database import ReadTransaction
from registry.text.ranking.confidence import Confidence
from registry.text.request.understanding import ParsedRequest


def find_sessions(tx: ReadTransaction, run: Run, request: SessionsRequest) -> SessionsFound:
    """Parse the search and run it. A given time filter stays: words are dropped first."""
    query = request.query
    inside = resolve_session(tx, request.channel) if request.channel else None
    run.recorder.channel = inside.name if inside else None
    given = scope_of(query, inside.number if inside else None)
    given = replace(
        given, roles=query.roles or CONVERSATION_ROLES, exclude_numbers=numbers_of(tx, query.exclude_session)
    )
    parsed, scope = parse_in_scope(tx, query.text, query.utc_offset_minutes, given)
    scope = exclude_asking_chat(tx, run, request.source, query.text, scope)
    lookup = Lookup(tx, run, query, parsed, scope)
    data = _search(lookup.relaxed(run.attempt))
    relaxation = lookup.relaxation(has_channel=inside is not None)
    if run.attempt == AT_ANY_TIME:
        data = replace(data, relaxed="time")
    elif not run.attempt and not (_is_sure(data) if relaxation == AT_ANY_TIME else data.best or data.latest_total):
        data = replace(data, relaxation=relaxation)
    run.recorder.explain(**describe_search(data.found.result), understood=_understood(data))
    return data


def pick_best(run: Run, _request: SessionsRequest, earlier: AttemptOutcome, relaxed: AttemptOutcome) -> AttemptOutcome:
    first, second = earlier.data, relaxed.data
    is_better = _is_sure(second) or (not first.best and bool(second.best))
    if not is_better:
        run.recorder.explain(**describe_search(first.found.result), understood=_understood(first))
    return relaxed if is_better else earlier


def _search(lookup: Lookup[SessionsQuery]) -> SessionsFound:
    tx, parsed, scope, query = lookup.tx, lookup.parsed, lookup.scope, lookup.query
    result = lookup.find()
    found = JudgedSearch(parsed, result, judge_messages(result))
    best = best_channels(result, is_narrowed=parsed.is_narrowed)
    if parsed.dates or parsed.is_about_latest or parsed.is_about_past or parsed.is_about_first:
        first = [(row.number, score) for row, score in order_channels(lookup, result)]
        best = [*first, *best[len(first) :]]
    data = SessionsFound(found, best)
    has_named = bool(parsed.search.when_words or parsed.sources)
    names_words = has_subject(parsed, result)
    if not names_words or (has_named and not data.best):
        latest, total = list_latest_sessions(tx, scope, query.limit, query.offset, newest_first=query.order != "asc")
        relaxed = "words" if names_words else ""
        data = replace(data, relaxed=relaxed, latest=dict(latest), latest_total=total)
        if relaxed and parsed.search.when_words:
            data = replace(data, other_time=nearest_other_time(lookup))
    return data


def _is_sure(data: SessionsFound) -> bool:
    """Return True if the confidence in the first session is not low even without the filters of the request."""
    return bool(data.best) and _confidence(data) is not Confidence.LOW


def numbers_of(tx: ReadTransaction, session_id: str | None) -> list[int]:
    """Return the number of a session to leave out, if it was ever stored."""
    try:
        return [resolve_session(tx, session_id).number] if session_id else []
    except NotFound:
        return []


async def answer_sessions(run: Run, request: SessionsRequest, data: SessionsFound) -> dict[str, Any]:
    """Return a page of sessions, best first, each with its best matches."""
    more: dict[str, Any] = {"understood": _understood(data), **_confidence_fields(run, data)}
    if data.other_time:
        more["elsewhere"] = {"about_it": _describe_match(data.other_time)}
    wanted = request.query.max_tokens
    tokens = None if wanted is None and run.limit is None else tokens_for(run.limit, wanted or 1500) - tokens_of(more)
    if request.query.order:
        data = await run.registry.read(lambda tx: _by_activity(tx, data, is_newest_first=request.query.order == "desc"))
    shown, total = await run.registry.read(lambda tx: list_found_sessions(tx, run, request.query, data, tokens))
    shown = fit_client(run, shown)
    page = pagination(total, request.query.limit, request.query.offset, len(shown))
    return {"sessions": shown, "pagination": page, **more}


def _by_activity(tx: ReadTransaction, data: SessionsFound, *, is_newest_first: bool) -> SessionsFound:
    latest = latest_activity(tx, [number for number, _ in data.best])
    known = [(number, score) for number, score in data.best if number in latest]
    known.sort(key=lambda one: (latest[one[0]], one[0]), reverse=is_newest_first)
    return replace(data, best=known)


def _describe_match(match: OtherTimeMatch) -> dict[str, Any]:
    row = match.channel
    named = {"session_id": row.session_id or row.name, "title": row.title or row.first_message_preview}
    return {
        **named,
        "timestamp": format_time(match.at),
        "snippet": preview_of(match.message.text if match.message else "", 160),
    }


def _confidence_fields(run: Run, data: SessionsFound) -> dict[str, Any]:
    """Return the confidence in the first session; {} if no words were searched."""
    if data.latest or not data.best:
        return {}
    confidence = _confidence(data, data.found.parsed)
    run.recorder.explain(confidence=confidence.value)
    similar = data.found.result.similar
    note = {"note": f"Found by words only: {similar.note}."} if similar and similar.note else {}
    return {"confidence": confidence.value} | (note if confidence is Confidence.LOW else {})


def _confidence(data: SessionsFound, parsed: ParsedRequest | None = None) -> Confidence:
    scores = [score for _, score in data.best]
    return confidence_in(data.found.result, data.best[0][0], scores, parsed)


def _understood(data: SessionsFound) -> dict[str, Any]:
    return describe_request(data.found.parsed, data.found.result, relaxed=data.relaxed)


class SearchArguments(ToolArguments):
    query: Annotated[str, Field(min_length=1, max_length=4000)]
    also: Also | None = None
    limit: Limit = 10
    offset: Offset = 0
    project: ProjectName = "current"
    source: str | None = None
    tag: str | None = None
    context_window: Annotated[int, Field(ge=0, le=50)] = 2
    after_date: Annotated[Instant | None, Field(description=WHEN)] = None
    before_date: EndInstant | None = None
    current_session_id: Annotated[str | None, Field(min_length=1, description="only in it")] = None
    exclude_current: Annotated[bool, Field(description="all but current_session_id")] = False
    max_tokens: Annotated[int, Field(ge=1)] = 1500

    @classmethod
    def reshape(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Accept a `query` object or list, as in `extract`."""
        query = given.get("query")
        if isinstance(query, list) and query:
            return {"also": query[1:], **given, "query": query[0]}
        if not isinstance(query, dict) or "text" not in query:
            return given
        return {**given, **{name: value for name, value in query.items() if name != "text"}, "query": query["text"]}

    def request(self, caller: Caller) -> SessionsRequest:
        if self.exclude_current and self.current_session_id is None:
            raise InvalidRequest(
                "Which session to exclude is not known.",
                "current_session_id: missing; allowed: the id or channel of this chat, with exclude_current",
            )
        query = SessionsQuery(
            **self.model_dump(include={"limit", "offset", "source", "tag", "context_window", "max_tokens"}),
            text=self.query,
            also=self.also or [],
            project=project_of(self.project, caller.project),
            from_=self.after_date,
            to=self.before_date,
            exclude_session=self.current_session_id if self.exclude_current else None,
            utc_offset_minutes=utc_offset_minutes(),
        )
        only = None if self.exclude_current else self.current_session_id
        return SessionsRequest(channel=only, query=query, source=caller.source)

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        return {**await super().result(outcome, caller), **searched_project(self.project, caller.project)}


SEARCH_TOOL = Tool(
    name="search_sessions",
    title="Search past sessions",
    description="Search PAST conversations with any AI client: the user's own words as query and always 3-4 other "
    'wordings as also. Use it for "how did I implement…", "we discussed…", "지난번에 얘기한…". query may hold '
    "-word, tag:api, source:codex, after:2026-01 and times in words (yesterday, 지난주). "
    "Then read one with fetch_session_by_id.",
    effect=Effect.READS,
    arguments=SearchArguments,
    returns=["quoted", "sessions", "confidence", "pagination", "project", "understood"],
    example={"query": "login tag:api", "also": ["sign-in", "로그인"], "project": "all"},
    quotes=True,
)
OPERATION = Operation(
    request=SessionsRequest,
    level=Level.READ,
    syncs_first=True,
    steps=Steps[SessionsRequest, SessionsFound](
        query=find_sessions,
        answer=answer_sessions,
        relax=lambda data: data.relaxation,
        choose=pick_best,
        subject=lambda request: subject_of(request.query.text),
    ),
    tools=[SEARCH_TOOL],
    labels={
        "context_window": ("messages around each match", "앞뒤 메시지 수"),
        "matches": ("matches shown of each conversation", "대화마다 표시할 결과 수"),
        "exclude_session": ("without the conversation", "뺀 대화"),
    },
)
