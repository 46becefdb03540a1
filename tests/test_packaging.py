"""The wheel, as someone gets it who never saw this folder."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("registry", "sources", "orchestrator", "mcp_server", "backoffice", "cli")

pytestmark = pytest.mark.timeout(300)


def run(*command: str | Path) -> str:
    """The output of a command that succeeds; it sees nothing of this folder."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, check=True, cwd="/", env=clean, stdout=subprocess.PIPE, text=True).stdout


def pip(*arguments: str | Path) -> str:
    """The output of this environment's pip."""
    return run(sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, freshly built."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ROOT)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs folder of an environment with the wheel and what it asks for, nothing else."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    venv.create(folder)
    into = ("--python", folder / "bin" / "python")
    pip(*into, "install", "--require-hashes", "--requirement", ROOT / "requirements.lock")
    pip(*into, "install", "--no-deps", wheel)
    return folder / "bin"


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    ours = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == ours


def test_the_installed_program_says_how_it_is_doing(installed: Path) -> None:
    pip("--python", installed / "python", "check")
    report = json.loads(run(installed / "ctxr", "doctor", "--json"))
    assert report
