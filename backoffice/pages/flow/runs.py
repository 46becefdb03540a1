"""/flow: the list of runs, and one run with suggested repairs: its request without one of the conditions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from backoffice.channels import find_channels
from backoffice.dependencies import SOURCE, CurrentClient, HttpClient
from backoffice.pages.flow.graph_drawing import graph_drawing
from backoffice.pages.flow.run import states, waterfall
from backoffice.pages.reader import as_instant, as_local
from backoffice.pages.rendering import address, list_parameters, opened, render, see_other
from backoffice.pages.viewer.channels import CONDITION_FILTERS, PERIOD, ROWS, Chip, best_hits, chips, given_query
from backoffice.queries import ChannelsQuery, ExecutionsQuery, Word
from orchestrator.operations import operations, reading
from orchestrator.recording.evaluation import SEARCH_OPERATIONS
from orchestrator.views import runs as views
from registry.domain import new_id
from registry.errors import ErrorCode, InvalidRequest

router = APIRouter(prefix="/flow", default_response_class=HTMLResponse)

FILTERS = ("q", "operation", "status", "error_code", "source", "client", "channel", "min_duration_ms", "from", "to")
WITHOUT_HINTS = {"without_operation": "hint"}  # clients ask for hints with every prompt: they would hide the rest

MAX_COUNTED = 10_000  # counting all of 95 000 runs takes 15 ms, more than the rest of the page

Id = Annotated[Word, Path()]


@router.get("")
async def executions_page(request: Request, client: CurrentClient) -> HTMLResponse:
    """Show answers to check, then all runs, newest first; new ones come in while the page is open."""
    query = given_query(request, ExecutionsQuery, limit=ROWS)
    listing = await list_context(request, client, query, request.query_params)
    return render(request, "flow/executions.html", running=client.running() if query.cursor is None else [], **listing)


async def list_context(
    request: Request, client: HttpClient, query: ExecutionsQuery, parameters: Mapping[str, str]
) -> dict[str, Any]:
    if not query.source:
        query.without_source = SOURCE  # the operator's own reading is shown on request
    hidden = {} if query.operation or query.channel else WITHOUT_HINTS
    page = replace(query.page, count_to=MAX_COUNTED)
    shown = await client.view(views.runs_page, {**query.filters, **hidden}, page)
    shown["sources"] = sorted({*shown["sources"], SOURCE})
    given = {name: parameters.get(name, "") for name in FILTERS}
    cursor = shown["found"]["next_cursor"]
    is_whole = not any(given.values()) and query.cursor is None
    unsure = await client.view(views.unsure_runs, SOURCE, 50) if is_whole else []
    return {
        "given": given,
        "limits": {name: as_local(request, as_instant(request, name, given[name])) for name in PERIOD},
        "hides_hints": bool(hidden),
        "operations": [*operations(), "unknown"],
        "codes": [code for code in ErrorCode if code != ErrorCode.NOT_FOUND],
        "is_newest": query.cursor is None,
        "max_counted": MAX_COUNTED,
        "address_here": address("/flow", **given),
        "narrowed": {name: value for name, value in given.items() if value and name != "q"},
        "more": address("/flow", **given, cursor=cursor) if cursor else None,
        "to_check": group_by_question(unsure),
        **shown,
    }


def group_by_question(runs: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], int]]:
    """Group runs by their question: the newest of each, and how many there are."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        groups.setdefault(run["asked"], []).append(run)
    return [(group[0], len(group)) for group in groups.values()]


@router.get("/running")
async def running_runs(request: Request, client: CurrentClient) -> HTMLResponse:
    return render(request, "flow/running.html", running=client.running())


