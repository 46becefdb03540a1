"""Test the log: one line for each run, and never a message's text."""

from __future__ import annotations

import io
import json
import logging
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent

from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from registry.log import FORMATS, RUNS, LogFormat, set_up_logging

pytestmark = pytest.mark.anyio

SAID = "the heron keeps its keys under the slate"
LOG = {"channel": "c", "messages": [{"role": "user", "text": SAID}, {"role": "assistant", "text": "noted"}]}
ASKED = {"channel": "c", "query": {"text": "where does the heron keep its keys"}}


@pytest.fixture
def logged() -> Iterator[dict[LogFormat, io.StringIO]]:
    """Collect everything logged, in each format, with the most details that a format shows."""
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


async def test_a_run_is_a_line_of_json_with_its_execution_id(
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


async def test_no_log_line_holds_message_text_after_any_error(
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


def test_the_log_is_on_stderr_and_shows_only_warnings_unless_it_is_json(
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
