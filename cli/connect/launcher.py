"""Write the launcher: the one path in clients' settings that survives upgrades, cache cleans and moved clones."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from cli.connect.settings_files import replace_file
from registry.settings import default_home


def launcher_file() -> Path | None:
    """Return where the launcher stands; None on Windows, where clients start no shell scripts."""
    return None if os.name == "nt" else default_home() / "bin" / "ctxr"


def write_launcher(program: Sequence[str]) -> None:
    """Let the launcher start this program first; others that are installed are its fallbacks."""
    file = launcher_file()
    if file is None:
        return
    # In one step: a client may start it at this moment.
    # A client that is no child of a shell has little on its PATH, so where uvx is now is kept.
    words = {"PROGRAM": shlex.join(program), "UVX": shlex.quote(shutil.which("uvx") or "")}
    script = Path(__file__).with_suffix(".sh").read_text(encoding="utf-8")
    for name, word in {**words, "VERSION": version("context-registry")}.items():
        script = script.replace(f"@{name}@", word)
    replace_file(file, script)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
