"""Commands are named in the words of what installed the program, as they work for this very program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry import extras


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An environment that holds the program from an index."""
    folder = tmp_path / "cache" / "environment"
    folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(extras, "_origin", dict)
    monkeypatch.setattr(extras, "installed_extras", lambda: {"embed"})
    extras.install_command.cache_clear()
    yield folder
    extras.install_command.cache_clear()


@pytest.mark.parametrize(
    ("left", "install", "uninstall"),
    [
        ("uv-receipt.toml", "uv tool install 'context-registry[embed,zst]'", "uv tool uninstall context-registry"),
        (
            "pipx_metadata.json",
            "pipx install --force 'context-registry[embed,zst]'",
            "pipx uninstall context-registry",
        ),
        ("../CACHEDIR.TAG", "uv tool install 'context-registry[embed,zst]'", "uv cache clean context-registry"),
        (
            "pyvenv.cfg",
            f"{sys.executable} -m pip install 'context-registry[zst]'",
            f"{sys.executable} -m pip uninstall context-registry",
        ),
    ],
)
def test_extras_are_added_and_the_program_removed_by_what_installed_it(
    environment: Path, left: str, install: str, uninstall: str
) -> None:
    (environment / left).touch()
    assert (extras.install_command("zst"), extras.uninstall_command()) == (install, uninstall)


def test_a_clone_installs_an_extra_by_make(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = environment.parent / "clone"
    monkeypatch.setattr(extras, "_origin", lambda: {"url": clone.as_uri(), "dir_info": {"editable": True}})
    monkeypatch.setattr(sys, "prefix", str(clone / ".venv"))
    assert extras.install_command("zst") == f"make -C {clone} up EXTRAS=zst"
    assert extras.uninstall_command() == f"make -C {clone} clean"


def test_the_extras_that_are_here_are_known() -> None:
    assert {"embed", "pdf", "postgres"} <= extras.installed_extras()
