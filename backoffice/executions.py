"""/bo/ao: runs of the orchestrator, statistics, and an endpoint to run an operation."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from backoffice.bodies import RunArguments
from backoffice.dependencies import API, CurrentClient, without_parameters
from backoffice.queries import ExecutionsQuery, StatisticsQuery, Word
from backoffice.schemas import EXECUTION_ID, ItemPage, Problem
from orchestrator.graph import describe_graph
from orchestrator.operations import operations
from orchestrator.requests.refusals import Refusal, succeeded
from orchestrator.views import runs as views
from registry.domain import now
from registry.errors import InvalidRequest


class ExecutionItem(BaseModel):
    """An execution of an operation."""

    id: str
    operation: str
    source: str
    client: str | None
    token: str | None = Field(description="name of the caller's token; null if none was needed")
    channel: str | None
    status: str
    error: Problem | None
    started_at: str
    finished_at: str | None
    duration_ms: float | None
    asked: str | None = Field(description="the question, or the requested name")
    delivered: int | None = Field(description="number of messages or sessions delivered, or of new messages stored")


class Rating(BaseModel):
    """The rating of a run: its answer was useful, or not."""

    model_config = ConfigDict(extra="forbid")

    useful: bool


class StepProblem(BaseModel):
    """The error of a node; for a bug, `code` is the exception's type."""

    code: str
    message: str
    details: str


class Step(BaseModel):
    """A step of one node of the graph."""

    node: str
    started_at: str
    duration_ms: float
    status: str
    error: StepProblem | None
    detail: dict[str, JsonValue] = Field(description="what it did and why")


class ExecutionDetail(ExecutionItem):
    """An execution with its request, result (summaries, no full texts) and steps."""

    request: dict[str, JsonValue]
    result: dict[str, JsonValue] | None
    steps: list[Step]


class Figures(BaseModel):
    """Counts of some runs, and their durations to two significant digits; null where there was no run."""

    count: int
    succeeded: int
    guessed: int = Field(description="answered with low confidence")
    not_found: int = Field(description="completed, but nothing was found")
    failed: int
    success_rate: float | None = Field(description="0 to 1: all but those that failed")
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


class OperationFigures(Figures):
    """Figures of one operation."""

    operation: str


class ClientFigures(Figures):
    """Figures of one client, all its versions together."""

    client: str


class Point(BaseModel):
    """A bucket of the time series; buckets without a run are left out."""

    at: str = Field(description="start of the bucket")
    count: int
    failed: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


class Statistics(BaseModel):
    """Runs in figures: in total, per operation, by error code, over time, by client."""

    bucket_s: int = Field(description="seconds of one point of the series")
    total: Figures
    operations: list[OperationFigures]
    errors: dict[str, int] = Field(description="number of runs by error code")
    series: list[Point]
    clients: list[ClientFigures] = Field(description="the ten with the most runs")


class RunAnswer(BaseModel):
    """The answer of an operation; its further fields depend on the operation."""

    model_config = ConfigDict(extra="allow")

    success: Literal[True]


router = APIRouter(prefix="/bo/ao", tags=["orchestrator"])

NOT_HERE = InvalidRequest(
    "This is only possible on the registry's own machine.", "operation: allowed there: ctxr backup, ctxr migrate"
)

Id = Annotated[Word, Path(description="the execution's id", examples=[EXECUTION_ID])]


@router.get("/executions", response_model=ItemPage[ExecutionItem])
async def show_executions(client: CurrentClient, query: Annotated[ExecutionsQuery, Query()]) -> dict[str, Any]:
    """List runs by their start; `status=running`: those of this server that have not ended."""
    if query.status == "running":
        runs = client.running()
        return {"items": runs, "total": len(runs), "next_cursor": None}
    return await client.view(views.list_executions, query.filters, query.page)


@router.get("/executions/{execution_id}", response_model=ExecutionDetail, dependencies=[without_parameters])
async def show_execution(client: CurrentClient, execution_id: Id) -> dict[str, Any]:
    """Return one execution with its request, its answer, and every step with its reasons."""
    return await client.view(views.get_execution, execution_id)


@router.post("/executions/{execution_id}/rating", response_model=Rating, dependencies=[without_parameters])
async def rate(client: CurrentClient, execution_id: Id, rating: Rating) -> Rating:
    """Rate what a run delivered; a later rating replaces an earlier one."""
    await client.change(views.rate_execution, execution_id, useful=rating.useful)
    return rating


@router.get("/statistics", response_model=Statistics, response_model_exclude_unset=True)
async def show_statistics(client: CurrentClient, query: Annotated[StatisticsQuery, Query()]) -> dict[str, Any]:
    """Return counts, success rate and percentiles: in total, per operation, by error code, over time, by client."""
    bucket_s = query.bucket_s(now())
    figures = await client.view(views.execution_statistics, from_=query.from_, to=query.to, bucket_s=bucket_s)
    return {"bucket_s": bucket_s, **figures}


@router.get("/graph", dependencies=[without_parameters])
async def show_graph() -> dict[str, Any]:
    """Return the graph for drawing: `nodes`, `edges` (`from`, `to`), and `paths`, each operation's nodes in order."""
    return describe_graph()


@router.post("/run", response_model=RunAnswer, dependencies=[without_parameters])
async def run_operation(client: CurrentClient, given: RunArguments) -> dict[str, Any]:
    """Run an operation and wait for its answer; each run is an execution."""
    operation = operations().get(str(given.get("operation")))
    refused = Refusal(operation.name, API, NOT_HERE) if operation and operation.is_local else None
    return {"success": True, **succeeded(await client.answer(refused or given))}
