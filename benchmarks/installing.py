"""Install the wheel of this checkout in an empty home, in every way: python -m benchmarks.installing [WAY …]

Needs uv and pipx on the PATH; dependencies come from the index that pip and uv use. Each way is timed from the start of
the installation to the first quoted result of `ctxr try`. Then all clients are connected, the program is upgraded ten
times and uv's cache is cleaned; after each step every client's entry is started. At the end the program is removed with
the command that `ctxr uninstall --all` prints.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from importlib.metadata import version
from operator import getitem
from pathlib import Path
from typing import Any

from benchmarks.setup.figures import table
from benchmarks.setup.homes import write_home
from benchmarks.setup.servers import ROOT
from cli.connect.snippets import SERVER
from sources.base import Paths
from sources.clients import CLIENTS

NAME, OURS = "context-registry", version("context-registry")
UPGRADES = 10
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INSTALLERS = (".cache", ".local/share/uv", ".local/share/pipx", ".local/state/pipx", ".rustup", "venv")
"""Folders in a home that belong to installers; pip runs rustc, which creates `.rustup`."""


@dataclass(frozen=True)
class Way:
    """Shell commands of one way to install: install, upgrade, and run the program."""

    install: str
    upgrade: str
    ctxr: str = "ctxr"


WAYS = {
    "uvx": Way(f"uvx {NAME} --version", f"uvx {NAME}@latest install --all --yes", f"uvx {NAME}"),
    "uv tool": Way(f"uv tool install {NAME}", f"uv tool upgrade {NAME}"),
    "pipx": Way(f"pipx install {NAME}", f"pipx upgrade {NAME}"),
    "pip": Way(
        f"{sys.executable} -m venv ~/venv && ~/venv/bin/pip install {NAME}",
        f"~/venv/bin/pip install --upgrade {NAME}",
        "~/venv/bin/ctxr",
    ),
}


@dataclass(frozen=True)
class Home:
    """A home folder with a small history, and the folder of wheels that its installers find."""

    folder: Path
    wheels: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CTXR_", "XDG_", "PYTHON"))}
        path = f"{self.folder / '.local' / 'bin'}:{kept['PATH']}"
        found = {name: str(self.wheels) for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS")}
        return {**kept, **found, "HOME": str(self.folder), "PATH": path}

    def run(self, command: str) -> str:
        """Run a shell command, answer its questions with yes, and return its output. AssertionError if it fails."""
        done = subprocess.run(
            ("sh", "-c", command),
            env=self.environment,
            cwd=self.folder,
            input="y\n" * 9,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def files(self) -> set[str]:
        """Return all files except those of the installers."""
        found = (file.relative_to(self.folder).as_posix() for file in self.folder.rglob("*") if not file.is_dir())
        return {file for file in found if not file.startswith(INSTALLERS)}

    def count_answering_clients(self) -> str:
        """Start each client's entry with a minimal PATH, as clients do; return how many answer."""
        entries = list(self._entries())
        environment = {**self.environment, "PATH": "/usr/bin:/bin"}
        answers = 0
        for words in entries:
            client = subprocess.Popen(
                words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            with client:
                assert client.stdin
                assert client.stdout
                client.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
                client.stdin.flush()
                answers += b"serverInfo" in client.stdout.readline()
                client.stdin.close()
        return f"{answers} of {len(entries)}"

    def _entries(self) -> Iterator[list[str]]:
        paths = Paths(self.folder, {})
        for client in CLIENTS:
            if client.servers:
                text = client.settings_file(paths, client.servers.file).read_text(encoding="utf-8")
                read = tomllib.loads if client.servers.format == "toml" else json.loads
                entry: dict[str, Any] = reduce(getitem, [*client.servers.key.split("."), SERVER], read(text))
                words = entry["command"]
                yield words if isinstance(words, list) else [words, *entry["args"]]


def measure(way: Way, home: Home, later: list[Path]) -> tuple[str, ...]:
    """Install, try, connect, upgrade and remove; return the table row without its name."""
    before, began = home.files(), time.monotonic()
    home.run(way.install)
    installed = time.monotonic()
    words = ("sh", "-c", f"{way.ctxr} try")
    tried = subprocess.Popen(words, env=home.environment, stdout=subprocess.PIPE, text=True)
    assert tried.stdout
    found = next(time.monotonic() for line in tried.stdout if line.startswith("and gets this"))
    [removal] = [line for line in tried.stdout if line.startswith("Remove it:")]
    home.run(removal.removeprefix("Remove it:").partition("(")[0])
    home.run(f"{way.ctxr} install --all --yes")
    answers = [home.count_answering_clients()]
    for wheel in later:
        shutil.copy(wheel, home.wheels)
        home.run(way.upgrade)
        answers.append(home.count_answering_clients())
    home.run("uv cache clean")
    answers.append(home.count_answering_clients())
    how_to_remove = home.run(f"{way.ctxr} uninstall --all --yes").splitlines()[-1]
    home.run(how_to_remove.partition(": ")[2])
    left = ", ".join(sorted(home.files() ^ before)) or "none"
    return f"{installed - began:.1f}", f"{found - began:.1f}", " / ".join(sorted(set(answers))), left


def later_versions(wheel: Path, folder: Path) -> Iterator[Path]:
    """Yield copies of the wheel with higher versions."""
    old = f"{OURS}.dist-info"
    for number in range(1, UPGRADES + 1):
        new = f"{OURS}.{number}"
        file = folder / wheel.name.replace(OURS, new)
        with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(file, "w") as made:
            for name in given.namelist():
                content = given.read(name)
                if name.endswith("METADATA"):
                    content = content.replace(f"\nVersion: {OURS}".encode(), f"\nVersion: {new}".encode())
                if name.endswith("RECORD"):  # without digests, which are optional
                    lines = content.decode().replace(old, f"{new}.dist-info").splitlines()
                    content = "".join(f"{line.rsplit(',', 2)[0]},,\n" for line in lines).encode()
                made.writestr(name.replace(old, f"{new}.dist-info"), content)
        yield file


def downloaded(wheel: Path, folder: Path) -> list[str]:
    """Return the total size of the packages that pip downloads, and the three largest."""
    fetch = (sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), str(wheel))
    subprocess.run(fetch, check=True, capture_output=True)
    sizes = sorted(
        ((file.stat().st_size / 1e6, file.name.partition("-")[0]) for file in folder.iterdir()), reverse=True
    )
    total = f"{sum(size for size, _ in sizes):.1f} MB in {len(sizes)} packages"
    return [total, *(f"{name} {size:.1f} MB" for size, name in sizes[:3])]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.installing", description=__doc__)
    parser.add_argument("ways", nargs="*", metavar="WAY", help=", ".join(WAYS))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder / "built"))
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        [wheel] = (folder / "built").iterdir()
        (folder / "later").mkdir()
        later = list(later_versions(wheel, folder / "later"))
        rows: list[tuple[str, ...]] = []
        for way in parser.parse_args().ways or WAYS:
            home = Home(folder / way, folder / f"wheels-{len(rows)}")
            os.environ["HOME"] = str(home.folder)  # some clients' folders depend on it
            write_home(home.folder, {"claude-code": 3, "codex": 2})
            for client in CLIENTS:
                if client.folder:
                    client.folder(Paths(home.folder, {})).mkdir(parents=True, exist_ok=True)
            home.wheels.mkdir()
            shutil.copy(wheel, home.wheels)
            rows.append((way, *measure(WAYS[way], home, later)))
        print(table(("", "installed, s", "first quoted result, s", "entries that answer", "files left"), rows))
        print(", ".join(downloaded(wheel, folder / "downloaded")))


if __name__ == "__main__":
    main()
