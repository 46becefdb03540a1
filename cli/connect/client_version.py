"""Leave out hook events that the installed version of a client does not know."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache

from sources.client import Client


def for_its_version(client: Client) -> Client:
    """Return the client without the events that its version is too old for; an unknown version counts as new."""
    hooks = client.hooks
    newer = hooks.newer if hooks else None
    program = shutil.which(newer.program) if newer else None
    version = _version_of(program) if program else None
    if hooks is None or newer is None or version is None or version >= newer.version:
        return client
    events = tuple(event for event in hooks.events if event not in newer.events)
    return replace(client, hooks=replace(hooks, events=events))


@cache
def _version_of(program: str) -> tuple[int, ...] | None:
    """Run `--version`, once for each program: pages look at connections again and again."""
    command = [program, "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)  # noqa: S603
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = re.search(r"\d+(?:\.\d+)+", done.stdout)
    return tuple(map(int, found[0].split("."))) if found else None
