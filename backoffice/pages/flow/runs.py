"""/flow: what the orchestrator did. The list of runs as they happen, one run explained, two runs compared."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from backoffice.dependencies import SOURCE, Asking, Stored, Writable
from backoffice.pages.flow.expected import Expected, expected_in
from backoffice.pages.flow.graph_drawing import graph_drawing
from backoffice.pages.flow.rendering import render_flow
from backoffice.pages.flow.run import RunView, compare, run_view, states, waterfall
from backoffice.pages.rendering import address
from backoffice.pages.viewer.channels import PERIOD, given_query
from backoffice.pages.zone import as_instant, as_local
from backoffice.queries import ExecutionsQuery, Word
from orchestrator.evaluation import JUDGED
from orchestrator.operation_names import READING, Operation
from registry.domain import new_id
from registry.errors import ErrorCode, InvalidRequest
from registry.storage.conversations.facets import sources
from registry.storage.conversations.kept import list_views
from registry.storage.database import ReadTransaction
from registry.storage.exchange.change_feed import shown_place
from registry.storage.records.executions import get_execution, list_executions
from registry.storage.records.ratings import rate_execution, rating_of

router = APIRouter(prefix="/flow", default_response_class=HTMLResponse)

ROWS = 50
FILTERS = ("q", "operation", "status", "error_code", "source", "client", "channel", "slower_ms", "from", "to")
SLOWER = (100, 1_000, 10_000)
"""Milliseconds to choose from."""
STATUSES = ("succeeded", "not_found", "failed")

Id = Annotated[Word, Path()]


@router.get("")
async def executions_page(request: Request, registry: Stored, client: Asking) -> HTMLResponse:
    """The runs, newest first; new ones come in by themselves while the page is open."""
    query = given_query(request, ExecutionsQuery, limit=ROWS)

    def work(tx: ReadTransaction) -> dict[str, Any]:
        place = shown_place(tx)
        return {
            "place": place,
            "found": list_executions(tx, query.wanted, query.page),
            "sources": sorted({*sources(tx), SOURCE}),
            "views": list_views(tx),
        }

    shown = await registry.read(work)
    given = {name: request.query_params.get(name, "") for name in FILTERS}
    cursor = shown["found"]["next_cursor"]
    return render_flow(
        request,
        "executions.html",
        given=given,
        limits={name: as_local(request, as_instant(request, name, given[name])) for name in PERIOD},
        operations=[*Operation, "unknown"],
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
    registry: Stored,
    execution_id: Id,
    beside: Annotated[str | None, Query()] = None,
    expected: Annotated[str | None, Query()] = None,
) -> HTMLResponse:
    """One run: its way through the graph, what each node did and why, what was delivered.

    `beside` another one; `expected`: what became of that message.
    """

    def work(tx: ReadTransaction) -> tuple[RunView, RunView | None, Expected | None, bool | None]:
        view = run_view(tx, execution_id)
        other = run_view(tx, beside) if beside else None
        return view, other, expected_in(tx, view, expected) if expected else None, rating_of(tx, execution_id)

    view, other, missing, useful = await registry.read(work)
    return render_flow(
        request,
        "execution.html",
        view=view,
        drawing=graph_drawing(),
        run=view.run,
        spans=waterfall(view.run),
        states=states(view.run["steps"]),
        useful=useful,
        can_be_tried=view.run["operation"] in JUDGED and bool(view.run["request"]),
        expected=missing,
        can_repeat=view.run["operation"] in READING,
        other=other,
        comparison=compare(view, other) if other else None,
    )


@router.post("/{execution_id}/rating")
async def rate_run(registry: Writable, execution_id: Id, useful: Annotated[bool, Form()]) -> RedirectResponse:
    """Say whether what was delivered was of use."""
    await registry.write(lambda tx: rate_execution(tx, execution_id, useful=useful))
    return RedirectResponse(f"/flow/{execution_id}#rating", 303)


@router.post("/{execution_id}/again")
async def run_again(registry: Stored, client: Asking, execution_id: Id) -> RedirectResponse:
    """Ask the same once more, and show both runs; only what reads can be repeated."""
    run = await registry.read(lambda tx: get_execution(tx, execution_id))
    if run["operation"] not in READING:
        allowed = ", ".join(sorted(READING))
        raise InvalidRequest("This cannot be run again.", f"operation: given {run['operation']!r}; allowed: {allowed}")
    repeated = new_id("exec")
    # A failure is shown as the new run's page shows it.
    given = {**run["request"], "operation": run["operation"], "source": SOURCE}
    await client.answer(given, repeated)
    return RedirectResponse(address(f"/flow/{repeated}", beside=execution_id), 303)
