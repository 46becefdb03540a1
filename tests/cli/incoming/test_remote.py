"""`ctxr push`, `ctxr pull`, `ctxr status` at a terminal."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import FIBONACCI, Ctxr

NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize("command", ["push", "pull", "status"])
def test_without_a_registry_elsewhere_it_says_what_to_set(ctxr: Ctxr, command: str) -> None:
    done = ctxr(command)
    assert done.exit_code == 2
    assert "No registry elsewhere is set." in done.output
    assert "CTXR_REMOTE_URL" in done.output


def test_where_nobody_answers_nothing_is_lost(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_REMOTE_URL", NOBODY)
    assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
    done = ctxr("push")
    assert done.exit_code == 1
    assert "error: REMOTE_UNAVAILABLE: The registry elsewhere does not answer." in done.output
    found = json.loads(ctxr("status", "--json").stdout)
    counts = {"sent": 0, "waiting": 2, "refused": 0, "edits": 0}
    assert found == {"url": NOBODY, **counts, "answered_at": None, "edit_refused": None, "local_copy": True}
    told = ctxr("status").output
    assert "never answered so far" in told
    assert "Nothing came from it yet (ctxr pull asks it): questions are answered from the copy on this machine" in told
    assert f"{NOBODY} has not answered since ever; 2 messages" in " ".join(ctxr("doctor").output.split())


def test_an_answer_says_that_it_is_out_of_the_copy_here(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
    assert "local_copy" not in json.loads(ctxr("list", "--json").stdout)
    monkeypatch.setenv("CTXR_REMOTE_URL", NOBODY)
    copy = {"of": NOBODY, "as_of": None}
    assert json.loads(ctxr("list", "--json").stdout)["local_copy"] == copy
    assert json.loads(ctxr("extract", "fibonacci", "--json").stdout)["metadata"]["local_copy"] == copy
    assert f"{NOBODY} has not answered so far" in ctxr("list").stderr
    assert f"{NOBODY} does not answer now" in ctxr("extract", "giraffes").output


def test_an_address_without_tls_is_refused(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_REMOTE_URL", "http://memory.example.org")
    done = ctxr("status")
    assert done.exit_code == 2
    assert "https://" in done.output
