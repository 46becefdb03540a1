"""Commands to add extras or remove the program fit the way it was installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry import extras


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A virtual environment with the program, installed from a package index."""
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
def test_commands_use_the_installer_of_the_program(environment: Path, left: str, install: str, uninstall: str) -> None:
    (environment / left).touch()
    assert (extras.install_command("zst"), extras.uninstall_command()) == (install, uninstall)


def test_a_clone_installs_an_extra_with_make(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = environment.parent / "clone"
    monkeypatch.setattr(extras, "_origin", lambda: {"url": clone.as_uri(), "dir_info": {"editable": True}})
    monkeypatch.setattr(sys, "prefix", str(clone / ".venv"))
    assert extras.install_command("zst") == f"make -C {clone} up EXTRAS=zst"
    assert extras.uninstall_command() == f"make -C {clone} clean"


def test_installed_extras_are_detected() -> None:
    assert {"embed", "pdf", "postgres"} <= extras.installed_extras()
