"""Name the command that installs an extra into the environment of this program."""

from __future__ import annotations

import json
import shlex
import sys
from functools import cache
from importlib.util import find_spec
from urllib.parse import urlsplit
from urllib.request import url2pathname

PROGRAM = "context-registry"


@cache
def install_command(extra: str) -> str:
    """Return the shell command that installs an extra for this program, not for another Python on the PATH."""
    pip = [sys.executable, "-m", "pip", "install"]
    uv = ["uv", "pip", "install", "--python", sys.executable]  # environments made by uv have no pip
    return shlex.join([*(pip if find_spec("pip") else uv), *_with_extra(extra)])


def _with_extra(extra: str) -> list[str]:
    """This very program with the extra, from where it was installed (PEP 610 says where that is written down): an index
    may have another version, or something else by its name."""
    from importlib.metadata import PackageNotFoundError, distribution  # 40 ms, for who lacks something

    try:
        origin = json.loads(distribution(PROGRAM).read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        origin = {}
    url = origin.get("url", "")
    if origin.get("dir_info", {}).get("editable"):
        return ["--editable", f"{url2pathname(urlsplit(url).path)}[{extra}]"]
    if made := origin.get("vcs_info"):
        url = f"{made['vcs']}+{url}@{made['commit_id']}"
    return [f"{PROGRAM}[{extra}] @ {url}" if url else f"{PROGRAM}[{extra}]"]
