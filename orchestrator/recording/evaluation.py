"""Evaluate searches: run the saved test cases again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator.service import Orchestrator
from registry.access import Access
from registry.domain import new_id, now
from registry.storage.records.executions import list_expectations
from registry.storage.records.extract_results import EVALUATION, save_result

SOURCE = "eval"
SEARCH_OPERATIONS = ("extract", "search", "search_sessions")  # operations that search by words


async def evaluate(
    orchestrator: Orchestrator, client: str | None = None, access: Access | None = None
) -> list[dict[str, Any]]:
    """Run the test cases that a token may see, one after the other, and store the hit rates.

    Return the cases with `place`: the rank of the expected item in its answer (1 is first); None if it was not found.
    """
    cases = await orchestrator.registry.seen_by(access).read(list_expectations)
    outcomes = [{**case, "place": await _find_rank(orchestrator, case, client, access)} for case in cases]
    if outcomes and not orchestrator.registry.is_read_only and not (access and access.is_restricted):
        about: dict[str, Any] = {"record_type": EVALUATION, "channel": "", "result_type": "figures"}  # for a chart
        about |= {"items": (), "metadata": _rates(outcomes), "timestamp": now()}
        await orchestrator.registry.write(lambda tx: save_result(tx, new_id("eval"), **about))
    return outcomes


async def _find_rank(
    orchestrator: Orchestrator, case: Mapping[str, Any], client: str | None, access: Access | None
) -> int | None:
    answer = await orchestrator.run({**case["request"], "source": SOURCE}, client, access=access)
    if "sessions" in answer:
        return _rank_in((session["channel"] for session in answer["sessions"]), case["channel"])
    return _rank_in((message["id"] for message in answer.get("messages", ())), case["message_id"])


def _rank_in(found: Iterable[str], expected: str) -> int | None:
    return next((rank for rank, one in enumerate(found, 1) if one == expected), None)


def hit_rates(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many cases were found, and how many at rank 1: in total and by operation."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for one in outcomes:
        groups.setdefault(one["request"]["operation"], []).append(one)
    return {**_rates(outcomes), "operations": {name: _rates(groups[name]) for name in sorted(groups)}}


def _rates(outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = [one["place"] for one in outcomes if one["place"]]
    return {
        "cases": len(outcomes),
        "found": len(found),
        "first": found.count(1),
        "hit_rate": len(found) / len(outcomes) if outcomes else None,
    }


def repeatable_request(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded run's request without its cursor, to run it again."""
    request = run["request"]
    query = {name: value for name, value in (request.get("query") or {}).items() if name != "cursor"}
    fields = {"operation": run["operation"], "channel": request.get("channel"), "query": query}
    return {name: value for name, value in fields.items() if value is not None}
