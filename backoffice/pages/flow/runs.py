"""/flow: what the orchestrator did. The list of runs as they happen, one run explained, two runs compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from backoffice.dependencies import SOURCE, Asking, Stored, Writable
from backoffice.pages.flow.graph_drawing import graph_drawing
from backoffice.pages.flow.rendering import render_flow
from backoffice.pages.flow.run import RunView, compare, run_view, states, waterfall
from backoffice.pages.flow.verdicts import DELIVERED, WITH_QUESTION
from backoffice.pages.reader import as_instant, as_local
from backoffice.pages.rendering import address
from backoffice.pages.viewer.channels import PERIOD, given_query
from backoffice.queries import ExecutionsQuery, Word
from orchestrator.recording.evaluation import JUDGED
from orchestrator.requests.operation_names import READING, Operation
from registry.domain import new_id, preview_of
from registry.errors import ErrorCode, InvalidRequest
from registry.storage.conversations.facets import sources
from registry.storage.conversations.messages import get_message
from registry.storage.conversations.pins_and_views import list_views
from registry.storage.database import ReadTransaction
from registry.storage.exchange.change_feed import shown_place
from registry.storage.records.executions import get_execution, list_executions
from registry.storage.records.judgements import rate_execution, rating_of
from registry.text.ranking.matching import matched_words
from registry.text.request.query import parse_query

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


class Expected(NamedTuple):
    """The expected message, the step that lost it (None: it was delivered), and why, in words."""

    id: str
    channel: str
    preview: str
    step: str | None
    why: str


def expected_in(tx: ReadTransaction, view: RunView, message_id: str) -> Expected:
    """What became of a message in a run; NotFound if there is no such message."""
    row = get_message(tx, message_id)
    step, why = _lost(view, row)
    return Expected(row.id, row.channel, preview_of(row.text), step, why)


def _lost(view: RunView, row: Any) -> tuple[str | None, str]:
    delivered = {one["id"] for one in view.delivered}
    if row.id in delivered:
        return None, "It was delivered."
    verdict = next((one for one in view.verdicts if one.shown and one.shown["id"] == row.id), None)
    if verdict and verdict.verdict not in (DELIVERED, WITH_QUESTION):
        return view.judging, verdict.reason or "It was good enough, but the answer was full."
    query: Mapping[str, Any] = view.run["request"].get("query") or {}
    if query.get("roles") and row.role not in query["roles"]:
        return "cr_query", "Messages of its role were not asked for."
    if view.run["channel"] and view.run["channel"] != row.channel:
        return "cr_query", "Another conversation was chosen."
    words = [word for word in view.steps.get("cr_query", {}).get("detail", {}).get("words", [])]
    if not matched_words(parse_query(" ".join(map(str, words))), row.text):
        return "cr_query", "It holds no whole word of the request."
    return view.judging or "cr_query", "It was found, but ranked too low."
