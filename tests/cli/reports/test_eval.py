"""Test `ctxr eval`: the registry's test cases are asked again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from registry.registry import Registry
from registry.storage.records.executions import keep_expectation
from tests.cli.conftest import FIBONACCI, Ctxr


def keep(file: Path, request: dict[str, Any], message_id: str) -> None:
    """Store a test case as the backoffice does."""
    registry = Registry(f"sqlite:///{file}")
    asyncio.run(registry.write(lambda tx: keep_expectation(tx, request, message_id)))
    registry.close()


def test_stored_test_cases_are_asked_again(ctxr: Ctxr, empty_home: Path) -> None:
    assert "No test cases yet" in ctxr("eval").output
    stored = json.loads(ctxr("log", "-", "--json", given=FIBONACCI).output)["stored_ids"]
    file = empty_home / "ctxr" / "registry.db"
    keep(file, {"operation": "extract", "query": {"text": "피보나치"}}, stored[0])
    keep(file, {"operation": "search_sessions", "query": {"text": "메모이제이션"}}, stored[1])
    keep(file, {"operation": "search", "query": {"text": "quokka"}}, stored[1])

    shown = ctxr("eval").output
    assert "2 of 3 found (67%), 2 first" in shown
    assert "search: quokka" in shown

    figures = json.loads(ctxr("eval", "--json").output)
    assert (figures["cases"], figures["found"]) == (3, 2)
    assert [one["place"] for one in figures["results"]] == [1, 1, None]
