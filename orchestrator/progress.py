"""How far a run is, for who asked to be told: the graph's own stream, as figures and words."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, cast

from orchestrator.calls import Tell
from orchestrator.graph import ANSWERED, Graph
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
STEP = 0.01
"""Of a node's work, in parts: what is less news than this is not told."""


async def run_telling(graph: Graph, request: Request, run: Run, tell: Tell) -> Answered:
    """What `run_to_the_end` gives, telling each node that begins, and the parts that it says are done."""
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
