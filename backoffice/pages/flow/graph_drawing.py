"""Lay out the graph: nodes in a row, edges that skip nodes as arcs above and below. Pure."""

from dataclasses import dataclass
from functools import cache

from orchestrator.graph import describe_graph

STEP, MARGIN, WIDTH = 160, 4, 132
UPPER, MIDDLE, LOWER = 56, 80, 104  # the edges of a node's box, and the line between
RISE, ROUND, TIP = 16, 16, 4
"""The distance between two arcs on a side, the radius of their corners, and the room for an arrow's tip."""

Edge = tuple[int, int]  # from one column to another


@dataclass(frozen=True, slots=True)
class Drawing:
    """The x of each node and the path of each edge."""

    columns: dict[str, int]
    edge_paths: dict[tuple[str, str], str]
    width: int
    top: int
    height: int


@cache
def graph_drawing() -> Drawing:
    """Return the drawing of the compiled graph: short skips above, long ones and edges back below."""
    graph = describe_graph()
    names = list(graph["nodes"])
    edges = sorted((names.index(edge["from"]), names.index(edge["to"])) for edge in graph["edges"])
    arcs = sorted((edge for edge in edges if edge[1] - edge[0] != 1), key=lambda edge: abs(edge[1] - edge[0]))
    above = [edge for edge in arcs if edge[1] - edge[0] == 2]
    below = [edge for edge in arcs if edge[1] - edge[0] != 2]
    edge_paths = {
        (start, end): f"M{_x(start) + WIDTH} {MIDDLE}H{_x(end) - TIP}" for start, end in edges if end - start == 1
    }
    edge_paths |= {edge: _arc(edge, UPPER, -1, index) for index, edge in enumerate(above, 1)}
    edge_paths |= {edge: _arc(edge, LOWER, 1, index) for index, edge in enumerate(below, 1)}
    top = UPPER - RISE * (len(above) + 1) - ROUND
    bottom = LOWER + RISE * (len(below) + 1) + ROUND
    return Drawing(
        {name: _x(index) for index, name in enumerate(names)},
        {(names[start], names[end]): edge_paths[start, end] for start, end in edges},
        _x(len(names) - 1) + WIDTH + MARGIN,
        top,
        bottom - top,
    )


def _x(column: int) -> int:
    return MARGIN + STEP * column


def _arc(edge: Edge, border: int, side: int, level: int) -> str:
    """Return an arc's path, far enough from the row that arcs do not cross."""
    start, end = (_x(at) + WIDTH // 2 + 6 * level for at in edge)
    direction = 1 if end > start else -1
    far = border + side * (ROUND + RISE * level)
    turn = far - side * ROUND
    return (
        f"M{start} {border}V{turn}Q{start} {far} {start + direction * ROUND} {far}"
        f"H{end - direction * ROUND}Q{end} {far} {end} {turn}V{border + side * TIP}"
    )
