"""What of a client's hooks the version on this machine takes."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache

from sources.client import Client

_PATIENCE_S = 10
_VERSION = re.compile(r"\d+(?:\.\d+)+")


def for_its_version(client: Client) -> Client:
    """The client without the events that its version is too old for. One that tells no version is taken for new."""
    hooks = client.hooks
    newer = hooks.newer if hooks else None
    if hooks is None or newer is None:
        return client
    program = shutil.which(newer.program)
    version = _version_of(program) if program else None
    if version is None or version >= newer.version:
        return client
    events = tuple(event for event in hooks.events if event not in newer.events)
    return replace(client, hooks=replace(hooks, events=events))


@cache
def _version_of(program: str) -> tuple[int, ...] | None:
    """Asked once: pages look at connections again and again."""
    try:
        said = subprocess.run(  # noqa: S603, the client
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    found = _VERSION.search(said.stdout)
    return tuple(map(int, found[0].split("."))) if found else None
