"""What the graph costs: a small call through it, beside a bare loop over the same nodes and edges."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from langgraph.graph import END

from benchmarks.setup.figures import Comparison, Spread
from orchestrator.graph import NODES
from orchestrator.requests.shapes import Request
from orchestrator.service import Orchestrator
from orchestrator.state import GeneralState, Run
from registry.registry import Registry

AIM = 1.4
ROUNDS = 12
CALLS = 40
"""Of one kind in each round; the two kinds take turns, so that a busy machine slows both."""
HEADS = ("CPU, p50 / p95 in ms", "bare loop", "graph", "ratio", "aim", "")


class BareLoop:
    """Takes the graph's place: the same nodes, the same edges, recorded alike, and nothing else."""

    async def astream(self, request: Request, *, context: Run, **_: object) -> AsyncIterator[GeneralState]:
        """The state in which the operation ends."""
        state: GeneralState = {"query": request}
        name = "plan"
        while name != END:
            with context.recorder.step(name):
                change = await NODES[name].work(state, context)
                context.recorder.note_change(change)
            state = cast(GeneralState, {**state, **change})
            name = NODES[name].after(state)
        yield state


def measure() -> list[Comparison]:
    """A list of few sessions, and a turn that is logged again."""
    with TemporaryDirectory() as home:
        return asyncio.run(_measure(Path(home)))


async def _measure(home: Path) -> list[Comparison]:
    registry = Registry(f"sqlite:///{home / 'registry.db'}")
    through_graph, bare = Orchestrator(registry), Orchestrator(registry)
    bare._graph = cast(Any, BareLoop())
    told = [{"role": "user", "text": "run the tests"}, {"role": "assistant", "text": "all pass"}]
    logged = {"operation": "conversation_log", "channel": "c", "messages": told}
    try:
        for orchestrator in (through_graph, bare):
            await orchestrator.run(logged)
        gc.collect()
        gc.freeze()  # as a server does when it has warmed up
        return [
            await _compare(what, through_graph, bare, request)
            for what, request in (("list", {"operation": "list"}), ("conversation_log", logged))
        ]
    finally:
        registry.close()


async def _compare(what: str, through_graph: Orchestrator, bare: Orchestrator, request: dict[str, Any]) -> Comparison:
    seconds: dict[Orchestrator, list[float]] = {through_graph: [], bare: []}
    for orchestrator in (through_graph, bare) * ROUNDS:
        for _ in range(CALLS):
            began = time.process_time()
            answer = await orchestrator.run(request)
            seconds[orchestrator].append(time.process_time() - began)
            if not answer["success"]:
                raise RuntimeError(str(answer))
    return Comparison(what, Spread.of(seconds[bare]), Spread.of(seconds[through_graph]), AIM)
