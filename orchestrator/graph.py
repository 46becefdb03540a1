"""Build and run the graph. Each operation's file defines the work that a node does for it.

The state decides the edges. `describe_graph` reads them from the compiled graph.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, RetryPolicy

from orchestrator.answer.finding.elsewhere import count_elsewhere
from orchestrator.answer.finding.lookup import with_known_names
from orchestrator.operations import operations
from orchestrator.recording.recorder import result_summary
from orchestrator.requests.shapes import Request
from orchestrator.state import OUTSIDE_ATTEMPTS, AttemptOutcome, GeneralState, Run, Steps
from registry.access import Level
from registry.errors import NotFound, OperationTimeout, StorageError
from registry.storage.database import WriteTransaction
from registry.storage.records.executions import save_execution
from registry.storage.safety.visibility import check_writable_name, is_called, refuse_shared

OUTSIDE_RETRY = RetryPolicy(max_attempts=OUTSIDE_ATTEMPTS, initial_interval=0.5)
"""Retry only `external_action`; the earlier nodes do not run again."""

Graph = CompiledStateGraph[GeneralState, Run]


class Node(NamedTuple):
    """A node of the graph."""

    work: Callable[[GeneralState, Run], Awaitable[GeneralState]]  # return the change of the state
    after: Callable[[GeneralState], str]  # choose the next node, one of `targets`
    targets: tuple[str, ...]


def after_plan(state: GeneralState) -> str:
    """Skip cr_query for operations that only write."""
    return "cr_query" if steps_of(state["query"].operation).query else "cr_write"


def after_query(state: GeneralState) -> str:
    if state.get("error"):
        return END
    return "filter" if steps_of(state["query"].operation).answer else "transform"


def after_filter(state: GeneralState) -> str:
    """Relax the request if the answer is too weak; else shorten the answer if requested, and store its record."""
    steps = steps_of(state["query"].operation)
    if steps.relax and "earlier" not in state and steps.relax(state["data"]):
        return "relax"
    if state.get("error"):
        return END
    if state["query"].is_shortened:
        return "transform"
    return "cr_write" if steps.write else END


def after_transform(state: GeneralState) -> str:
    return "external_action" if "transformed_data" in state else "cr_write"


@cache
def build_graph() -> Graph:
    """Build the graph, the same for every operation; it has no state of a run."""
    graph: StateGraph[GeneralState, Run] = StateGraph(GeneralState, Run)
    graph.add_edge(START, "plan")
    for name, node in NODES.items():
        retry = OUTSIDE_RETRY if name == "external_action" else None
        graph.add_node(name, _step(name, node), destinations=node.targets, retry_policy=retry)
    return graph.compile()


def _step(name: str, node: Node) -> Callable[..., Awaitable[Command[str]]]:
    """Wrap a node so that it is recorded and returns the next node: half the measured cost of a conditional edge."""

    async def step(state: GeneralState, runtime: Runtime[Run]) -> Command[str]:
        run = runtime.context
        try:
            with run.recorder.step(name):
                change = await node.work(state, run)
                run.recorder.note_change(change)
        except NotFound as not_found:
            change = {"error": not_found}
        return Command(update=change, goto=node.after(cast(GeneralState, {**state, **change})))

    return step


def describe_graph() -> dict[str, Any]:
    """Return the compiled graph for drawing: nodes, edges, and the path of each operation, also shortened."""
    drawn = build_graph().get_graph().edges
    edges = sorted((edge.source, edge.target) for edge in drawn if {edge.source, edge.target} <= NODES.keys())
    variants = [(operation, False) for operation in operations()]
    variants += [(name, True) for name in operations() if steps_of(name).answer and steps_of(name).shorten]
    return {
        "nodes": list(NODES),
        "edges": [{"from": source, "to": target} for source, target in edges],
        "paths": {_name(*variant): _path(*variant) for variant in variants},
    }


def steps_of(operation: str) -> Steps[Any, Any]:
    return operations()[operation].steps


UNFINISHED = OperationTimeout("Started, but not finished.", "It is still running, or its process was ended: ask again")
T = TypeVar("T")


def _required(step: T | None) -> T:
    assert step is not None  # noqa: S101, the edges visit a node only if the operation has work for it
    return step


async def plan(state: GeneralState, run: Run) -> GeneralState:
    """Record the path, and a run with an external action; sync the clients' stores before reading."""
    request: Request = state["query"]
    run.recorder.explain(
        path=_path(request.operation, request.is_shortened),
        why=f"the path of {_name(request.operation, request.is_shortened)}",
    )
    if steps_of(request.operation).publish and not run.registry.is_read_only:  # a killed run leaves a record
        unfinished = run.recorder.finished(None, UNFINISHED.as_dict())
        await run.registry.write(lambda tx: save_execution(tx, unfinished))
    if run.before_reading and (operations()[request.operation].syncs_first or request.is_about_current_chat):
        syncing = await run.before_reading(request.is_about_current_chat)
        if syncing:
            run.recorder.explain(syncing=syncing)
            return {"syncing": syncing}
    return {}


