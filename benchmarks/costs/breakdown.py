"""Divide the time of a call into protocol, graph and database, using the product's execution records."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

import httpx

from benchmarks.setup.figures import Spread

EXECUTIONS = "/bo/ao/executions"
DATABASE_NODES = ("cr_query", "cr_write")
SAMPLE = 50


@dataclass(frozen=True)
class Division:
    """The parts of a typical call, in milliseconds."""

    what: str
    protocol: float  # client, transport, JSON, argument check: everything outside the execution
    graph: float  # the execution without its database nodes
    database: float  # the nodes that read or write the registry

    def row(self) -> tuple[str, ...]:
        parts = (self.protocol, self.graph, self.database)
        return (self.what, *(f"{part:.1f} ({part / sum(parts):.0%})" for part in parts))


DIVISION_HEADS = ("where the time goes, ms", "protocol", "graph", "database")


def division_of(tool: str, transport: str, calls: Spread, backoffice: str) -> Division:
    """Divide the median call by the medians of the newest executions."""
    with httpx.Client(base_url=backoffice) as http:
        newest = http.get(EXECUTIONS, params={"operation": tool, "limit": SAMPLE}).raise_for_status().json()
        runs = [http.get(f"{EXECUTIONS}/{item['id']}").raise_for_status().json() for item in newest["items"]]
    whole = median(run["duration_ms"] for run in runs)
    database = median(database_ms(run) for run in runs)
    return Division(f"{tool} over {transport}", calls.p50 - whole, whole - database, database)


def database_ms(run: dict[str, Any]) -> float:
    """Return the milliseconds that an execution spent in nodes that read or write the registry."""
    return sum(float(step["duration_ms"]) for step in run["steps"] if step["node"] in DATABASE_NODES)
