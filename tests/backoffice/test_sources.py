"""Test the clients of this machine: their stores, connections, and a sync."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from cli.connect.connections import connections_from
from orchestrator.service import Orchestrator
from tests.backoffice.application import application
from tests.backoffice.conftest import Log, problem_of
from tests.cli.conftest import bare_ctxr
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write
from tests.sources.exports.export_files import chatgpt_chat, chatgpt_files, write_zip

pytestmark = pytest.mark.anyio


@pytest.fixture
def app(orchestrator: Orchestrator, empty_home: Path) -> FastAPI:
    """Return a backoffice that knows the clients, as in `ctxr serve`."""
    return application(orchestrator, connections=connections_from(empty_home))


@pytest.fixture
def claude(empty_home: Path) -> Path:
    """Return Claude Code's folder with one session that has something unknown in it."""
    talk = Dialogue(session_id(7))
    talk.user("Why does the basket lose its items?")
    talk.says("It makes a new list each time.", "msg_1")
    talk.add("hologram", content="?")
    write(empty_home / ".claude", talk)
    return empty_home / ".claude"


async def sources_of(app: FastAPI) -> dict[str, Any]:
    """Return the sources that the settings page shows."""
    found: dict[str, Any] = await app.state.machine.describe()
    return found


async def sync_on_page(http: httpx.AsyncClient, app: FastAPI) -> dict[str, Any]:
    """Sync by the page's button; return the sources afterwards."""
    answer = await http.post("/settings/sync")
    assert (answer.status_code, answer.headers["location"]) == (303, "/settings")
    while (found := await sources_of(app))["sync"]["state"] == "running":
        pass
    return found


def parts_of_client(found: dict[str, Any], name: str) -> dict[tuple[str, str], Any]:
    client = next(one for one in found["clients"] if one.client == name)
    return {(part.what, part.state): part.command for part in client.parts}


async def test_a_store_is_listed_before_it_is_read_and_reported_after(
    http: httpx.AsyncClient, app: FastAPI, claude: Path
) -> None:
    [store] = (await sources_of(app))["stores"]
    assert (store["source"], store["path"], store["is_here"]) == ("claude-code", str(claude), True)
    assert (store["synced_at"], store["seen"]) == (None, 0)
    found = await sync_on_page(http, app)
    [store] = found["stores"]
    assert (store["seen"], store["parsed"], store["skipped"]) == (1, 1, [])
    [drift] = store["drift"]
    assert (drift["what"], drift["why"]) == ("1 x record hologram", "unknown to this reader")
    assert store["synced_at"]
    assert found["sync"]["state"] == "done"
    [outcome] = found["sync"]["stores"]
    assert (outcome.new_messages, outcome.parsed, outcome.skipped_count) == (2, 1, 1)
    assert (await http.get("/bo/channels")).json()["total"] == 1


async def test_a_folder_with_a_name_in_another_encoding_is_shown(
    http: httpx.AsyncClient, app: FastAPI, empty_home: Path
) -> None:
    history = empty_home / os.fsdecode(b"\xc7\xd1") / ".aider.chat.history.md"
    history.parent.mkdir()
    history.write_text("# aider chat started at 2026-11-22 07:11:16\n\n#### Hi  \n\nHello\n", encoding="utf-8")
    [store] = (await sync_on_page(http, app))["stores"]
    assert (store["path"], store["seen"]) == (f"{empty_home}/\ufffd\ufffd/.aider.chat.history.md", 1)


async def test_a_sync_without_news_updates_the_time_of_the_check(
    http: httpx.AsyncClient, app: FastAPI, claude: Path
) -> None:
    assert (await sources_of(app))["stores"][0]["looked_at"] is None
    [first] = (await sync_on_page(http, app))["stores"]
    again = await sync_on_page(http, app)
    [second] = again["stores"]
    assert second["synced_at"] == first["synced_at"]
    assert first["synced_at"] <= first["looked_at"] < second["looked_at"] == again["sync"]["finished_at"]


