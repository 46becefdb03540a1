"""Test `ctxr forget --by-policy`: configured policies are previewed and applied."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import FIBONACCI, Ctxr

OTHER = {**FIBONACCI, "channel": "other", "meta": {"project": "/srv/blog"}}


def test_policies_are_previewed_confirmed_and_applied(ctxr: Ctxr, empty_home: Path) -> None:
    for given in (FIBONACCI, OTHER):
        assert ctxr("log", "-", given=given).exit_code == 0
    unset = ctxr("forget", "--by-policy", "--dry-run")
    assert (unset.exit_code, "No retention policy is set." in unset.stderr) == (2, True)
    config = '[[retention]]\ndays = 30\nproject = "/srv/*"\n\n[[retention]]\ndays = 30\nowner = "kim"\n'
    (empty_home / "ctxr" / "config.toml").write_text(config, encoding="utf-8")
    named = "quiet for 30 days, project /srv/*"
    would = ctxr("forget", "--by-policy", "--dry-run").stdout.splitlines()
    assert would == [
        f"Would forget 2 messages (1 whole conversation), {named}.",
        "Would forget nothing, quiet for 30 days, owner kim.",
    ]
    asked = ctxr("forget", "--by-policy", given="n\n")
    assert (asked.exit_code, f"Forget 2 messages (1 whole conversation), {named}, for good?" in asked.output) == (
        130,
        True,
    )
    done = json.loads(ctxr("forget", "--by-policy", "--yes", "--json").stdout)["policies"]
    assert [one["receipt"] and one["receipt"]["channels"] for one in done] == [1, None]
    assert [one["channel"] for one in json.loads(ctxr("list", "--json").stdout)["sessions"]] == [FIBONACCI["channel"]]
    assert f"by {named}" in ctxr("audit", "--operation", "retention").stdout
    assert ctxr("forget", "other", "--by-policy").exit_code == 2


@pytest.mark.parametrize(
    "wrong", ['[{"days": 0}]', '[{"days": true}]', '[{"days": 3, "channel": "c"}]', '[{"project": "/srv"}]', "30"]
)
def test_an_invalid_policy_is_refused(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("CTXR_RETENTION", wrong)
    refused = ctxr("forget", "--by-policy", "--yes")
    assert (refused.exit_code, "CTXR_RETENTION" in refused.stderr or "retention" in refused.stderr) == (2, True)


def test_a_damaged_row_does_not_stop_the_others(ctxr: Ctxr, empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        assert ctxr("log", "-", given={**FIBONACCI, "channel": f"c{number}"}).exit_code == 0
    with sqlite3.connect(empty_home / "ctxr" / "registry.db") as connection:
        connection.execute("UPDATE channel SET meta = '{broken' WHERE name = 'c1'")
    connection.close()
    monkeypatch.setenv("CTXR_RETENTION", '[{"days": 30}]')
    done = ctxr("forget", "--by-policy", "--yes")
    assert "Forgotten: 6 messages (3 whole conversations)" in done.stdout
    assert (done.exit_code, "1 conversation could not be forgotten." in done.stderr) == (1, True)
    with sqlite3.connect(empty_home / "ctxr" / "registry.db") as connection:
        assert connection.execute("SELECT name FROM channel").fetchall() == [("c1",)]
    connection.close()
