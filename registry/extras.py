"""Build the shell commands that install an extra or uninstall this program, for the installer that was used."""

import json
import re
import shlex
import sys
from collections import defaultdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

PROGRAM = "context-registry"


def installer() -> Literal["uv tool", "pipx", "uvx", "brew", "pip"]:
    """Return the installer of this program's environment, recognised by the files that it leaves there."""
    environment = Path(sys.prefix)
    if (environment / "uv-receipt.toml").exists():
        return "uv tool"
    if (environment / "pipx_metadata.json").exists():
        return "pipx"
    if "Cellar" in environment.parts:  # Homebrew's installation folder
        return "brew"
    # uvx creates its environments in uv's cache.
    return "uvx" if any((folder / "CACHEDIR.TAG").exists() for folder in environment.parents) else "pip"


@cache
def install_command(extra: str) -> str:
    """Return the shell command that installs an extra for this program, not for another Python on the PATH."""
    clone = _clone()
    if clone and Path(sys.prefix) == clone / ".venv":
        return shlex.join(["make", "-C", str(clone), "up", f"EXTRAS={extra}"])
    if (by := installer()) in ("pip", "brew"):
        uv = ["uv", "pip", "install", "--python", sys.executable]  # environments made by uv have no pip
        words = [sys.executable, "-m", "pip", "install"] if find_spec("pip") else uv
    else:
        # These reinstall the program, so the command also lists the extras that are installed.
        words = ["pipx", "install", "--force"] if by == "pipx" else ["uv", "tool", "install"]
        extra = ",".join(sorted({extra, *installed_extras()}))
    return shlex.join([*words, *(["--editable"] if clone else []), _with_extra(extra, clone)])


def uninstall_command() -> str:
    """Return the shell command that removes this program."""
    if clone := _clone():
        return shlex.join(["make", "-C", str(clone), "clean"])
    commands = {
        "uv tool": ["uv", "tool", "uninstall"],
        "pipx": ["pipx", "uninstall"],
        "uvx": ["uv", "cache", "clean"],
        "brew": ["brew", "uninstall"],
        "pip": [sys.executable, "-m", "pip", "uninstall"],
    }
    return shlex.join([*commands[installer()], PROGRAM])


def installed_extras() -> set[str]:
    from importlib.metadata import distribution, packages_distributions

    installed = {name.lower() for names in packages_distributions().values() for name in names}
    needed = defaultdict(set)
    for line in distribution(PROGRAM).requires or ():
        if found := re.match(r"([\w.-]+).*extra == [\"'](\w+)", line):
            needed[found[2]].add(found[1].lower())
    return {extra for extra, names in needed.items() if names <= installed}


def _with_extra(extra: str, clone: Path | None) -> str:
    """Return the requirement with its origin: a package index may have another version than this program's."""
    if clone:
        return f"{clone}[{extra}]"
    origin = _origin()
    url = origin.get("url", "")
    if vcs := origin.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f"{PROGRAM}[{extra}] @ {url}" if url else f"{PROGRAM}[{extra}]"


def _clone() -> Path | None:
    origin = _origin()
    is_editable = origin.get("dir_info", {}).get("editable")
    return Path(url2pathname(urlsplit(origin["url"]).path)) if is_editable else None


@cache
def _origin() -> dict[str, Any]:
    """Return the program's installation source, as PEP 610 records it."""
    from importlib.metadata import PackageNotFoundError, distribution  # takes 40 ms, and is rarely needed

    try:
        origin: dict[str, Any] = json.loads(distribution(PROGRAM).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return {}
    return origin