async def cr_query(state: GeneralState, run: Run) -> GeneralState:
    """Embed the request, and read from the registry."""
    request: Request = state["query"]
    subject_of, query_vector = steps_of(request.operation).subject, None
    if run.meaning and subject_of and (subject := subject_of(request)):
        query_vector = await run.meaning.embed_query(subject, getattr(getattr(request, "query", None), "also", ()))
    return {"data": await _read(replace(run, query_vector=query_vector, attempt=state.get("attempt", "")), request)}


async def _read(run: Run, request: Request) -> Any:
    query = _required(steps_of(request.operation).query)
    return await run.registry.read(lambda tx: query(tx, run, with_known_names(tx, request)))


async def filter_(state: GeneralState, run: Run) -> GeneralState:
    """Keep the results that answer the request. If they are weak, count matches in other projects and times."""
    steps, request = steps_of(state["query"].operation), state["query"]
    try:
        outcome = AttemptOutcome(state["data"], await _required(steps.answer)(run, request, state["data"]), None)
    except NotFound as not_found:
        outcome = AttemptOutcome(state["data"], {}, not_found)
    if "earlier" in state:
        outcome = _required(steps.choose)(run, request, state["earlier"], outcome)
    data, result, error = outcome
    if error:
        return {"data": data, "result": {}, "error": error}
    is_weak = "sessions" in result and (not result["pagination"]["total"] or result.get("confidence") == "low")
    if is_weak and (others := await count_elsewhere(run, state["query"], result, _search_again)):
        result["elsewhere"] = others | result.get("elsewhere", {})
    return {"data": data, "result": result, "error": None}


async def relax(state: GeneralState, run: Run) -> GeneralState:
    """Relax the request: drop a time or project that it mentions in passing."""
    attempt = _required(steps_of(state["query"].operation).relax)(state["data"])
    run.recorder.explain(asks_again=attempt)
    earlier = AttemptOutcome(state["data"], state["result"], state.get("error"))
    return {"attempt": attempt, "earlier": earlier, "error": None}


async def _search_again(run: Run, request: Request) -> dict[str, Any]:
    return await _required(steps_of(request.operation).answer)(run, request, await _read(run, request))


async def transform(state: GeneralState, run: Run) -> GeneralState:
    return await _required(steps_of(state["query"].operation).shorten)(run, state["query"], state)


async def external_action(state: GeneralState, run: Run) -> GeneralState:
    return await _required(steps_of(state["query"].operation).publish)(run, state["query"], state)


async def cr_write(state: GeneralState, run: Run) -> GeneralState:
    """Store the result, and the record of this execution, in one transaction."""
    steps = steps_of(state["query"].operation)
    write = _required(steps.write)

    def work(tx: WriteTransaction, run: Run = run) -> dict[str, Any]:
        request: Request = state["query"]
        if request.channel and operations()[request.operation].names_channel:
            check_writable_name(tx, request.channel)
        try:
            result = write(tx, run, request, state)
        except NotFound:
            if request.channel:
                refuse_shared(tx, is_called(request.channel))
            raise
        if run.is_recorded:
            save_execution(tx, run.recorder.finished(result_summary(result)))
        return result

    try:
        if not run.is_recorded:
            return {"result": await run.registry.read(lambda tx: work(WriteTransaction(tx)))}
        result = await run.registry.write(work, of=state["query"].write_target)
        run.recorder.is_stored = True
    except StorageError:  # answer reads and dry runs even if nothing can be stored
        is_trial = getattr(getattr(state["query"], "query", None), "dry_run", False)
        if not (is_trial or operations()[state["query"].operation].level is Level.READ):
            raise
        result = await run.registry.read(lambda tx: work(WriteTransaction(tx), replace(run, is_recorded=False)))
    if steps.afterwards:
        await steps.afterwards(run, state["query"])
    return {"result": result}


NODES = {
    "plan": Node(plan, after_plan, ("cr_query", "cr_write")),
    "cr_query": Node(cr_query, after_query, ("filter", "transform", END)),
    "filter": Node(filter_, after_filter, ("relax", "transform", "cr_write", END)),
    "relax": Node(relax, lambda _: "cr_query", ("cr_query",)),
    "transform": Node(transform, after_transform, ("external_action", "cr_write")),
    "external_action": Node(external_action, lambda _: "cr_write", ("cr_write",)),
    "cr_write": Node(cr_write, lambda _: END, (END,)),
}


@cache
def _path(operation: str, is_shortened: bool) -> list[str]:
    """Return the nodes with work for an operation, which a successful request visits."""
    steps = steps_of(operation)
    work = {
        "plan": True,
        "cr_query": steps.query,
        "filter": steps.answer,
        "relax": False,
        "transform": steps.shorten and (is_shortened or not steps.answer),
        "external_action": steps.publish,
        "cr_write": steps.write,
    }
    return [node for node in NODES if work[node]]


def _name(operation: str, is_shortened: bool) -> str:
    return f"{operation}, shortened" if is_shortened else operation


async def run_graph(graph: Graph, request: Request, run: Run) -> GeneralState:
    """Run the graph and return its final output."""
    start = GeneralState(operation=request.operation, source=request.source, channel=request.channel, query=request)
    output = await graph.ainvoke(start, context=run, output_keys=["result", "error", "syncing"])
    return cast(GeneralState, output)
