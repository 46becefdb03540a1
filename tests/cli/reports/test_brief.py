"""Test `ctxr brief`: the briefing of a day."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.operations import daily_briefing
from tests.cli.conftest import FIBONACCI, Ctxr


def test_a_briefing_is_printed_as_text_and_as_json(ctxr: Ctxr) -> None:
    ctxr("log", "-", given=FIBONACCI)
    shown = ctxr("brief", "2025-09-29")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("# 2025-09-29 브리핑\n")
    briefing = json.loads(ctxr("brief", "2025-09-29", "--json").stdout)
    assert briefing.keys() == {"id", "date", "text", "by", "actions"}
    assert (briefing["date"], briefing["by"], briefing["text"]) == ("2025-09-29", "extractive", shown.stdout)


def test_a_day_without_conversations_and_an_invalid_day(ctxr: Ctxr) -> None:
    assert ctxr("brief").exit_code == 3
    refused = ctxr("brief", "someday")
    assert (refused.exit_code, 'given "someday"; allowed: a day such as' in refused.stderr) == (2, True), refused.stderr


def test_a_briefing_that_could_not_be_delivered_is_printed_and_exits_with_1(
    ctxr: Ctxr, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daily_briefing, "OUTSIDE_ATTEMPTS", 1)
    ctxr("log", "-", given=FIBONACCI)
    outside = (
        '[[actions]]\nname = "notes"\ncommand = ["no-such-program"]\ntool = "write"\narguments = { text = "{text}" }\n'
    )
    (empty_home / "ctxr" / "config.toml").write_text(outside)
    shown = ctxr("brief", "2025-09-29")
    assert (shown.exit_code, shown.stdout.startswith("# 2025-09-29 브리핑\n")) == (1, True)
    assert "notes: " in shown.stderr
