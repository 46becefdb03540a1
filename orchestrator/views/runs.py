"""Read executions as lists, figures and test cases."""

from datetime import datetime, timedelta
from typing import Any

from orchestrator.recording.evaluation import SOURCE as EVALUATING
from orchestrator.recording.evaluation import repeatable
from orchestrator.views.explained_run import case_file, expected_in, run_view
from registry.domain import now
from registry.monitor import statistics
from registry.monitor.statistics import execution_statistics as execution_statistics
from registry.storage.conversations.facets import known_names
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.exchange.change_feed import newest_place
from registry.storage.paging import Page
from registry.storage.records import executions, judgements
from registry.storage.records.executions import ExecutionFilter
from registry.storage.records.executions import get_execution as get_execution
from registry.storage.records.judgements import drop_expectation as drop_expectation
from registry.storage.records.judgements import list_expectations as list_expectations
from registry.storage.records.judgements import rate_execution as rate_execution

NO_TIMES = {"p50_ms": None, "p95_ms": None}


def list_executions(tx: ReadTransaction, filters: dict[str, Any], page: dict[str, Any]) -> dict[str, Any]:
    return executions.list_executions(tx, ExecutionFilter(**filters), Page(**page))


def runs_page(tx: ReadTransaction, filters: dict[str, Any], page: dict[str, Any]) -> dict[str, Any]:
    place = str(newest_place(tx))
    found = list_executions(tx, filters, page)
    return {"place": place, "found": found, "sources": known_names(tx).sources}


def run_page(tx: ReadTransaction, execution_id: str, expected: str | None) -> dict[str, Any]:
    """Return a run, what became of the expected message, and whether the run was rated useful."""
    view = run_view(tx, execution_id)
    return {
        "view": view,
        "case": case_file(tx, view),
        "expected": expected_in(tx, view, expected) if expected else None,
        "useful": judgements.rating_of(tx, execution_id),
    }


def unsure(tx: ReadTransaction, without_source: str, limit: int) -> list[dict[str, Any]]:
    """Return the newest guesses and misses of the last 30 days that nobody has rated, without those of test cases."""
    return judgements.unsure_executions(tx, now() - timedelta(days=30), (without_source, EVALUATING), limit)


def keep_case(tx: WriteTransaction, run: dict[str, Any], message_id: str) -> None:
    judgements.keep_expectation(tx, repeatable(run), message_id)


def statistics_page(
    tx: ReadTransaction,
    from_: datetime | None,
    to: datetime | None,
    bucket_s: int,
    without_source: str | None,
) -> dict[str, Any]:
    """Return the figures of a period, over time and by client."""
    wanted = ExecutionFilter(from_=from_, to=to, without_source=without_source)
    figures = execution_statistics(tx, from_=from_, to=to, bucket_s=bucket_s, without_source=without_source)
    is_countable = statistics.is_countable(tx, wanted)
    times = statistics.latencies(tx, wanted, bucket_s) if is_countable else {}
    series = [{**NO_TIMES, **point, **times.get(point["at"], {})} for point in figures["series"]]
    return {
        "figures": {**figures, "series": series},
        "clients": statistics.client_figures(tx, wanted, 10) if is_countable else [],
    }
