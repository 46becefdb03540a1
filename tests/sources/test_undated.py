"""A conversation without times has the time of its file, not of the import."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sources.base import FoundSession, Source
from sources.claude_code.reader import ClaudeCode
from sources.copilot.cli import CopilotCli
from sources.copilot.vscode import CopilotVscode
from sources.gemini.reader import GeminiCli
from sources.kit.drafts import moment
from tests.sources.claude_code import claude_code_files
from tests.sources.copilot import copilot_files
from tests.sources.gemini import gemini_files

LONG_AGO = 1_746_000_000
_TIMES = ("timestamp", "startTime", "lastUpdated", "creationDate", "lastMessageDate")


def timeless(value: Any) -> Any:
    """Return a value without its times."""
    if isinstance(value, list):
        return [timeless(item) for item in value]
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in _TIMES}
    return value


def claude(root: Path) -> Path:
    return claude_code_files.write(root, claude_code_files.working_session())


def gemini(root: Path) -> Path:
    return gemini_files.write(root, gemini_files.working_chat())


def copilot(root: Path) -> Path:
    return copilot_files.write_log(root, copilot_files.working_log())


def vscode(root: Path) -> Path:
    return copilot_files.write_chat(root, copilot_files.working_chat())


@pytest.mark.parametrize(
    ("reader", "write"),
    [(ClaudeCode(), claude), (GeminiCli(), gemini), (CopilotCli(), copilot), (CopilotVscode(), vscode)],
    ids=lambda given: getattr(given, "name", ""),
)
def test_a_session_without_times_has_the_time_of_its_file(
    tmp_path: Path, reader: Source, write: Callable[[Path], Path]
) -> None:
    file = write(tmp_path)
    records = [timeless(json.loads(line)) for line in file.read_bytes().splitlines()]
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    os.utime(file, (LONG_AGO, LONG_AGO))

    found = [each.session for each in reader.sessions(tmp_path, {}) if isinstance(each, FoundSession)]
    assert found[0].messages
    dates = {(message.timestamp, message.more["time"]) for session in found for message in session.messages}
    assert dates == {(datetime.fromtimestamp(LONG_AGO, UTC), "inferred")}


def test_a_time_is_read_in_seconds_milliseconds_or_iso_8601() -> None:
    cases: list[tuple[object, datetime | None]] = [
        (946_684_800_000, datetime(2000, 1, 1, tzinfo=UTC)),
        (946_684_800, datetime(2000, 1, 1, tzinfo=UTC)),
        (1_746_000_000_123, datetime(2025, 4, 30, 8, 0, 0, 123000, tzinfo=UTC)),
        ("2000-01-01T00:00:00Z", datetime(2000, 1, 1, tzinfo=UTC)),
        (12, None),
        (True, None),
        ("soon", None),
    ]
    for given, expected in cases:
        assert moment(given) == expected
