"""/flow: what the orchestrator did. The list of runs as they happen, one run explained, two runs compared."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from backoffice.dependencies import SOURCE, Asking
from backoffice.pages.flow.graph_drawing import graph_drawing
from backoffice.pages.flow.rendering import render_flow
from backoffice.pages.flow.run import compare, states, waterfall
from backoffice.pages.reader import as_instant, as_local
from backoffice.pages.rendering import address
from backoffice.pages.viewer.channels import PERIOD, given_query
from backoffice.queries import ExecutionsQuery, Word
from orchestrator.operations import operations, reading
from orchestrator.recording.evaluation import JUDGED
from orchestrator.views import runs as views
from registry.domain import new_id
from registry.errors import ErrorCode, InvalidRequest

router = APIRouter(prefix="/flow", default_response_class=HTMLResponse)

ROWS = 50
FILTERS = ("q", "operation", "status", "error_code", "source", "client", "channel", "slower_ms", "from", "to")
SLOWER = (100, 1_000, 10_000)
"""Milliseconds to choose from."""
STATUSES = ("succeeded", "guessed", "not_found", "failed")

Id = Annotated[Word, Path()]


@router.get("")
async def executions_page(request: Request, client: Asking) -> HTMLResponse:
    """The runs, newest first; new ones come in by themselves while the page is open."""
    query = given_query(request, ExecutionsQuery, limit=ROWS)
    if not query.source:
        query.without_source = SOURCE  # the operator's own reading is shown on request

    shown = await client.view(views.runs_page, query.filters, query.page)
    shown["sources"] = sorted({*shown["sources"], SOURCE})
    given = {name: request.query_params.get(name, "") for name in FILTERS}
    cursor = shown["found"]["next_cursor"]
    return render_flow(
        request,
        "executions.html",
        given=given,
        limits={name: as_local(request, as_instant(request, name, given[name])) for name in PERIOD},
        operations=[*operations(), "unknown"],
        statuses=STATUSES,
        codes=[code for code in ErrorCode if code != ErrorCode.NOT_FOUND],
        slower=SLOWER,
        is_newest=query.cursor is None,
        running=client.running() if query.cursor is None else [],
        address_here=address("/flow", **given),
        more=address("/flow", **given, cursor=cursor) if cursor else None,
        **shown,
    )


@router.get("/running")
async def running_runs(request: Request, client: Asking) -> HTMLResponse:
    """The runs that have not ended: a part of the list's page."""
    return render_flow(request, "running.html", running=client.running())


@router.get("/{execution_id}")
async def execution_page(
    request: Request,
    client: Asking,
    execution_id: Id,
    beside: Annotated[str | None, Query()] = None,
    expected: Annotated[str | None, Query()] = None,
) -> HTMLResponse:
    """Show one run: its path through the graph, what each node did and why, what was delivered.

    `beside` another one; `expected`: what became of that message.
    """

    shown = await client.view(views.run_page, execution_id, beside, expected)
    view, other = shown["view"], shown["other"]
    return render_flow(
        request,
        "execution.html",
        **shown,
        drawing=graph_drawing(),
        run=view.run,
        spans=waterfall(view.run),
        states=states(view.run["steps"]),
        can_be_tried=view.run["operation"] in JUDGED and bool(view.run["request"]),
        can_repeat=view.run["operation"] in reading(),
        comparison=compare(view, other) if other else None,
    )


@router.post("/{execution_id}/rating")
async def rate_run(client: Asking, execution_id: Id, useful: Annotated[bool, Form()]) -> RedirectResponse:
    """Say whether what was delivered was of use."""
    await client.change(views.rate_execution, execution_id, useful=useful)
    return RedirectResponse(f"/flow/{execution_id}#rating", 303)


@router.post("/{execution_id}/again")
async def run_again(client: Asking, execution_id: Id) -> RedirectResponse:
    """Ask the same once more, and show both runs; only what reads can be repeated."""
    run = await client.view(views.get_execution, execution_id)
    if run["operation"] not in reading():
        allowed = ", ".join(sorted(reading()))
        raise InvalidRequest("This cannot be run again.", f"operation: given {run['operation']!r}; allowed: {allowed}")
    repeated = new_id("exec")
    # A failure is shown as the new run's page shows it.
    given = {**run["request"], "operation": run["operation"], "source": SOURCE}
    await client.answer(given, repeated)
    return RedirectResponse(address(f"/flow/{repeated}", beside=execution_id), 303)
