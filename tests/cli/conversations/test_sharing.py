"""Test exports of sessions for other people, and their import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.export.pdf import nodes_of
from tests.cli.conftest import FIBONACCI, Ctxr

OTHERS: dict[str, Any] = {
    "channel": "retry",
    "messages": [
        {
            "role": "user",
            "text": "/home/kim/agent/src/a.py and /home/kim/.ssh/config fail: 김철수, kim@corp.co.kr or 010-1234-5678",
            "timestamp": "2026-01-02T12:00:00Z",
            "context": {"file": "/home/kim/agent/src/a.py", "line": 3},
        },
        {
            "role": "assistant",
            "text": "Kim said: /usr/lib/x. kimchi stays.",
            "timestamp": "2026-01-02T12:01:00Z",
        },
        {
            "role": "tool",
            "text": "bash: git log\nAuthor: Minji Park <minji@corp.co.kr>",
            "timestamp": "2026-01-02T12:02:00Z",
            "time": "inferred",
            "tool": {"name": "bash", "params": {"command": "git log"}, "result": "…", "status": "completed"},
        },
    ],
    "meta": {"project": "/home/kim/agent", "source": "codex", "title": "kim's retries", "file": "a.py"},
}


@pytest.fixture
def two(ctxr: Ctxr) -> Ctxr:
    for call in (FIBONACCI, OTHERS):
        assert ctxr("log", "-", given=call).exit_code == 0
    assert ctxr("nickname", "retry", "retries").exit_code == 0
    assert ctxr("tag", "retry", "api").exit_code == 0
    return ctxr


def test_an_export_for_sharing_has_no_folder_name_or_address(two: Ctxr) -> None:
    for to in ("markdown", "json", "html"):
        page = two("export", "retry", "--format", to, "--share", "--hide", "김철수").stdout
        for private in ("/home/kim", "김철수", "corp.co.kr", "1234-5678", "Minji", "Kim said"):
            assert private not in page, (to, private)
        for kept in ("agent/src/a.py", "/usr/lib/x", "kimchi"):
            assert kept in page, (to, kept)


def test_a_selection_is_exported_into_a_folder_and_overwrites_nothing(two: Ctxr, tmp_path: Path) -> None:
    written = two("export", "retry", FIBONACCI["channel"], "--output", str(tmp_path / "notes")).stdout.splitlines()
    assert sorted(map(str, (tmp_path / "notes").iterdir())) == sorted(written)
    assert len(written) == 2
    assert two("export", "retry", "--output", str(tmp_path / "notes")).exit_code == 2


def test_all_sessions_of_a_project_are_exported(two: Ctxr, tmp_path: Path) -> None:
    [written] = two("export", "--project", "/home/kim/agent", "--output", str(tmp_path / "all")).stdout.splitlines()
    assert "bash: git log" in Path(written).read_text(encoding="utf-8")
    assert two("export", "--project", "/nowhere", "--output", str(tmp_path / "none")).exit_code == 3
    assert two("export", "--output", str(tmp_path / "none")).exit_code == 2


def without_ids(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "messages": [{**message, "id": ""} for message in document["messages"]]}


def test_a_json_export_is_imported_unchanged_into_its_own_and_into_an_empty_registry(
    two: Ctxr, tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "retry.json"
    assert two("export", "retry", "--format", "json", "--output", str(file)).exit_code == 0
    before = json.loads(file.read_text(encoding="utf-8"))
    assert two("import", str(file)).exit_code == 0
    assert json.loads(two("export", "retry", "--format", "json").stdout) == before, "nothing is doubled"
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("CTXR_HOME", str(tmp_path / "other"))
    (tmp_path / "other" / "registry.db").write_bytes(sqlite_template.read_bytes())
    assert two("import", str(file)).exit_code == 0
    assert without_ids(json.loads(two("export", "retry", "--format", "json").stdout)) == without_ids(before)


def test_a_document_of_another_session_of_that_name_is_imported_as_another_chat(ctxr: Ctxr, tmp_path: Path) -> None:
    laptops = {**OTHERS, "meta": {**OTHERS["meta"], "session_id": "on-laptop"}}
    assert ctxr("log", "-", given=laptops).exit_code == 0
    document = json.loads(ctxr("export", "retry", "--format", "json").stdout)
    document["session"] |= {"session_id": "on-desktop", "nickname": "desktop"}
    document["messages"] = [{**one, "text": f"On the desktop: {one['text']}"} for one in document["messages"][:2]]
    file = tmp_path / "desktop.json"
    file.write_text(json.dumps(document, indent=2), encoding="utf-8")
    assert ctxr("import", str(file)).exit_code == 0
    sessions = json.loads(ctxr("list", "--json").output)["sessions"]
    found = sorted((one["session_id"], one["nickname"], one["message_count"]) for one in sessions)
    assert found == [("on-desktop", "desktop", 2), ("on-laptop", None, 3)]


def test_a_pdf_holds_the_text_and_its_font(two: Ctxr, tmp_path: Path) -> None:
    pytest.importorskip("typst")
    file = tmp_path / "fib.pdf"
    done = two("export", FIBONACCI["channel"], "--format", "pdf", "--output", str(file))
    assert done.exit_code == 0, done.stderr
    page = file.read_bytes()
    assert page.startswith(b"%PDF-")
    assert b"NotoSansKR" in page
    assert b"FontFile3" in page or b"FontFile2" in page


def test_text_in_a_pdf_is_never_markup() -> None:
    [paragraph] = nodes_of("#set page(fill: red) $x$ <script>")
    assert "".join(node["text"] for node in paragraph["in"]) == "#set page(fill: red) $x$ <script>"
