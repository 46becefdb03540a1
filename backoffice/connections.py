"""Describe how the AI clients of this machine are connected to Context Registry."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

State = Literal["installed", "differs", "missing", "unreadable", "untrusted"]


@dataclass(frozen=True, slots=True)
class ConnectionPart:
    """A setting of ours in a client's file.

    `differs`: ours, but it starts another program, or with other settings. `untrusted`: the client does not run it
    until its user trusts it. `command` installs it; None if it can only be written by hand.
    """

    what: Literal["server", "hooks", "rule"]
    file: str
    state: State
    command: str | None


@dataclass(frozen=True, slots=True)
class Connection:
    """An AI client, with its name on the command line; one that is not on this machine has no parts."""

    client: str
    command: str
    is_here: bool
    parts: Sequence[ConnectionPart]
    deletes_after_days: float | None = None  # older conversations; None: it is not known to delete any
    deletes_by: str = ""  # the setting for that, and its file


class ConnectionPlan(NamedTuple):
    """The changes of a client's files that connect or disconnect it; an empty diff: nothing to change.

    `then`: what its user does afterwards. `write` carries the changes out.
    """

    client: str
    diff: str
    then: str
    write: Callable[[], None]


class Connections(NamedTuple):
    """Inspect the clients' files, and plan changes to them.

    `inspect` takes project folders that may hold a client's rule; `plan` a client's command, and True to connect it.
    """

    inspect: Callable[[Sequence[Path]], Sequence[Connection]]
    plan: Callable[[str, bool], ConnectionPlan]
