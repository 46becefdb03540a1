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
    until its user trusts it. `command` puts it there; None where only a hand can.
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
    deletes_after_days: float | None = None  # older conversations; None: not known to
    deletes_by: str = ""  # the setting for that, and its file


class ConnectionPlan(NamedTuple):
    """The changes of a client's files that connect or disconnect it; an empty diff: nothing is to change.

    `then`: what its user does afterwards. `write` carries the changes out.
    """

    client: str
    diff: str
    then: str
    write: Callable[[], None]


class Connections(NamedTuple):
    """Look at the clients' files, and plan changes of them.

    `look` takes project folders in which a client may keep a rule; `plan` a client's command, and True to connect it.
    """

    look: Callable[[Sequence[Path]], Sequence[Connection]]
    plan: Callable[[str, bool], ConnectionPlan]
