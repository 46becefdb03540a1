"""What is seen from outside: traces that join a tool's call, its nodes and its SQL, and logs. Never a text."""

from __future__ import annotations

import io
import json
import logging
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from mcp_server.server import create_server
from orchestrator.lazy import LazyOrchestrator
from orchestrator.outside.collector import TextlessExporter
from orchestrator.service import Orchestrator
from registry.errors import StorageError
from registry.log import FORMATS, RUNS, LogFormat, set_up_logging
from registry.registry import Registry
from registry.settings import Settings
from registry.storage.database import ReadTransaction
from registry.tracing import trace_with

pytestmark = pytest.mark.anyio

SAID = "the heron keeps its keys under the slate"
LOG = {"channel": "c", "messages": [{"role": "user", "text": SAID}, {"role": "assistant", "text": "noted"}]}
ASKED = {"channel": "c", "query": {"text": "where does the heron keep its keys"}}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The SDK's own collector in memory, of our spans and of the MCP SDK's."""
    collected, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(collected))
    trace_with(provider)
    monkeypatch.setattr("mcp.shared._otel._tracer", provider.get_tracer("mcp-python-sdk"))
    yield collected
    trace_with(None)


@pytest.fixture
async def traced(spans: InMemorySpanExporter, database_url: str) -> AsyncIterator[Orchestrator]:
    """An orchestrator whose database was opened while spans are made."""
    registry = Registry(database_url)
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
def logged() -> Iterator[dict[LogFormat, io.StringIO]]:
    """All that is logged meanwhile, by whomever, in each format, with the most that a format shows."""
    root, written = logging.getLogger(), dict[LogFormat, io.StringIO]()
    level, handlers = root.level, list[logging.Handler]()
    for name, formatter in FORMATS.items():
        handlers.append(logging.StreamHandler(written.setdefault(name, io.StringIO())))
        handlers[-1].setFormatter(formatter)
        root.addHandler(handlers[-1])
    logging.getLogger(RUNS).setLevel(logging.INFO)
    yield written
    logging.getLogger(RUNS).setLevel(logging.NOTSET)
    root.setLevel(level)
    for handler in handlers:
        root.removeHandler(handler)


async def call(orchestrator: Orchestrator, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    async with Client(create_server(orchestrator.run)) as client:
        (content,) = (await client.call_tool(tool, arguments)).content
    assert isinstance(content, TextContent)
    answer: dict[str, Any] = json.loads(content.text)
    return answer


def named(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    return next(span for span in spans.get_finished_spans() if span.name == name)


def up(spans: InMemorySpanExporter, span: ReadableSpan) -> list[str]:
    """A span's name and those of the spans it is in, the innermost first."""
    by_id = {one.context.span_id: one for one in spans.get_finished_spans() if one.context}
    names = [span.name]
    while span.parent and span.parent.span_id in by_id:
        span = by_id[span.parent.span_id]
        names.append(span.name)
    return names


async def test_a_tools_call_its_nodes_and_its_sql_are_one_trace(
    traced: Orchestrator, spans: InMemorySpanExporter
) -> None:
    await call(traced, "conversation_log", LOG)
    spans.clear()
    assert "heron" in str(await call(traced, "extract", ASKED))
    sql = [span for span in spans.get_finished_spans() if "db.system.name" in (span.attributes or {})]
    reading = [span for span in sql if up(spans, span)[1:4:2] == ["cr_query", "tools/call extract"]]
    assert {"SELECT"} <= {(span.attributes or {})["db.operation.name"] for span in reading}
    assert all(span.kind == SpanKind.CLIENT for span in sql)
    assert up(spans, reading[0])[1:4] == ["cr_query", "invoke_workflow extract", "tools/call extract"]
    run, called = named(spans, "invoke_workflow extract"), named(spans, "tools/call extract")
    assert run.attributes
    assert called.attributes
    assert run.attributes["gen_ai.operation.name"] == "invoke_workflow"
    assert (called.attributes["gen_ai.operation.name"], called.attributes["mcp.method.name"]) == (
        "execute_tool",
        "tools/call",
    )
    found = await traced.registry.read(
        lambda tx: tx.exec_driver_sql("SELECT id FROM execution WHERE operation = 'extract'").scalar_one()
    )
    assert run.attributes["ctxr.execution.id"] == found
    assert {"plan", "cr_query", "filter"} <= {span.name for span in spans.get_finished_spans()}


