"""Test the MCP server over HTTP with the official conformance suite."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.node import INSTALL_SECONDS, Node
from tests.conformance.servers import http_server

pytestmark = pytest.mark.timeout(INSTALL_SECONDS + 60)

HERE = Path(__file__).parent
# The scenarios that need no fixture on the server.
FIXTURE_FREE = (
    "server-stateless",
    "tools-list",
    "resources-list",
    "prompts-list",
    "sep-2164-resource-not-found",
    "caching",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
    "http-header-validation",
)
LATEST, HANDSHAKE_ERA = "2026-07-28", "2025-11-25"
NEEDS_A_FIXTURE = (
    "does not list the diagnostic tool",
    "resources/read was not exercised",
    "Server executed 'test_missing_capability'",  # one of the suite's tools; the product answers that it does not exist
)


@dataclass(frozen=True)
class Run:
    """A finished run of the suite, and the folder of its results."""

    process: subprocess.CompletedProcess[str]
    results: Path


@pytest.fixture(scope="module")
def runs(node: Node, product_url: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Run the suite against the product, and in both revisions against a server with the suite's fixtures.

    The runs are concurrent, because the suite mostly waits.
    """

    def run(url: str, revision: str, *options: str) -> Run:
        results = tmp_path_factory.mktemp("results")
        return Run(
            node.run(node.suite, "server", "--url", url, "--requirements", revision, "-o", str(results), *options),
            results,
        )

    fixtures = (sys.executable, "-m", "tests.conformance.fixture_server")
    with http_server(fixtures, tmp_path_factory.mktemp("fixtures")) as url, ThreadPoolExecutor() as pool:
        started = {"product": pool.submit(run, product_url, LATEST)}
        for revision in (LATEST, HANDSHAKE_ERA):
            expected = str(HERE / f"expected-{revision}.yml")
            started[revision] = pool.submit(run, url, revision, "--expected-failures", expected)
        return {name: future.result() for name, future in started.items()}


def test_the_product_passes_every_scenario_without_fixtures(runs: dict[str, Run], subtests: pytest.Subtests) -> None:
    for scenario in FIXTURE_FREE:
        with subtests.test(scenario):
            checks = checks_of(scenario, runs["product"].results)
            assert checks
            assert [check for check in checks if is_our_fault(check)] == []


@pytest.mark.parametrize("revision", [LATEST, HANDSHAKE_ERA])
def test_no_scored_scenario_fails_with_the_suites_fixtures(runs: dict[str, Run], revision: str) -> None:
    process = runs[revision].process
    assert process.returncode == 0, process.stdout.partition("=== SUMMARY ===")[2]


def checks_of(scenario: str, results: Path) -> list[dict[str, Any]]:
    """Return every check of one scenario."""
    files = results.glob(f"server-{scenario}-????-??-??T*/checks.json")
    return [check for file in files for check in json.loads(file.read_text(encoding="utf-8"))]


def is_our_fault(check: Mapping[str, Any]) -> bool:
    """Return whether a check failed for another reason than a missing fixture."""
    message = str(check.get("errorMessage", ""))
    return check["status"] == "FAILURE" and not any(words in message for words in NEEDS_A_FIXTURE)
