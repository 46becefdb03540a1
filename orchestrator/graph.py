"""The graph: its edges are decided by what the state holds, and its picture is drawn from what was compiled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from dataclasses import replace
from functools import cache
from typing import Any, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, RetryPolicy

from orchestrator.calls import TOLD
from orchestrator.nodes import KEEP, NODES, PATHS, QUERY, WRITE, Work
from orchestrator.requests import Request
from orchestrator.state import OUTSIDE_ATTEMPTS, Answered, Run, State
from registry.errors import NotFound

Graph = CompiledStateGraph[State, Run, Request, Answered]

ANSWERED = list(Answered.__annotations__)
OUTSIDE = RetryPolicy(max_attempts=OUTSIDE_ATTEMPTS, initial_interval=0.5)
"""What is outside may be away for a moment; what was read and made for it is not read and made again."""


def after_plan(state: State) -> str:
    """What only stores needs no reading."""
    return "cr_query" if state["query"].operation in QUERY else "cr_write"


def after_query(state: State) -> str:
    """What was found is narrowed down, or goes into a shorter form as a whole.

    Here, and after `filter`, is the place to ask again with fewer words where nothing was found: an edge back.
    """
    if "error" in state:
        return END
    return "filter" if state["query"].operation in KEEP else "transform"


def after_filter(state: State) -> str:
    """What is kept is made shorter where that is asked for, and stored where a record of it is kept."""
    if "error" in state:
        return END
    if state["query"].is_shortened:
        return "transform"
    return "cr_write" if state["query"].operation in WRITE else END


def after_transform(state: State) -> str:
    """A text for others goes outside before it is stored."""
    return "external_action" if "transformed_data" in state else "cr_write"


EDGES: dict[str, tuple[Callable[[State], str], tuple[str, ...]]] = {
    "plan": (after_plan, ("cr_query", "cr_write")),
    "cr_query": (after_query, ("filter", "transform", END)),
    "filter": (after_filter, ("transform", "cr_write", END)),
    "transform": (after_transform, ("external_action", "cr_write")),
    "external_action": (lambda _: "cr_write", ("cr_write",)),
    "cr_write": (lambda _: END, (END,)),
}
"""Of each node, who decides where to go from it, and where that may be."""


@cache
def build_graph() -> Graph:
    """One graph for every operation; it holds nothing of a run, so a process needs one."""
    graph: StateGraph[State, Run, State, Answered] = StateGraph(State, Run, output_schema=Answered)
    graph.add_edge(START, "plan")
    for name, work in NODES.items():
        decide, targets = EDGES[name]
        retry = OUTSIDE if name == "external_action" else None
        graph.add_node(name, _step(name, work, decide), destinations=targets, retry_policy=retry)
    return _begun_by_the_request(graph.compile())


def _begun_by_the_request(compiled: CompiledStateGraph[State, Run, State, Answered]) -> Graph:
    """The request itself wakes `plan`: the way through `START` is a step of its own, a fifth of what a graph costs."""
    compiled.input_channels = "query"
    compiled.nodes["plan"].triggers = ["query"]
    return cast(Graph, compiled.validate())


def _step(name: str, work: Work, decide: Callable[[State], str]) -> Callable[..., Awaitable[Command[str]]]:
    """A node that is recorded, and that says where to go: measured, half the cost of an edge that decides by itself."""

    async def step(state: State, runtime: Runtime[Run]) -> Command[str]:
        run = _telling(runtime) if TOLD.get() else runtime.context
        try:
            with run.recorder.step(name):
                change = await work(state, run)
                run.recorder.note_change(change)
        except NotFound as nothing:
            change = {"error": nothing}
        return Command(update=change, goto=decide(cast(State, {**state, **change})))

    return step


def _telling(runtime: Runtime[Run]) -> Run:
    here = copy_context()  # in a worker's thread the writer would find no stream
    return replace(runtime.context, tell=lambda part: here.run(runtime.stream_writer, part))


async def run_to_the_end(graph: Graph, request: Request, run: Run) -> Answered:
    """What leaves the graph at the end, and nothing of what it passes on its way."""
    ended: Answered = {}
    async for state in graph.astream(request, context=run, stream_mode="values", output_keys=ANSWERED):
        ended = cast(Answered, state)
    return ended


def describe_graph() -> dict[str, Any]:
    """The compiled graph for drawing: nodes, edges, and the path of each operation."""
    drawn = build_graph().get_graph().edges
    edges = sorted((edge.source, edge.target) for edge in drawn if {edge.source, edge.target} <= NODES.keys())
    return {
        "nodes": list(NODES),
        "edges": [{"from": here, "to": after} for here, after in edges],
        "paths": PATHS,
    }