async def test_the_first_call_of_a_window_is_a_trace_without_what_it_started(
    spans: InMemorySpanExporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[bool]()
    monkeypatch.setattr("orchestrator.outside.collector.start_tracing", lambda: started.append(True))
    monkeypatch.setenv("CTXR_HOME", str(tmp_path))
    window = LazyOrchestrator(Settings(traces=True))
    assert started  # else the SDK's own span of the first call would be missing
    async with Client(create_server(window.run)) as client:
        await client.call_tool("conversation_log", LOG)
    await window.close()
    called = named(spans, "tools/call conversation_log")
    assert called.context
    parents = [(span.name, span.parent) for span in spans.get_finished_spans()]
    below = {name for name, parent in parents if parent and parent.span_id == called.context.span_id}
    assert below == {"invoke_workflow conversation_log"}


async def test_a_span_says_how_it_failed_and_nothing_that_was_said(
    traced: Orchestrator, spans: InMemorySpanExporter
) -> None:
    await call(traced, "conversation_log", LOG)
    await call(traced, "extract", ASKED)
    await call(traced, "extract", {"channel": "c", "query": {"text": SAID, "limit": SAID}})
    await call(traced, "extract", {"channel": "nowhere", "query": {"text": SAID}})

    def broken(tx: ReadTransaction) -> None:
        tx.exec_driver_sql("SELECT nothing FROM herons WHERE said = 'the heron keeps its keys'")

    with pytest.raises(StorageError):
        await traced.registry.read(broken)
    failed = {span.name: span for span in spans.get_finished_spans() if span.status.status_code == StatusCode.ERROR}
    assert (failed["invoke_workflow extract"].attributes or {})["error.type"] == "INVALID_REQUEST"
    assert "SELECT herons" in failed
    assert not [name for name, span in failed.items() if "NOT_FOUND" in str(span.attributes)]
    everything = "".join(span.to_json() for span in spans.get_finished_spans())
    assert "slate" not in everything
    assert "keys" not in everything
    assert "nowhere" not in everything


def test_what_others_spans_quote_does_not_go_out() -> None:
    """The frameworks note addresses, and what exceptions say."""
    collected, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(TextlessExporter(collected)))
    with provider.get_tracer("fastapi").start_as_current_span("GET /bo/search", record_exception=False) as span:
        span.set_attributes({"url.query": SAID, "url.path": f"/bo/channels/{SAID}", "http.route": "/bo/search"})
        span.record_exception(ValueError(SAID))
        span.set_status(StatusCode.ERROR, SAID)
    (out,) = collected.get_finished_spans()
    assert "heron" not in out.to_json()
    assert (out.attributes, out.status.status_code) == ({"http.route": "/bo/search"}, StatusCode.ERROR)


async def test_a_run_is_a_line_of_json_with_its_executions_id(
    orchestrator: Orchestrator, logged: dict[LogFormat, io.StringIO]
) -> None:
    await call(orchestrator, "conversation_log", LOG)
    await call(orchestrator, "extract", {"channel": "nowhere", "query": {"text": SAID}})
    stored, sought = map(json.loads, logged["json"].getvalue().splitlines())
    rows = await orchestrator.registry.read(lambda tx: tx.exec_driver_sql("SELECT operation, id FROM execution").all())
    assert dict([(stored["operation"], stored["execution"]), (sought["operation"], sought["execution"])]) == dict(rows)
    assert (stored["outcome"], stored["level"], stored["steps_ms"].keys()) == (
        "succeeded",
        "INFO",
        {"plan", "cr_write"},
    )
    assert (sought["outcome"], sought["message"]) == ("NOT_FOUND", "extract: NOT_FOUND")


async def test_no_log_holds_what_was_said_whatever_goes_wrong(
    orchestrator: Orchestrator, logged: dict[LogFormat, io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    await call(orchestrator, "conversation_log", LOG)
    await call(orchestrator, "extract", {"channel": "c", "query": {"text": SAID, "limit": SAID}})
    await call(orchestrator, "extract", {"channel": SAID, "query": {"text": SAID}})

    def quoting(*_: Any, **__: Any) -> None:
        try:
            raise sqlite3.IntegrityError(f"failing row contains ({SAID})")
        except sqlite3.IntegrityError as exc:
            raise ExceptionGroup(SAID, [ValueError(SAID), KeyError(SAID)]) from exc

    monkeypatch.setattr("registry.ingest.save.save_messages", quoting, raising=False)
    monkeypatch.setattr("orchestrator.service.Orchestrator._run", quoting)
    answer = await call(orchestrator, "conversation_log", LOG)
    assert answer["error"]["code"] == "INTERNAL_ERROR"
    for written in (one.getvalue() for one in logged.values()):
        assert "heron" not in written
        assert "sqlite3.IntegrityError" in written
        assert "builtins.KeyError" in written
        assert "in quoting" in written
    assert answer["error"]["details"].rpartition(" ")[2] in logged["json"].getvalue()


def test_what_is_logged_goes_to_stderr_alone_and_warnings_only_unless_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", root.handlers[:])
    level = root.level
    try:
        for log_format in FORMATS:
            set_up_logging(log_format)
            logging.getLogger(RUNS).info("a run")
            logging.getLogger("any").warning("a warning")
    finally:
        root.setLevel(level)
        logging.getLogger(RUNS).setLevel(logging.NOTSET)
    out, err = capsys.readouterr()
    text, run, warning = err.splitlines()
    assert (out, text.endswith("WARNING any: a warning")) == ("", True)
    assert [json.loads(line)["message"] for line in (run, warning)] == ["a run", "a warning"]


def test_without_traces_nothing_that_sends_them_is_loaded() -> None:
    ours = "('orchestrator.outside.collector', 'opentelemetry.exporter')"  # langsmith loads the SDK where it is there
    code = (
        "import sys, orchestrator.opening, orchestrator.service; "
        f"print([name for name in sys.modules if name.startswith({ours})])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
