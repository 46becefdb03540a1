"""Describe how the AI clients of this machine are connected to Context Registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass

State = Literal["installed", "differs", "missing", "unreadable", "untrusted"]


@dataclass(frozen=True, slots=True)
class ConnectionPart:
    """A setting of ours in a client's file."""

    what: Literal["server", "hooks", "rule"]
    file: str
    state: Annotated[
        State,
        Field(
            description="`differs`: ours, but it starts another program, or with other settings; `untrusted`: the"
            " client does not run it until its user trusts it"
        ),
    ]
    command: Annotated[str | None, Field(description="puts it there; null where only a hand can")]


@dataclass(frozen=True, slots=True)
class Connection:
    """An AI client; one that is not on this machine has no parts."""

    client: str
    command: Annotated[str, Field(description="its name on the command line, such as `ctxr install cursor`")]
    is_here: bool
    parts: Sequence[ConnectionPart]
    deletes_after_days: Annotated[
        float | None, Field(description="the client deletes older conversations; null: not known to")
    ] = None
    deletes_by: Annotated[str, Field(description="the setting for that, and its file")] = ""


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
