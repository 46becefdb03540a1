"""Test `ctxr forget`, `ctxr scan` and `ctxr redact`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import FIBONACCI, Ctxr

KEY = "AKIAQ3EGRTY7WZMNPL2X"


def registry_bytes(home: Path) -> bytes:
    return b"\n".join(file.read_bytes() for file in (home / "ctxr").rglob("*") if file.is_file())


def test_forgetting_asks_first_and_prints_a_receipt(ctxr: Ctxr, empty_home: Path) -> None:
    ctxr("log", "-", given=FIBONACCI)
    asked = ctxr("forget", "--channel", FIBONACCI["channel"], given="n\n")
    assert "Forget 2 messages (1 whole conversation)" in asked.output
    assert asked.exit_code == 130
    dry = json.loads(ctxr("forget", FIBONACCI["channel"], "--dry-run", "--json").stdout)
    assert (dry["messages"], dry["is_dry_run"]) == (2, True)
    done = ctxr("forget", FIBONACCI["channel"], "--yes")
    assert "Receipt fgt_" in done.stdout
    assert "메모이제이션".encode() not in registry_bytes(empty_home)
    assert "it was forgotten" in ctxr("log", "-", given=FIBONACCI).output
    assert ctxr("forget", FIBONACCI["channel"], "--yes").exit_code == 3
    assert ctxr("forget").exit_code == 2


def test_stored_secrets_are_counted_and_masked(ctxr: Ctxr, empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (ctxr("scan").exit_code, "No secrets" in ctxr("scan").stdout) == (0, True)
    messages = [
        {"role": "user", "text": f"deploy with {KEY} and the word quokka"},
        {"role": "tool", "text": "ran", "tool": {"name": "Bash", "params": {"command": f"export A={KEY}"}}},
    ]
    given = {"channel": "c", "messages": messages, "meta": {"title": f"About {KEY}", "project": "/lab"}}
    monkeypatch.setenv("CTXR_UNMASKED_PROJECTS", "/lab")
    ctxr("log", "-", given=given)
    monkeypatch.delenv("CTXR_UNMASKED_PROJECTS")
    assert KEY.encode() in registry_bytes(empty_home)
    found = json.loads(ctxr("scan", "--json").stdout)
    assert (found["messages"], found["channels"]) == (2, 1)
    assert set(found["secrets"]) == {"aws-access-key"}
    assert ctxr("redact", "--existing", "--dry-run").exit_code == 0
    assert KEY.encode() in registry_bytes(empty_home)
    assert ctxr("redact", "--existing", "--yes").exit_code == 0
    assert KEY.encode() not in registry_bytes(empty_home)
    assert KEY.lower().encode() not in registry_bytes(empty_home)
    assert (ctxr("scan").exit_code, "No secrets" in ctxr("scan").stdout) == (0, True)
    assert "[secret:aws-access-key:" in ctxr("search", "quokka").output
    again = ctxr("log", "-", "--json", given=given)
    assert json.loads(again.stdout)["new_count"] == 0
