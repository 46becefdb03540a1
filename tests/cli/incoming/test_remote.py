"""Test `ctxr push`, `ctxr pull`, and `ctxr status`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.cli.conftest import FIBONACCI, Ctxr

NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize("command", ["push", "pull", "status"])
def test_without_a_registry_elsewhere_the_setting_is_named(ctxr: Ctxr, command: str) -> None:
    done = ctxr(command)
    assert done.exit_code == 2
    assert "No other registry is configured." in done.output
    assert "CTXR_REMOTE_URL" in done.output


def test_an_unreachable_registry_loses_nothing(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_REMOTE_URL", NOBODY)
    assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
    done = ctxr("push")
    assert done.exit_code == 1
    assert "error: REMOTE_UNAVAILABLE: The other registry does not answer." in done.output
    found = json.loads(ctxr("status", "--json").stdout)
    counts = {"sent": 0, "waiting": 2, "refused": 0, "edits": 0}
    assert found == {"url": NOBODY, **counts, "answered_at": None, "edit_refused": None, "local_copy": True}
    shown = ctxr("status").output
    assert "never answered so far" in shown
    assert "Nothing was received yet (ctxr pull): answers come from the copy on this machine" in shown
    assert f"{NOBODY} has never answered so far; 2 messages" in " ".join(ctxr("doctor").output.split())


class _NoEntry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"error": {"code": "UNAUTHORIZED", "message": "The token is not valid."}}).encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def closed() -> Iterator[str]:
    """Return the address of a registry that refuses every request."""
    with HTTPServer(("127.0.0.1", 0), _NoEntry) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_refused_token_and_a_failed_connection_have_different_errors(
    ctxr: Ctxr, closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTXR_REMOTE_URL", closed)
    done = ctxr("pull")
    assert done.exit_code == 1
    assert "REMOTE_UNAVAILABLE: The other registry refuses access." in done.output
    assert "401 The token is not valid." in done.output


def test_an_answer_from_the_local_copy_says_so(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
    assert "local_copy" not in json.loads(ctxr("list", "--json").stdout)
    monkeypatch.setenv("CTXR_REMOTE_URL", NOBODY)
    copy = {"of": NOBODY, "as_of": None}
    assert json.loads(ctxr("list", "--json").stdout)["local_copy"] == copy
    assert json.loads(ctxr("extract", "피보나치", "--json").stdout)["metadata"]["local_copy"] == copy
    assert f"{NOBODY} has not answered so far" in ctxr("list").stderr
    assert f"{NOBODY} does not answer now" in ctxr("extract", "giraffes").output


def test_an_address_without_tls_is_refused(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_REMOTE_URL", "http://memory.example.org")
    done = ctxr("status")
    assert done.exit_code == 2
    assert "https://" in done.output
