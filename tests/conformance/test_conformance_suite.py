"""Test the MCP server over HTTP with the official conformance suite."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
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


def test_the_product_passes_every_scenario_without_fixtures(
    product_url: str, node: Node, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    node.run(node.suite, "server", "--url", product_url, "--requirements", LATEST, "-o", str(tmp_path))
    for scenario in FIXTURE_FREE:
        with subtests.test(scenario):
            checks = checks_of(scenario, tmp_path)
            assert checks
            assert [check for check in checks if is_our_fault(check)] == []


@pytest.fixture(scope="module")
def server_url(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a server with the suite's fixtures, for all revisions."""
    fixtures = (sys.executable, "-m", "tests.conformance.fixture_server")
    with http_server(fixtures, tmp_path_factory.mktemp("fixtures")) as url:
        yield url


@pytest.mark.parametrize("revision", [LATEST, HANDSHAKE_ERA])
def test_no_scored_scenario_fails_with_the_suites_fixtures(
    server_url: str, revision: str, node: Node, tmp_path: Path
) -> None:
    options = ["--expected-failures", str(HERE / f"expected-{revision}.yml")]
    options += ["--requirements", revision, "-o", str(tmp_path)]
    run = node.run(node.suite, "server", "--url", server_url, *options)
    assert run.returncode == 0, run.stdout.partition("=== SUMMARY ===")[2]


def checks_of(scenario: str, results: Path) -> list[dict[str, Any]]:
    """Return every check of one scenario."""
    files = results.glob(f"server-{scenario}-????-??-??T*/checks.json")
    return [check for file in files for check in json.loads(file.read_text(encoding="utf-8"))]


def is_our_fault(check: Mapping[str, Any]) -> bool:
    """Return whether a check failed for another reason than a missing fixture."""
    message = str(check.get("errorMessage", ""))
    return check["status"] == "FAILURE" and not any(words in message for words in NEEDS_A_FIXTURE)
