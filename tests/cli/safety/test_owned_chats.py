"""Test the conversations of one person in a shared registry: forget, export, and import."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from cli.incoming import imports
from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.registry import Registry
from tests.cli.conftest import Ctxr, bare_ctxr


@pytest.fixture
def ctxr(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Ctxr:
    """Run commands over a registry where kim and lee each have two chats; lee's second one is shared with all."""
    monkeypatch.setenv("CTXR_DATABASE_URL", database_url)

    async def fill(orchestrator: Orchestrator) -> None:
        for owner in ("kim", "lee"):
            access = Access(owner, Level.WRITE, owner=owner)
            for number in (1, 2):
                said = [{"role": "user", "text": f"{owner} asked {number}"}, {"role": "assistant", "text": "yes"}]
                about = {"source": "codex", "metadata": {"project": "/srv/shop", "title": f"Of {owner}"}}
                given = {"operation": "conversation_log", "channel": f"{owner}_{number}", "messages": said, **about}
                assert (await orchestrator.run(given, access=access))["success"]
        shared = {"operation": "share", "channel": "lee_2", "query": {"with": "team"}}
        assert (await orchestrator.run(shared))["success"]

    registry = Registry(database_url)
    asyncio.run(fill(Orchestrator(registry)))
    registry.close()
    return bare_ctxr


def channels(ctxr: Ctxr) -> list[str]:
    return sorted(one["channel"] for one in json.loads(ctxr("list", "--json").stdout)["sessions"])


def test_all_chats_of_a_person_are_forgotten_after_a_preview(ctxr: Ctxr) -> None:
    would = ctxr("forget", "--owner", "kim", "--dry-run")
    assert would.stdout == "Would forget 4 messages (2 whole conversations).\n"
    assert len(channels(ctxr)) == 4
    assert "Forgotten: 4 messages (2 whole conversations)" in ctxr("forget", "--owner", "kim", "--yes").stdout
    assert channels(ctxr) == ["lee_1", "lee_2"]
    assert ctxr("forget", "--owner", "kim", "--yes").exit_code == 3
    refused = ctxr("forget", "--owner", "lee", "--matching", "asked", "--yes")
    assert (refused.exit_code, "either owner or matching" in refused.output) == (2, True)


def test_all_chats_of_a_person_are_exported_to_a_zip_that_another_registry_imports(
    ctxr: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kim.zip"
    assert ctxr("export", "--owner", "kim", "--output", str(file)).stdout == f"{file}: 2 sessions with 4 messages\n"
    assert "2 sessions, 4 messages" in ctxr("backup", "validate", str(file)).stdout
    held = [ZipFile(file).read(name).decode() for name in ZipFile(file).namelist()]
    assert "kim asked 1" in "".join(held)
    assert not any("lee" in part for part in held)
    refused = ctxr("backup", "restore", str(file), "--rest")  # it would replace everybody's chats
    assert (refused.exit_code, "`ctxr import` adds them" in refused.output) == (2, True)
    assert len(channels(ctxr)) == 4
    assert ctxr("export", "--owner", "kim", "--output", str(file)).exit_code == 2
    assert ctxr("export", "--owner", "pat", "--output", str(tmp_path / "pat.zip")).exit_code == 3
    assert ctxr("export", "--owner", "kim", "kim_1", "--output", str(tmp_path / "more.zip")).exit_code == 2
    done = [one["details"] for one in audited_acts(ctxr, "export_owner") if one["outcome"] == "succeeded"]
    assert done == [{"owner": "kim"}]

    monkeypatch.setenv("CTXR_DATABASE_URL", f"sqlite:///{tmp_path / 'own.db'}")
    [report] = json.loads(ctxr("import", str(file), "--json").stdout)["stores"]
    assert (report["source"], report["seen"], report["new_messages"]) == ("codex", 2, 4)
    assert channels(ctxr) == ["kim_1", "kim_2"]
    assert json.loads(ctxr("import", str(file), "--json").stdout)["stores"][0]["new_messages"] == 0
    shown = json.loads(ctxr("show", "kim_1", "--json").stdout)
    assert (shown["session"]["title"], shown["messages"][0]["text"]) == ("Of kim", "kim asked 1")


def audited_acts(ctxr: Ctxr, operation: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ctxr("audit", "--json", "--operation", operation).stdout.splitlines()]


@pytest.mark.both_databases
def test_a_damaged_document_of_a_zip_is_named_and_the_others_are_imported(
    ctxr: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, file = tmp_path / "kim.zip", tmp_path / "damaged.zip"
    ctxr("export", "--owner", "kim", "--output", str(whole))
    documents = {name: ZipFile(whole).read(name) for name in ZipFile(whole).namelist()}
    first = next(name for name in documents if name.startswith("conversations/"))
    with ZipFile(file, "w") as archive:
        for name, content in documents.items():
            archive.writestr(name, content[: len(content) // 2] if name == first else content)
    monkeypatch.setenv("CTXR_DATABASE_URL", f"sqlite:///{tmp_path / 'own.db'}")
    done = ctxr("import", str(file), "--json")
    reports = json.loads(done.stdout)["stores"]
    assert (done.exit_code, sum(report["new_messages"] for report in reports)) == (1, 2)
    assert [one["what"] for report in reports for one in report["skipped"]] == [first]


def test_a_document_of_a_zip_that_is_too_large_unpacked_is_skipped(
    ctxr: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MAX_DOCUMENT_BYTES", 2**20)
    file = tmp_path / "kim.zip"
    ctxr("export", "--owner", "kim", "--output", str(file))
    with ZipFile(file, "a", ZIP_DEFLATED) as archive, archive.open("conversations/bomb.json", "w") as bomb:
        bomb.write(b'{\n  "session": {"channel": "c", "source": "codex"}, "messages": [')
        bomb.write(b" " * 2**20 + b"]}")
    monkeypatch.setenv("CTXR_DATABASE_URL", f"sqlite:///{tmp_path / 'own.db'}")
    done = ctxr("import", str(file), "--json")
    reports = json.loads(done.stdout)["stores"]
    assert (done.exit_code, sum(report["new_messages"] for report in reports)) == (1, 4)
    skipped = [one for report in reports for one in report["skipped"]]
    assert [(one["what"], one["why"]) for one in skipped] == [("conversations/bomb.json", "larger than 1 MB")]
