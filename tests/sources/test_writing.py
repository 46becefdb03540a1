"""Sessions written for a client, read with its reader."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from registry.domain import Role
from sources.base import Paths
from sources.readers import READERS
from sources.writers import WRITERS
from sources.writing import Call, Transfer, TransferPart
from tests.sources.reading import read_changed

FOUND = Call("grep", {"pattern": "retr"}, "RETRIES = 5")
READ = Call("read_file_v2", {"target_file": "src/pay.py", "limit": 9}, "RETRIES = 5")
FAILED = Call("shell", {"command": ["make", "a b"]}, "no rule to make target", failed=True)
OWN = {  # each client's tool names for reading a file and running a command; Codex cannot store a failure
    "claude-code": ("Read", "file_path", "Bash", "failed"),
    "codex": ("read_file", "path", "shell_command", "completed"),
    "copilot-cli": ("view", "path", "bash", "failed"),
    "gemini-cli": ("read_file", "file_path", "run_shell_command", "failed"),
    "qwen-code": ("read_file", "file_path", "run_shell_command", "failed"),
}
TALK = Transfer(
    (
        TransferPart(Role.USER, "몇 번 재시도하지?"),
        TransferPart(Role.ASSISTANT, "I look.", calls=(READ, FAILED)),
        TransferPart(Role.ASSISTANT, "", calls=(FOUND,)),
        TransferPart(Role.ASSISTANT, "Five times."),
    ),
    "Retries",
    "/home/ann/shop",
)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A home folder where Gemini CLI knows the project and OpenCode has a model."""
    for name, content in {
        ".gemini/projects.json": {"projects": {"/home/ann/shop": "shop"}},
        ".config/opencode/opencode.json": {"model": "anthropic/claude-sonnet-4-6"},
    }.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(json.dumps(content))
    return Paths(tmp_path, {})


@pytest.mark.parametrize("client", OWN)
def test_calls_of_another_client_become_the_clients_own(client: str, paths: Paths, tmp_path: Path) -> None:
    writer = WRITERS[client]
    for file, text in writer.make(TALK, writer.tested, paths, tmp_path).files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    reader = next(reader for reader in READERS if reader.name == client)
    [store] = reader.find(paths)
    [session] = [each.session for each in read_changed(reader, store)]
    shown = [
        (str(message.role), message.text)
        if message.role is not Role.TOOL
        else tuple(message.more["tool"][name] for name in ("name", "params", "result", "status"))
        for message in session.messages
    ]
    read, path, run, ended = OWN[client]
    assert shown == [
        ("user", "몇 번 재시도하지?"),
        ("assistant", "I look."),
        (read, {path: "src/pay.py"}, "RETRIES = 5", "completed"),
        (run, {"command": "make 'a b'"}, "no rule to make target", ended),
        ("grep", {"pattern": "retr"}, "RETRIES = 5", "completed"),
        ("assistant", "Five times."),
    ]


def test_opencode_gets_calls_as_parts(paths: Paths, tmp_path: Path) -> None:
    [text] = WRITERS["opencode"].make(TALK, "1.18.33", paths, tmp_path).files.values()
    messages = json.loads(text)["messages"]
    assert {message["info"]["cost"] for message in messages if message["info"]["role"] == "assistant"} == {0}
    parts = [part for message in messages for part in message["parts"]]
    assert [part["type"] for part in parts] == ["text", "text", "tool", "tool", "tool", "text"]
    assert (parts[2]["tool"], parts[2]["state"]["input"]) == ("read", {"filePath": "src/pay.py"})
    assert (parts[3]["state"]["status"], parts[3]["state"]["error"]) == ("error", "no rule to make target")


@pytest.mark.parametrize("client", ["claude-code", "qwen-code"])
def test_a_session_is_written_where_its_client_looks_for_it(client: str, paths: Paths, tmp_path: Path) -> None:
    writer = WRITERS[client]
    talk = replace(TALK, folder="/home/ann/가게 🐳")
    [file, *_] = writer.make(talk, writer.tested, paths, tmp_path).files
    assert "-home-ann------" in file.parts
