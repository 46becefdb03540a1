"""Which clients on this machine know us: the shape of the answer. Who knows is the composition root."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["installed", "differs", "missing", "unreadable", "untrusted"]
"""`differs`: there is something of ours, but it starts another program, or with other settings. `untrusted`: it is
there, and the client does not run it until its user trusts it."""


@dataclass(frozen=True, slots=True)
class ConnectionPart:
    """A part that connects a client (`server`, `hooks` or `rule`) and the file it belongs into.

    `command` puts it there; None where only a hand can.
    """

    what: str
    file: str
    state: State
    command: str | None


@dataclass(frozen=True, slots=True)
class Connection:
    """A client of this machine; one that is not here has no parts."""

    client: str
    is_here: bool
    parts: Sequence[ConnectionPart]
    deletes_after_days: float | None = None
    """What is older it deletes from its own store; None: nothing, as far as is known."""
    deletes_by: str = ""
    """The setting that says so, and its file."""


Connections = Callable[[Sequence[Path]], Sequence[Connection]]
"""Looks at the clients' files. Given: project folders in which a client may keep a rule."""


def no_connections(_projects: Sequence[Path]) -> Sequence[Connection]:
    """Return no connections."""
    return ()