@router.get("/{execution_id}")
async def execution_page(
    request: Request,
    client: CurrentClient,
    execution_id: Id,
    expected: Annotated[str | None, Query()] = None,
    should: Annotated[str, Query(max_length=1000)] = "",
) -> HTMLResponse:
    """Show one run, and what happened to the message `expected` at each step.

    `should`: words of the conversation that it should have found.
    """

    shown = await client.view(views.run_page, execution_id, expected)
    view = shown["view"]
    run = view.run
    # if dropping the time found nothing better, the filter recorded how the query was understood
    understood = view.noted("filter").get("understood") or view.noted("cr_query").get("understood", {})
    conditions = list(conditions_of(run["request"], understood))
    can_be_tried = run["operation"] in SEARCH_OPERATIONS and bool(run["request"])
    is_sure = shown["case"]["is_sure"] and (run["result"] or {}).get("confidence") == "high"
    is_unsure = can_be_tried and run["status"] != "failed" and not is_sure
    is_whole = "pane" not in request.headers
    listed = list_parameters(request)
    query = given_query(request, ExecutionsQuery, listed, limit=ROWS)
    listing = await list_context(request, client, query, listed) if is_whole else {}
    candidates = await find_channels(client, ChannelsQuery(q=should, limit=6), is_recorded=False) if should else {}
    return render(
        request,
        "flow/execution.html",
        **{**listing, **shown},
        drawing=graph_drawing(),
        run=run,
        beside=request.query_params.get("list"),
        back=address("/flow", **listed),
        conditions=conditions,
        unused_tags=await _unused(client, [one.text for one in conditions if one.kind == "tag"]),
        is_of_another_time="time" in understood.get("relaxed", ""),
        repairs=await find_repairs(client, run["request"], conditions) if is_unsure else [],
        should=should,
        candidates=[(item, best_hits(candidates).get(item["channel"])) for item in candidates.get("items", [])],
        spans=waterfall(run),
        states=states(run["steps"]),
        can_be_tried=can_be_tried,
        can_repeat=run["operation"] in reading(),
    )


async def _unused(client: HttpClient, tags: Sequence[str]) -> list[str]:
    """Return the tags that no conversation has."""
    found = [await client.run("complete", {"kind": "tag", "text": tag}, is_recorded=False) for tag in tags]
    return [tag for tag, like in zip(tags, found, strict=True) if tag not in like["names"]]


@router.post("/{execution_id}/rating")
async def rate_run(
    request: Request, client: CurrentClient, execution_id: Id, useful: Annotated[bool, Form()]
) -> RedirectResponse:
    await client.change(views.rate_execution, execution_id, useful=useful)
    return see_other(opened(request, f"/flow/{execution_id}") + "#rating")


@router.post("/{execution_id}/again")
async def run_again(
    request: Request,
    client: CurrentClient,
    execution_id: Id,
    text: Annotated[str, Form(max_length=4000)] = "",
    drop: Annotated[list[str], Form()] = [],  # noqa: B006 - FastAPI copies it
) -> RedirectResponse:
    """Run the request once more, with other words or without some fields, and show the new run."""
    run = await client.view(views.get_execution, execution_id)
    if run["operation"] not in reading():
        allowed = ", ".join(sorted(reading()))
        raise InvalidRequest("This cannot be run again.", f"operation: given {run['operation']!r}; allowed: {allowed}")
    repeated = new_id("exec")
    # A failure is shown as the new run's page shows it.
    repeating = with_changes(run["request"], text, drop) if text or drop else run["request"]
    await client.answer({**repeating, "operation": run["operation"], "source": SOURCE}, repeated)
    return see_other(opened(request, f"/flow/{repeated}"))


class Repair(NamedTuple):
    """A condition, and the conversation that is found without it."""

    condition: Chip
    found: dict[str, Any]
    confidence: str


def conditions_of(request: Mapping[str, Any], understood: Mapping[str, Any]) -> Iterator[Chip]:
    """Yield the conditions of a request: those in its words, then those in its fields."""
    query: Mapping[str, Any] = request.get("query") or {}
    yield from chips(query.get("text") or "", understood)
    if request.get("channel"):
        yield Chip("channel", str(request["channel"]), None, "channel")
    for name in CONDITION_FILTERS:
        if query.get(name) and query[name] != "all":
            yield Chip("time" if name in PERIOD else name, str(query[name]), None, name)


def with_changes(request: Mapping[str, Any], text: str | None, drop: Sequence[str]) -> dict[str, Any]:
    """Return a request with other words, and without some of its fields."""
    query = {name: value for name, value in (request.get("query") or {}).items() if name not in drop}
    if text:
        query["text"] = text
    others = {name: value for name, value in request.items() if name not in ("query", *drop)}
    return {**others, "query": query}


async def find_repairs(client: HttpClient, request: Mapping[str, Any], conditions: Sequence[Chip]) -> list[Repair]:
    """Search without each condition in turn, and return those that find a conversation."""
    found: list[Repair] = []
    narrowing = [one for one in conditions if one.kind != "word" and (one.rest or one.drop)]
    for condition in narrowing[:5]:
        changed = with_changes(request, condition.rest, [condition.drop] if condition.drop else [])["query"]
        names = ("text", "also", *CONDITION_FILTERS)
        query = {name: changed[name] for name in names if changed.get(name)} | {"limit": 1, "context_window": 0}
        answer = await client.ask("search_sessions", query, is_recorded=False)
        if answer["success"] and answer["sessions"] and answer["sessions"][0]["match_count"]:
            found.append(Repair(condition, answer["sessions"][0], answer.get("confidence", "low")))
    return found
