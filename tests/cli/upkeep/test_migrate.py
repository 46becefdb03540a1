"""Test `ctxr migrate` and `ctxr project move`: a renamed folder keeps its history."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import FIBONACCI, Ctxr


def project_of(ctxr: Ctxr, place: str = "1") -> str:
    return str(json.loads(ctxr("show", place, "--json").stdout)["session"]["project_path"])


@pytest.mark.parametrize("words", [("project", "move"), ("migrate", "workspace")])
def test_a_renamed_folder_keeps_its_history(ctxr: Ctxr, words: tuple[str, str]) -> None:
    ctxr("log", "-", given=FIBONACCI)
    ctxr("log", "-", given={**FIBONACCI, "channel": "inner", "meta": {"project": "/home/me/agent/web"}})
    ctxr("log", "-", given={**FIBONACCI, "channel": "other", "meta": {"project": "/home/me/agent-two"}})
    would = ctxr(*words, "/home/me/agent", "/home/me/robot", "--dry-run")
    assert would.stdout.endswith("2 sessions would be moved.\n")
    assert project_of(ctxr, FIBONACCI["channel"]) == "/home/me/agent"
    done = json.loads(ctxr(*words, "/home/me/agent/", "/home/me/robot", "--json").stdout)
    assert (done["successCount"], done["failedCount"], done["errors"]) == (2, 0, [])
    assert project_of(ctxr, FIBONACCI["channel"]) == "/home/me/robot"
    assert project_of(ctxr, "inner") == "/home/me/robot/web"
    assert project_of(ctxr, "other") == "/home/me/agent-two"
    listed = json.loads(ctxr("list", "--project", "/home/me/robot", "--json").stdout)["sessions"]
    assert FIBONACCI["channel"] in {session["channel"] for session in listed}


def test_a_client_that_still_sends_the_old_folder_does_not_undo_the_move(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    ctxr("project", "move", "/home/me/agent", "/home/me/robot")
    more = [*FIBONACCI["messages"], {"role": "user", "text": "and then?", "timestamp": "2025-09-29T14:40:00Z"}]
    assert ctxr("log", "-", given={**FIBONACCI, "messages": more}).exit_code == 0
    assert project_of(ctxr) == "/home/me/robot"
    assert ctxr("project", "move", "/home/me/robot", "/home/me/agent").exit_code == 0
    assert project_of(ctxr) == "/home/me/agent"


def test_one_session_moves_alone(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    assert ctxr("migrate", "session", "1", "/home/me/other").exit_code == 0
    assert project_of(ctxr) == "/home/me/other"


def test_an_unknown_project_is_answered_with_the_known_ones(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    result = ctxr("project", "move", "/home/me/nowhere", "/home/me/robot")
    assert result.exit_code == 3
    assert "/home/me/agent" in result.stderr
