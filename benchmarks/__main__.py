"""Compare the product with a bare MCP server: python -m benchmarks [--only PART] [--json]."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.costs import calls, in_flight, load, peers, startup, sync, windows
from benchmarks.costs.breakdown import DIVISION_HEADS
from benchmarks.setup import servers
from benchmarks.setup.figures import COMPARISON_HEADS, table

Report = tuple[str, dict[str, Any]]


def report_calls(_: argparse.Namespace) -> Report:
    comparisons, divisions = asyncio.run(calls.measure())
    text = table(COMPARISON_HEADS, [comparison.row() for comparison in comparisons])
    text += "\n\n" + table(DIVISION_HEADS, [division.row() for division in divisions])
    found = [comparison.as_json() for comparison in comparisons]
    return text, {"calls": found, "divisions": [asdict(division) for division in divisions]}


def report_startup(_: argparse.Namespace) -> Report:
    comparison = startup.measure()
    return table(COMPARISON_HEADS, [comparison.row()]), {"startup": comparison.as_json()}


def report_windows(_: argparse.Namespace) -> Report:
    figures = windows.measure()
    return table(windows.HEADS, [figure.row() for figure in figures]), {
        "windows": [asdict(figure) for figure in figures]
    }


def report_in_flight(_: argparse.Namespace) -> Report:
    outcomes = in_flight.measure()
    return table(in_flight.HEADS, [outcome.row() for outcome in outcomes]), {
        "in_flight": [outcome.as_json() for outcome in outcomes]
    }


def report_load(options: argparse.Namespace) -> Report:
    outcomes = [asyncio.run(load.eight_servers(options.seconds)), asyncio.run(load.killed_server())]
    return table(load.OUTCOME_HEADS, [outcome.row() for outcome in outcomes]), {
        "load": [outcome.as_json() for outcome in outcomes]
    }


def report_sync(_: argparse.Namespace) -> Report:
    passes, delays = sync.measure(), asyncio.run(sync.measure_delays())
    text = table(sync.HEADS, [one.row() for one in passes])
    text += f"\n\nconversation_log while a server imports them, p50 / p95 in ms: {delays}"
    return text, {"sync": [one.as_json() for one in passes], "meanwhile": asdict(delays)}


def report_peers(options: argparse.Namespace) -> Report:
    found = peers.measure(options.peers)
    columns = zip(peers.LINES, *(one.cells() for one in found.values()), strict=True)
    return table(("", *found), list(columns)), {"peers": {name: one.as_json() for name, one in found.items()}}


REPORTS: dict[str, Callable[[argparse.Namespace], Report]] = {
    "startup": report_startup,
    "windows": report_windows,
    "in_flight": report_in_flight,
    "calls": report_calls,
    "load": report_load,
    "sync": report_sync,
    "peers": report_peers,
}


def main() -> None:
    """Run the chosen parts (all by default) and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=REPORTS, help="one part; may be repeated")
    parser.add_argument("--seconds", type=float, default=load.SECONDS, help="duration of the load on eight servers")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="environment with fast-resume and agentsview")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    servers.compile_program()
    found: dict[str, Any] = {}
    for part in options.only or REPORTS:
        text, figures = REPORTS[part](options)
        found |= figures
        if not options.json:
            print(text, end="\n\n", flush=True)
    if options.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