async def test_a_client_with_a_history_is_on_this_machine(
    app: FastAPI, empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(empty_home / "elsewhere", Dialogue(session_id(7)))
    monkeypatch.setenv("CTXR_CLAUDE_CODE_DIR", str(empty_home / "elsewhere"))
    found = await sources_of(app)
    assert [store["source"] for store in found["stores"]] == ["claude-code"]
    assert "ctxr install claude-code" in parts_of_client(found, "Claude Code").values()


async def test_a_store_that_is_gone_stays_listed_and_deletes_nothing(
    http: httpx.AsyncClient, app: FastAPI, claude: Path
) -> None:
    await sync_on_page(http, app)
    os.rename(claude, claude.with_name("elsewhere"))
    [store] = (await sources_of(app))["stores"]
    assert (store["is_here"], store["seen"]) == (False, 1)
    assert (await http.get("/bo/channels")).json()["total"] == 1


async def test_an_accounts_export_is_uploaded(
    http: httpx.AsyncClient, app: FastAPI, empty_home: Path, tmp_path: Path
) -> None:
    export = write_zip(tmp_path / "export.zip", chatgpt_files(chatgpt_chat()))
    sent = await http.post("/settings/imports", files={"file": (f"{'가' * 250}.zip", export.read_bytes())})
    assert (sent.status_code, sent.headers["location"]) == (303, "/settings#stores")
    while (found := await sources_of(app))["sync"]["state"] == "running":
        pass
    assert [one.source for one in found["sync"]["stores"]] == ["chatgpt"]
    [channel] = (await http.get("/bo/channels")).json()["items"]
    assert channel["source"] == "chatgpt"
    strange = await http.post("/settings/imports", files={"file": ("notes.txt", b"milk, eggs")})
    assert "notes.txt" in problem_of(strange, 400)["message"]


@pytest.mark.parametrize("spoil", [lambda whole: whole[:-60], lambda whole: whole[:60] + bytes(20) + whole[80:]])
async def test_a_damaged_export_is_refused_with_the_reason(
    http: httpx.AsyncClient, tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    whole = write_zip(tmp_path / "whole.zip", chatgpt_files(chatgpt_chat())).read_bytes()
    sent = await http.post("/settings/imports", files={"file": ("export.zip", spoil(whole))})
    problem = problem_of(sent, 400)
    assert problem["message"] == "An export of an account, but damaged or encrypted: export.zip"
    assert "Download it again." in problem["details"]


async def test_a_sync_that_fails_says_why(
    http: httpx.AsyncClient, app: FastAPI, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr("backoffice.machine.sync", broken)
    found = await sync_on_page(http, app)
    assert (found["sync"]["state"], found["sync"]["error"]["code"]) == ("failed", "INTERNAL_ERROR")
    assert "a bug" not in found["sync"]["error"]["details"]


async def test_each_client_shows_which_parts_are_installed_and_how_to_get_the_rest(
    app: FastAPI, log: Log, empty_home: Path, tmp_path: Path
) -> None:
    (empty_home / ".cursor").mkdir()
    (empty_home / ".gemini").mkdir()
    project = tmp_path / "my shop"
    project.mkdir()
    await log("cursor_session_1", "Hello", source="cursor", project=str(project))
    with_rule = f"ctxr install cursor --project '{project}'"
    found = await sources_of(app)
    assert parts_of_client(found, "Cursor") == {
        ("server", "missing"): "ctxr install cursor",
        ("hooks", "missing"): "ctxr install cursor",
        ("rule", "missing"): with_rule,
    }
    assert parts_of_client(found, "Gemini CLI") == {
        ("server", "missing"): "ctxr install gemini-cli",
        ("hooks", "missing"): "ctxr install gemini-cli",
    }
    assert not next(one for one in found["clients"] if one.client == "Codex").is_here
    assert bare_ctxr("install", "cursor", "--project", str(project), "--yes").exit_code == 0
    states = {state for _, state in parts_of_client(await sources_of(app), "Cursor")}
    assert states == {"installed"}


async def test_the_address_of_shown_changes_leads_back_to_the_clients(http: httpx.AsyncClient) -> None:
    answer = await http.get("/settings/clients/cursor")
    assert (answer.status_code, answer.headers["location"]) == (303, "/settings")


async def test_an_entry_of_another_program_and_an_unreadable_file_are_shown_as_such(
    app: FastAPI, empty_home: Path
) -> None:
    folder = empty_home / ".cursor"
    folder.mkdir()
    old = '{"mcpServers": {"context-registry": {"command": "/old/ctxr", "args": ["mcp"]}}}'
    (folder / "mcp.json").write_text(old, encoding="utf-8")
    (folder / "hooks.json").write_text("{oops", encoding="utf-8")
    states = parts_of_client(await sources_of(app), "Cursor").keys()
    assert states == {("server", "differs"), ("hooks", "unreadable")}
    assert (folder / "mcp.json").read_text(encoding="utf-8") == old, "the file is unchanged"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_shared_registry_reads_no_ones_files(http: httpx.AsyncClient, app: FastAPI, claude: Path) -> None:
    found = await sources_of(app)
    assert found == {"is_shared": True, "stores": [], "clients": (), "sync": None}
    assert "ctxr sync" in problem_of(await http.post("/settings/sync"))["details"]
    answer = await http.post("/settings/clients/cursor", data={"connects": "true"})
    assert "ctxr install" in problem_of(answer)["details"]
