"""Test that entries in clients' settings keep working after the program moves, is upgraded, or its cache is cleared."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.connect.snippets import launcher_file, write_launcher

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no launcher on Windows")


@pytest.fixture(autouse=True)
def no_uvx(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(empty_home))


def program(file: Path, name: str) -> Path:
    """Write a program that prints its name and arguments."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'#!/bin/sh\necho {name} "$@"\n')
    file.chmod(0o755)
    return file


def run_launcher(path: Path | None = None, command: str = "mcp --client cursor") -> subprocess.CompletedProcess[str]:
    """Run the launcher as a client does, with a minimal PATH."""
    environment = {"HOME": str(Path.home()), "PATH": f"{path}:/usr/bin:/bin" if path else "/usr/bin:/bin"}
    return subprocess.run(
        [str(launcher_file()), *command.split()],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_entry_survives_ten_upgrades_and_a_cleared_cache(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_cache = program(empty_home / "cache" / "0" / "ctxr", "cached")
    for number in range(10):
        shutil.rmtree(in_cache.parent)
        in_cache = program(empty_home / "cache" / str(number + 1) / "ctxr", f"release-{number}")
        write_launcher([str(in_cache)])
        assert run_launcher().stdout == f"release-{number} mcp --client cursor\n"
    shutil.rmtree(empty_home / "cache")
    program(empty_home / "bin" / "uvx", "uvx")
    monkeypatch.setenv("PATH", str(empty_home / "bin"), prepend=os.pathsep)
    write_launcher([str(in_cache)])  # by uvx, which is not on the PATH of a client without a shell
    assert run_launcher().stdout.startswith("uvx --from context-registry==")
    program(empty_home / ".local" / "bin" / "ctxr", "tool")
    assert run_launcher().stdout == "tool mcp --client cursor\n"


def test_a_missing_program_is_reported_with_what_to_do(empty_home: Path) -> None:
    write_launcher([str(empty_home / "moved" / "ctxr")])
    ended = run_launcher()
    assert ended.returncode == 127
    assert "uv tool install context-registry" in ended.stderr


def test_a_hook_of_a_missing_program_does_not_stop_a_prompt(empty_home: Path) -> None:
    write_launcher([str(empty_home / "moved" / "ctxr")])
    hook = "hook gemini-cli BeforeAgent"
    ended = run_launcher(command=hook)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "uv tool install context-registry" in ended.stderr
    uvx = program(empty_home / ".local" / "bin" / "uvx", "uvx")
    uvx.write_text("#!/bin/sh\nexit 2\n")
    assert run_launcher(command=hook).returncode == 0
    assert run_launcher().returncode == 2


def test_the_launcher_does_not_start_itself(empty_home: Path) -> None:
    launcher = launcher_file()
    assert launcher
    write_launcher([str(launcher)])
    assert run_launcher(launcher.parent).returncode == 127


@pytest.mark.parametrize("folder", ["with space", "it's"])
def test_a_program_in_a_folder_with_any_name_is_started(empty_home: Path, folder: str) -> None:
    write_launcher([str(program(empty_home / folder / "ctxr", "here"))])
    assert run_launcher().stdout == "here mcp --client cursor\n"
