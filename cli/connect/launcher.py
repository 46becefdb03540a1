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

_SCRIPT = """#!/bin/sh
# Starts Context Registry, wherever it is installed now. `ctxr install` writes this file.
run() {{
  first=$1; shift
  [ -x "$first" ] && [ "$first" != "$0" ] && exec "$first" "$@"
}}
run {program} "$@"
run "$HOME/.local/bin/ctxr" "$@"
run "$(command -v ctxr)" "$@"
for uvx in {uvx} "$(command -v uvx)" "$HOME/.local/bin/uvx"; do
  run "$uvx" --from context-registry=={version} ctxr "$@"
done
echo "error: Context Registry is not installed any more." >&2
echo "Install it (uv tool install context-registry), or remove its entry from this client's settings." >&2
exit 127
"""


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
    words = {"program": shlex.join(program), "uvx": shlex.quote(shutil.which("uvx") or "")}
    replace_file(file, _SCRIPT.format(**words, version=version("context-registry")))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
