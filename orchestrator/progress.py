"""A run, from the graph's own stream: its outcome, and for who asked to be told how far it is, as figures and words."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, cast

from orchestrator.calls import Tell
from orchestrator.graph import Graph
from orchestrator.nodes import path_of
from orchestrator.requests import Request
from orchestrator.state import Answered, PartDone, Run

DOING = {
    "plan": "Looking for what is new",
    "cr_query": "Reading",
    "filter": "Choosing what answers",
    "transform": "Making it shorter",
    "external_action": "Handing it on",
    "cr_write": "Storing",
}
ANSWERED = list(Answered.__annotations__)
STEP = 0.01
"""Of a node's work, in parts: what is less news than this is not told."""


async def run_to_the_end(graph: Graph, request: Request, run: Run) -> Answered:
    """What leaves the graph at the end, and nothing of what it passes on its way."""
    ended: Answered = {}
    async for state in graph.astream(request, context=run, stream_mode="values", output_keys=ANSWERED):
        ended = cast(Answered, state)
    return ended


async def run_telling(graph: Graph, request: Request, run: Run, tell: Tell) -> Answered:
    """The same, telling each node that begins, and the parts that it says are done."""
    path = path_of(request)
    ended: Answered = {}
    at, told = 0, 0.0
    stream = graph.astream(request, context=run, stream_mode=["tasks", "custom", "values"], output_keys=ANSWERED)
    async with aclosing(cast(Any, stream)) as events:
        async for kind, event in events:
            if kind == "values":
                ended = event
            elif kind == "tasks" and "input" in event:
                at = path.index(event["name"])
                told = float(at)
                await tell(told, len(path), DOING[event["name"]])
            elif isinstance(event, PartDone) and at + event.share >= told + STEP:
                told = at + event.share
                await tell(told, len(path), event.words)
    return ended
