"""A project's folder was renamed: its history goes with it."""

from __future__ import annotations

import json
from pathlib import Path

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


def test_a_client_that_goes_on_naming_the_old_folder_does_not_undo_it(ctxr: Ctxr) -> None:
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


def test_an_unknown_project_names_those_there_are(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    result = ctxr("project", "move", "/home/me/nowhere", "/home/me/robot")
    assert result.exit_code == 3
    assert "/home/me/agent" in result.stderr


def test_a_renamed_folder_is_noticed_by_its_files(ctxr: Ctxr, tmp_path: Path) -> None:
    old, new, stranger = (tmp_path / name for name in ("shop", "store", "stranger"))
    for folder in (new, stranger):
        (folder / "src").mkdir(parents=True)
    for name in ("src/basket.py", "src/prices.py"):
        (new / name).write_text("")
    said = [
        {"role": "user", "text": f"Look at {name}", "context": {"file": f"{old}/src/{name}.py"}}
        for name in ("basket", "prices", "gone")
    ]
    ctxr("log", "-", given={"channel": "shop", "messages": said, "meta": {"project": str(old)}})
    shown = ctxr("list", "--project", str(new))
    assert f"this folder was {old}, 1 session: ctxr project move {old} {new}" in shown.stderr
    assert "this folder was" not in ctxr("list", "--project", str(stranger)).stderr
    ctxr("project", "move", str(old), str(new))
    listed = json.loads(ctxr("list", "--project", str(new), "--json").stdout)
    assert (len(listed["sessions"]), listed.get("elsewhere")) == (1, None)


def test_a_folder_that_is_still_there_was_not_renamed(ctxr: Ctxr, tmp_path: Path) -> None:
    for folder in ("shop", "copy"):
        (tmp_path / folder).mkdir()
        for name in ("a.py", "b.py"):
            (tmp_path / folder / name).write_text("")
    said = [{"role": "user", "text": n, "context": {"file": f"{tmp_path}/shop/{n}"}} for n in ("a.py", "b.py")]
    ctxr("log", "-", given={"channel": "shop", "messages": said, "meta": {"project": f"{tmp_path}/shop"}})
    assert "this folder was" not in ctxr("list", "--project", f"{tmp_path}/copy").stderr
