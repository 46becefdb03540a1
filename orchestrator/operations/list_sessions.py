"""list: return sessions by last activity."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from orchestrator.answer.digests.summaries import add_summaries
from orchestrator.answer.session_list import fit_client, pagination
from orchestrator.operations.blame import BlameQuery, BlameRequest
from orchestrator.requests.calls import project_of, searched_project
from orchestrator.requests.field_types import EndInstant, Instant, Limit, Offset
from orchestrator.requests.shapes import ListQuery, ListRequest
from orchestrator.state import Operation, Run, Steps
from orchestrator.tool import WHEN, Alias, Caller, Effect, Outcome, ProjectName, Tool, ToolArguments, select_fields
from registry.access import Level
from registry.domain import format_time, now, parse_time, preview_of
from registry.storage.conversations.channels import positions_among_recent, some_channels
from registry.storage.database import ReadTransaction


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of sessions."""

    items: list[dict[str, Any]]
    total: int


def list_sessions(tx: ReadTransaction, run: Run, request: ListRequest) -> Listed:
    query = request.query
    wanted = query.model_dump(include={"source", "project", "tag", "limit", "offset"})
    items, total = some_channels(tx, **wanted, from_=query.since, to=query.until, is_named=query.tagged_only)
    add_summaries(tx, run, items)
    for one in items:
        one["summary"] = one["summary"] and preview_of(one["summary"], 300)
    _number(tx, query, items)
    run.recorder.explain(by="the channels' last activity", candidates=total)
    return Listed(items, total)


def _number(tx: ReadTransaction, query: ListQuery, items: Iterable[dict[str, Any]]) -> None:
    """Set `index`, the number in references such as `#3`: the position among all sessions."""
    if not (query.project or query.source or query.tag or query.tagged_only or query.until):
        for number, one in enumerate(items, query.offset + 1):
            one["index"] = number
        return
    positions = positions_among_recent(tx, 1000)
    for one in items:
        if one["channel"] in positions:
            one["index"] = positions[one["channel"]]


async def answer_list(run: Run, request: ListRequest, data: Listed) -> dict[str, Any]:
    """Return the page, or the part of it that fits the client's limit."""
    query = request.query
    shown = [line_of(item, now()) for item in data.items] if query.as_lines else data.items
    items = fit_client(run, shown) if query.is_sized else shown
    reason = "limit and offset" if len(items) == len(data.items) else "what the client lets through"
    run.recorder.explain(kept=len(items), dropped=data.total - len(items), reason=reason)
    bounds = {"from": query.since, "to": query.until}
    span = {name: format_time(at) for name, at in bounds.items() if at}
    understood = {"understood": span} if span else {}
    page = pagination(data.total, query.limit, query.offset, len(items))
    return {"sessions": items, "pagination": page, **understood}


class ListArguments(ToolArguments):
    limit: Limit = 20
    offset: Offset = 0
    project: ProjectName = "current"
    source: str | None = None
    tag: str | None = None
    tagged_only: bool = False
    since: Annotated[Instant | None, Field(description=WHEN)] = None
    until: EndInstant | None = None
    file: Annotated[str | None, Field(min_length=1, description="path or path:line")] = None
    commit: Annotated[str | None, Field(min_length=1)] = None
    full: Annotated[bool, Field(description="all facts of each session, not one line")] = False

    def request(self, caller: Caller) -> ListRequest | BlameRequest:
        """Return a list request; with a file or a commit, a `blame` request."""
        folder = project_of(self.project, caller.project)
        if self.file or self.commit:
            where = folder or caller.project or "."
            traced = BlameQuery(file=self.file, commit=self.commit, folder=where, limit=min(self.limit, 100))
            return BlameRequest(query=traced, source=caller.source)
        given = self.model_dump(exclude={"project", "file", "commit", "full"})
        query = ListQuery(**given, project=folder, is_sized=True, as_lines=not self.full)
        return ListRequest(query=query, source=caller.source)

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        listed = as_sessions(outcome) if "found" in outcome else await super().result(outcome, caller)
        return {**listed, **searched_project(self.project, caller.project)}


def line_of(session: Mapping[str, Any], moment: datetime) -> str:
    """Return a session in at most 120 characters, its id first: `0f3a9c1e · 2 days ago · Login fails · shop`."""
    known = session["session_id"] or ""
    short = known[:8] if re.fullmatch(r"[0-9a-f]{8}-[0-9a-f-]{27}", known) else known
    handles = (session["nickname"], short, session["channel"])
    handle = next((one for one in handles if one and len(one) <= 40), f"#{session.get('index', 1)}")
    count = session["message_count"]
    facts = [session["project_name"], session["source"], "1 message" if count == 1 else f"{count} messages"]
    end = " · ".join(["", *(preview_of(fact, 24) for fact in facts if fact)])
    begin = f"{handle} · {age_of(parse_time(session['updated_at']), moment)}"
    title = preview_of(session["title"] or session["first_message_preview"] or "", max(116 - len(begin) - len(end), 1))
    return f"{begin} · {title}{end}" if title else begin + end


def age_of(at: datetime, moment: datetime) -> str:
    """Return the age in words; after two months, the date."""
    minutes = max(int((moment - at).total_seconds() // 60), 0)
    if minutes >= 60 * 24 * 60:
        return f"{at.astimezone():%Y-%m-%d}"
    for unit, length in (("day", 24 * 60), ("hour", 60), ("minute", 1)):
        if count := minutes // length:
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"


def as_sessions(traced: Outcome) -> dict[str, Any]:
    """Convert a result of `blame` to a list of sessions with their evidence."""
    evidence = ("confidence", "why", "message_id", "commit")
    sessions = [{**found["session"], **select_fields(found, *evidence)} for found in traced["found"]]
    return {"sessions": sessions, "pagination": pagination(len(sessions), len(sessions), 0, len(sessions))}


LIST_TOOL = Tool(
    name="list_sessions",
    title="List past sessions",
    description="List the user's PAST conversations with any AI client, latest first ('what have I been working on?', "
    "'what did I do yesterday?'). One line each: id, age, title, project, client; full gives all facts. With file or "
    "commit (git): those in which it came about. Not for the current chat.",
    effect=Effect.READS,
    arguments=ListArguments,
    returns=["sessions", "pagination", "project"],
    example={"project": "all", "since": "yesterday"},
    aliases=[
        Alias("list_recent_sessions", defaults={"project": "all"}),
        Alias("find_sessions_by_tag", required=["tag"], defaults={"project": "all"}),
    ],
)
OPERATION = Operation(
    request=ListRequest,
    level=Level.READ,
    syncs_first=True,
    steps=Steps[ListRequest, Listed](query=list_sessions, answer=answer_list),
    tools=[LIST_TOOL],
    labels={
        "as_lines": ("as lines", "한 줄씩"),
        "since": ("since", "이 시각부터"),
        "tagged_only": ("only with tags", "태그 있는 것만"),
        "is_sized": ("as many as fit", "들어갈 만큼만"),
        "until": ("until", "종료"),
    },
)
