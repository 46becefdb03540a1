"""Clients' memory files are quoted like conversations, in their newest version."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.opening import open_orchestrator
from orchestrator.sync.sync import sync
from registry.settings import Settings
from sources.base import Paths
from sources.readers import READERS
from tests.sources.claude_code.claude_code_files import CWD, Dialogue, session_id, write

pytestmark = pytest.mark.anyio


async def test_a_note_is_quoted_with_its_project_in_its_newest_version(empty_home: Path) -> None:
    dialogue = Dialogue(session_id(1))
    dialogue.user("Why does the basket lose its items?")
    transcript = write(empty_home / ".claude", dialogue)
    note = transcript.parent / "memory" / "MEMORY.md"
    codex, windsurf = (empty_home / name / "memories" for name in (".codex", ".codeium/windsurf"))
    for folder in (note.parent, codex, windsurf):
        folder.mkdir(parents=True)
    note.write_text("# Deploys\n\nDeploys go out on Tuesdays.", encoding="utf-8")
    (codex / "MEMORY.md").write_text("Prefer pytest fixtures to setUp.", encoding="utf-8")
    (windsurf / "global_rules.md").write_text("언제나 한국어로 답한다.", encoding="utf-8")
    paths = Paths(empty_home, {})
    async with open_orchestrator(Settings()) as orchestrator:

        async def quoted(text: str) -> tuple[str, str, str | None, list[str]]:
            await sync(orchestrator, READERS, paths)
            answer = await orchestrator.run({"operation": "extract", "query": {"text": text}})
            assert answer["success"], answer
            texts = [message["text"] for message in answer["messages"]]
            return answer["source"], answer["title"], answer.get("project"), texts

        source, title, project, texts = await quoted("when do deploys go out?")
        assert (source, title, project) == ("memory-files", "MEMORY.md (claude)", Path(CWD).name)
        assert texts == ["# Deploys\n\nDeploys go out on Tuesdays."]
        assert (await quoted("pytest fixtures"))[1] == "MEMORY.md (codex)"
        assert (await quoted("한국어로 답한다"))[1] == "global_rules.md (windsurf)"
        note.write_text("# Deploys\n\nDeploys go out on Thursdays now.", encoding="utf-8")
        assert (await quoted("when do deploys go out?"))[3] == ["# Deploys\n\nDeploys go out on Thursdays now."]
