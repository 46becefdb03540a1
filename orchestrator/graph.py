"""The wiring of the graph, and nothing else."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from orchestrator.nodes import NODES
from orchestrator.operations import PATHS
from orchestrator.state import GeneralState, Run

Graph = CompiledStateGraph[GeneralState, Run, GeneralState, GeneralState]


def build_graph() -> Graph:
    """One graph for every operation: from each node to the next one on the path that `plan` chose."""
    graph: StateGraph[GeneralState, Run, GeneralState, GeneralState] = StateGraph(GeneralState, context_schema=Run)
    graph.add_edge(START, "plan")
    for name, node in NODES.items():
        graph.add_node(name, node)
        graph.add_conditional_edges(name, _step_after(name), [*_successors(name), END])
    return graph.compile()


def _step_after(name: str) -> Any:
    def next_node(state: GeneralState) -> str:
        path = state["path"]
        place = path.index(name) + 1
        return path[place] if place < len(path) else END

    return next_node


def _successors(name: str) -> list[str]:
    return sorted({after for path in PATHS.values() for here, after in edges_of(path) if here == name})


def edges_of(path: tuple[str, ...]) -> list[tuple[str, str]]:
    """The steps of a path, from node to node."""
    return list(pairwise(path))


def describe_graph() -> dict[str, Any]:
    """The graph for drawing: nodes, edges, and the path of each operation (contract 5, /bo/ao/graph)."""
    edges = sorted({edge for path in PATHS.values() for edge in edges_of(path)})
    return {
        "nodes": list(NODES),
        "edges": [{"from": here, "to": after} for here, after in edges],
        "paths": {name: list(path) for name, path in PATHS.items()},
    }
