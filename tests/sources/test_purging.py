"""The time after which a client deletes conversations, from its settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from sources.base import Paths
from sources.client import Client
from sources.clients import CLAUDE_CODE, GEMINI_CLI
from sources.purging import count_missing_files, retention_days


@pytest.mark.parametrize(
    ("client", "settings", "days"),
    [
        (CLAUDE_CODE, None, 30),
        (CLAUDE_CODE, "{}", 30),
        (CLAUDE_CODE, '{"cleanupPeriodDays": 3650}', 3650),
        (CLAUDE_CODE, "{ broken", 30),
        (GEMINI_CLI, None, 30),
        (GEMINI_CLI, '{"general": {"sessionRetention": {"maxAge": "2w"}}}', 14),
        (GEMINI_CLI, '{"general": {"sessionRetention": {"enabled": false}}}', None),
        (GEMINI_CLI, '{"general": {"sessionRetention": {"maxAge": "1y", /* kept */}}} // mine', 365),
    ],
)
def test_the_retention_is_the_configured_one_or_the_clients_default(
    tmp_path: Path, client: Client, settings: str | None, days: float | None
) -> None:
    assert client.purge
    paths = Paths(tmp_path, {})
    file = client.settings_file(paths, client.purge.file)
    file.parent.mkdir()
    if settings is not None:
        file.write_text(settings)
    assert retention_days(client, paths) == days


def test_conversations_without_their_files_are_counted_and_other_keys_ignored(tmp_path: Path) -> None:
    (tmp_path / "here.jsonl").touch()
    keys = [str(tmp_path / "here"), str(tmp_path / "here.jsonl"), str(tmp_path / "gone.jsonl"), "a-composers-id"]
    assert count_missing_files(keys) == 1
