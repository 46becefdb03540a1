"""/bo/ao: runs of the orchestrator, statistics, and an endpoint to run an operation."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query

from backoffice.bodies import RUN_EXAMPLES, RunBody, shaped
from backoffice.dependencies import API, Asking, succeeded, without_parameters
from backoffice.execution_schemas import ExecutionDetail, ExecutionItem, Graph, Rating, RunAnswer, Statistics
from backoffice.queries import ExecutionsQuery, StatisticsQuery, Word
from backoffice.schemas import EXECUTION_ID, ItemPage
from orchestrator.graph import describe_graph
from orchestrator.operations import operations
from orchestrator.requests.refusals import Refusal
from orchestrator.views import runs as views
from registry.domain import now
from registry.errors import InvalidRequest

router = APIRouter(prefix="/bo/ao", tags=["orchestrator"])

NOT_HERE = InvalidRequest(
    "That is done on the machine of the registry.", "operation: allowed there: ctxr backup, ctxr migrate"
)

Id = Annotated[Word, Path(description="the execution's id", examples=[EXECUTION_ID])]


@router.get("/executions", response_model=ItemPage[ExecutionItem])
async def show_executions(client: Asking, query: Annotated[ExecutionsQuery, Query()]) -> dict[str, Any]:
    """List runs by their start; `status=running`: those of this server that have not ended."""
    if query.status == "running":
        runs = client.running()
        return {"items": runs, "total": len(runs), "next_cursor": None}
    return await client.view(views.list_executions, query.filters, query.page)


@router.get("/executions/{execution_id}", response_model=ExecutionDetail, dependencies=[without_parameters])
async def show_execution(client: Asking, execution_id: Id) -> dict[str, Any]:
    """Return one execution with its request, its answer, and every step with its reasons."""
    return await client.view(views.get_execution, execution_id)


@router.post("/executions/{execution_id}/rating", response_model=Rating, dependencies=[without_parameters])
async def rate(client: Asking, execution_id: Id, said: Rating) -> Rating:
    """Rate what a run delivered; a later rating replaces an earlier one."""
    await client.change(views.rate_execution, execution_id, useful=said.useful)
    return said


@router.get("/statistics", response_model=Statistics, response_model_exclude_unset=True)
async def show_statistics(client: Asking, query: Annotated[StatisticsQuery, Query()]) -> dict[str, Any]:
    """Return counts, success rate and percentiles: in total, per operation, by error code, over time."""
    bucket_s = query.bucket_s(now())
    figures = await client.view(views.execution_statistics, query.from_, query.to, bucket_s)
    return {"bucket_s": bucket_s, **figures}


@router.get("/graph", response_model=Graph, dependencies=[without_parameters])
async def show_graph() -> dict[str, Any]:
    """Return the graph: nodes, edges, and each operation's path."""
    return describe_graph()


@router.post("/run", response_model=RunAnswer, dependencies=[without_parameters], openapi_extra=shaped(RunBody))
async def run_operation(
    client: Asking, given: Annotated[dict[str, Any], Body(openapi_examples=RUN_EXAMPLES)]
) -> dict[str, Any]:
    """Run an operation and wait for its answer; each run is an execution."""
    operation = operations().get(str(given.get("operation")))
    if operation and operation.is_local:
        return succeeded(await client.answer(Refusal(operation.name, API, NOT_HERE)))
    return succeeded(await client.answer(given))
