"""What tells that a folder was another one before, and who is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.answer.finding.moved_folders import is_same_project
from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.registry import Registry

FILES = ("a.py", "b.py", "c.py", "d.py", "e.py")


@pytest.mark.parametrize(("here", "is_same"), [(1, False), (2, False), (3, True)])
def test_most_of_a_projects_files_must_be_in_the_folder(tmp_path: Path, here: int, is_same: bool) -> None:
    for name in FILES[:here]:
        (tmp_path / name).write_text("")
    assert is_same_project(FILES, str(tmp_path)) is is_same


@pytest.mark.anyio
async def test_only_who_is_on_this_machine_is_told_what_its_folders_hold(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    for name in FILES:
        (tmp_path / "store" / name).write_text("")
    messages = [{"role": "user", "text": n, "context": {"file": f"{tmp_path}/shop/{n}"}} for n in FILES]
    registry = Registry(sqlite_url)
    orchestrator = Orchestrator(registry)
    await orchestrator.run(
        {
            "operation": "save",
            "channel": "shop",
            "messages": messages,
            "source": "cursor",
            "metadata": {"project": f"{tmp_path}/shop"},
        }
    )
    asked: dict[str, Any] = {"operation": "list", "query": {"project": f"{tmp_path}/store"}}
    here = await orchestrator.run(asked)
    far = await orchestrator.run(asked, access=Access("phone", Level.ADMIN))
    assert here["elsewhere"]["moved_from"]["path"] == f"{tmp_path}/shop"
    assert "moved_from" not in far.get("elsewhere", {})
    registry.close()
