"""The project of a Cursor conversation: the first evidence in a fixed order."""

import json
from pathlib import Path

import pytest

from sources.cursor.projects import common_folder
from sources.kit.workspace_files import path_of
from tests.sources.cursor.cursor_files import CursorFiles, Json, answered, asked, called


@pytest.fixture
def cursor(empty_home: Path) -> CursorFiles:
    """Cursor's empty folder on Linux."""
    return CursorFiles(empty_home / ".config" / "Cursor" / "User")


def test_a_uri_gives_the_projects_path_on_its_machine() -> None:
    cases: list[tuple[object, str]] = [
        ("file:///home/me/my%20app", "/home/me/my app"),
        ("file:///home/me/app/", "/home/me/app"),
        ("file:///c%3A/src/app", "c:\\src\\app"),
        ("C:\\src\\app", "c:\\src\\app"),
        ("file://server/share/app", "\\\\server\\share\\app"),
        ("vscode-remote://wsl%2Bubuntu/home/me/app", "/home/me/app"),
        ("vscode-remote://ssh-remote%2Bbox/srv/app", "/srv/app"),
        ("/home/me/app", "/home/me/app"),
        ({"fsPath": "c:\\src\\app", "path": "/c:/src/app", "scheme": "file"}, "c:\\src\\app"),
        ({"fsPath": "\\home\\me\\app", "path": "/home/me/app", "scheme": "vscode-remote"}, "/home/me/app"),
        ({"external": "file:///home/me/app"}, "/home/me/app"),
        ("untitled:Untitled-1", ""),
        ("src/app", ""),
        ("file://[broken/x", ""),
        (None, ""),
        (7, ""),
    ]
    for uri, path in cases:
        assert path_of(uri) == path


def test_files_give_their_common_folder_unless_it_is_no_project() -> None:
    cases: list[tuple[list[str], str | None]] = [
        (["/home/me/app/src/a.py", "/home/me/app/b.py"], "/home/me/app"),
        (["c:\\src\\app\\a.py", "C:/src/app/x/b.py"], "c:\\src\\app"),
        (["/home/me/a.py", "/home/me/app/b.py"], None),
        (["/tmp/a.py"], None),
        (["a.py"], None),
        ([], None),
    ]
    for files, folder in cases:
        assert common_folder(files) == folder


GREP = called("g", "ripgrep_raw_search", {}, {"success": {"workspaceResults": {"/by/search": {}}}})
FILES = {"context": {"fileSelections": [{"uri": {"fsPath": "/by/files/a.py"}}]}}
# From the weakest to the strongest evidence; each is added to those before it.
EVIDENCE: list[tuple[str, list[Json], Json]] = [
    ("/by/search", [GREP], {}),
    ("/by/files", [answered("a2", "x", **FILES)], {}),
    ("/by/bubble", [answered("a3", "x", workspaceUris=["file:///by/bubble"])], {}),
    ("/by/list", [], {}),
    ("/by/repository", [], {"trackedGitRepos": [{"repoPath": "/by/repository"}]}),
    ("/by/id", [], {"workspaceIdentifier": {"id": "known"}}),
    ("/by/uri", [], {"workspaceIdentifier": {"id": "known", "uri": {"fsPath": "/by/uri"}}}),
]


@pytest.mark.parametrize("strength", range(len(EVIDENCE)))
def test_the_best_evidence_wins(strength: int, cursor: CursorFiles) -> None:
    bubbles: list[Json] = [asked("u", "Where?")]
    fields: Json = {}
    for path, more_bubbles, more_fields in EVIDENCE[: strength + 1]:
        bubbles += more_bubbles
        fields |= more_fields
        if path == "/by/list":
            listed = {"composer.composerData": {"selectedComposerIds": ["c1"]}}
            cursor.workspace("w1", {"folder": "file:///by/list"}, listed)
        if path == "/by/id":
            cursor.workspace("known", {"folder": "file:///by/id"})
    cursor.conversation("c1", *bubbles, **fields)
    assert cursor.only_session().project == EVIDENCE[strength][0]


def test_a_pane_that_showed_a_conversation_gives_its_workspace(cursor: CursorFiles) -> None:
    pane = {"workbench.panel.composerChatViewPane.x": {"workbench.panel.aichat.view.c1": {"isHidden": False}}}
    cursor.workspace("w1", {"folder": "file:///home/me/app"}, pane)
    cursor.conversation("c1", asked("u", "Where?"))
    assert cursor.only_session().project == "/home/me/app"


@pytest.mark.parametrize(
    ("described", "project"),
    [
        ('{"folders": [ // the first\n {"name": "x", "path": "backend"}, {"path": "web"}]}', "{home}/all/backend"),
        ('{"folders": [{"path": "."}]}', "{home}/all"),
        ('{"folders": [{"uri": "file:///srv/app"}]}', "/srv/app"),
        ('{"folders": [{"path": "/srv/other"}]}', "/srv/other"),
        ("{torn", "{home}/all"),
    ],
)
def test_a_workspace_of_several_folders_is_the_first_of_them(
    described: str, project: str, cursor: CursorFiles, empty_home: Path
) -> None:
    file = empty_home / "all" / "my.code-workspace"
    file.parent.mkdir()
    file.write_text(described, encoding="utf-8")
    cursor.workspace("w1", {"workspace": file.as_uri()})
    identified = {"id": "w1", "uri": {"fsPath": str(file)}}
    cursor.conversation("c1", asked("u", "Where?"), workspaceIdentifier=identified)
    assert cursor.only_session().project == project.format(home=empty_home)


@pytest.mark.parametrize("described", ["{}", "{torn", "[]", json.dumps({"folder": 7}), json.dumps({"folder": ""})])
def test_a_window_without_a_folder_has_no_project(described: str, cursor: CursorFiles) -> None:
    listed = {"composer.composerData": {"allComposers": [{"composerId": "c1"}]}}
    database = cursor.workspace("empty-window", {}, listed)
    database.with_name("workspace.json").write_text(described, encoding="utf-8")
    cursor.conversation("c1", asked("u", "Where?"))
    assert cursor.only_session().project is None
