"""Test that words erased by one person are refused for that person only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.service import Orchestrator
from orchestrator.state import LocalFiles
from registry.access import Access, Level
from registry.storage.safety.page_sessions import begin_session, end_session, find_session
from sources.base import Paths
from tests.backoffice.conftest import Hire
from tests.backoffice.test_owners import erase

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]

ASKED = ("why does the parser drop the last line of a file?", "where is the parser's buffer flushed to disk?")


async def run(orchestrator: Orchestrator, folder: Path, operation: str, **query: Any) -> dict[str, Any]:
    """Run an operation with backups in this folder."""
    local_files = LocalFiles(folder / "backups", [], Paths(folder, {}), folder / "resume")
    answer = await Orchestrator(orchestrator.registry, local_files=local_files).run(
        {"operation": operation, "query": query}
    )
    assert answer["success"], answer
    return answer


async def test_erased_words_without_an_owner_are_refused_and_the_channel_name_stays_free_for_others(
    hire: Hire, orchestrator: Orchestrator
) -> None:
    kim, lee = await hire("kim"), await hire("lee")
    await kim.log("parser", *ASKED)
    await erase(kim, owner="kim")
    messages = [{"role": "user", "text": text} for text in ASKED]
    said = {"operation": "conversation_log", "channel": "general", "messages": messages}
    assert (await orchestrator.run(said))["not_kept"]  # as an import in the server's terminal
    assert (await orchestrator.run({**said, "messages": messages[:1]}))["not_kept"]
    assert (await lee.log("general", "hello"))["stored_ids"]


async def test_a_session_erased_by_one_person_stays_anothers_also_after_a_restore(
    hire: Hire, orchestrator: Orchestrator, tmp_path: Path
) -> None:
    kim, lee, pat = await hire("kim"), await hire("lee"), await hire("pat")
    for person, name in ((kim, "kims"), (lee, "lees")):
        await person.log(name, *ASKED, session_id="s-1")
    backup = await run(orchestrator, tmp_path, "create_backup", stores=False)
    await erase(kim, owner="kim")
    await run(orchestrator, tmp_path, "restore_backup", path=backup["path"])
    assert (await kim.sees(), await lee.sees()) == ([], ["lees"])
    assert (await kim.log("again", "hello", session_id="s-1"))["not_kept"]
    assert (await pat.log("pats", "hello", session_id="s-1"))["stored_ids"]


async def test_an_ended_browser_session_stays_ended_after_a_restore(orchestrator: Orchestrator, tmp_path: Path) -> None:
    registry = orchestrator.registry
    access = Access("oauth:kim", Level.WRITE, owner="oauth:kim")
    ended, kept = [await registry.write(lambda tx: begin_session(tx, None, access, 3600)) for _ in range(2)]
    backup = await run(orchestrator, tmp_path, "create_backup", stores=False)
    await registry.write(lambda tx: end_session(tx, ended))
    await run(orchestrator, tmp_path, "restore_backup", path=backup["path"])
    assert await registry.read(lambda tx: find_session(tx, ended)) is None
    assert await registry.read(lambda tx: find_session(tx, kept)) == access
