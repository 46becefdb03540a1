"""How an extra is added to the environment that this program runs in, wherever that is."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec


def install_command(extra: str) -> str:
    """The shell command that installs an extra for this program, not for another Python on the PATH."""
    pip = [sys.executable, "-m", "pip", "install"]
    uv = ["uv", "pip", "install", "--python", sys.executable]  # what it installs has no pip
    return shlex.join([*(pip if find_spec("pip") else uv), f"context-registry[{extra}]"])
