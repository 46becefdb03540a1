"""What the product knows of one AI client, as one record of facts. How its files are edited is `cli.connect`'s."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from platformdirs import user_config_path

from registry.domain import Role
from sources.base import Places

if TYPE_CHECKING:
    import re

Place = Callable[[Places], Path]
"""Where something of the client's is, on a machine whose home folder and environment these are."""


@dataclass(frozen=True, slots=True)
class Room:
    """How much of a tool's answer a client passes on to its model, in characters or in bytes of UTF-8."""

    size: int
    in_bytes: bool = False

    def length_of(self, text: str) -> int:
        """Return a text's length as the client counts it."""
        return len(text.encode()) if self.in_bytes else len(text)


SAFE_ROOM = Room(9_500, in_bytes=True)
"""Valid in every known client: Codex, the narrowest, cuts an answer at about 12 000 bytes."""


@dataclass(frozen=True, slots=True)
class ServerList:
    """The file in which the client lists its MCP servers: below `key`, each with `entry` beside its command."""

    file: Place
    key: str = "mcpServers"
    format: Literal["json", "toml"] = "json"
    entry: Mapping[str, Any] = field(default_factory=dict)
    is_one_command: bool = False
    """The program and its arguments stand in one list, `command`, and the variables in `environment`."""
    in_project: str = ""
    """The same file in a project's folder, where the client has one."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The commands that the client runs at its events: `file` in its folder names them."""

    events: tuple[str, ...]
    """Those that we ask to be told of."""
    said: Mapping[str, tuple[Role, str]]
    """Who says what in which event: the field of its payload. All other events tell only that there is news."""
    start: str = ""
    """The event of a chat's beginning, at which it takes in a note."""
    file: str = "hooks.json"
    format: Literal["list", "groups", "plugin"] = "groups"
    """`hooks: {event: [handler]}` and a version, `hooks: {event: [{matcher?, hooks: [handler]}]}`, or a program."""
    handler: Callable[[str], Mapping[str, Any]] = lambda command: {"type": "command", "command": command}
    """How a handler with a command is written."""
    plugin: str = ""
    """The program that tells us, where the client runs no commands; `@HOOK@` stands for the words of ours, as JSON."""
    untrusted: Callable[[Path, tuple[str, ...], re.Pattern[str]], Sequence[str]] | None = None
    """Of its file, our events and what our commands look like: the events whose hook the client does not run yet,
    where its user has to trust them first."""
    is_among_settings: bool = False
    """The file holds other settings, too."""
    typed: Callable[[str], Iterable[str]] | None = None
    """What of a prompt the user typed, in the very pieces in which the client's reader will find it."""


@dataclass(frozen=True, slots=True)
class Purge:
    """That the client deletes its old conversations by itself, and where that is set."""

    file: Place
    setting: tuple[str, ...]
    """The path of keys to how long it keeps them: days, or a text such as `30d` or `4w`."""
    days: int
    """How long it keeps them where nothing is set."""
    switch: tuple[str, ...] = ()
    """The path of keys that, false, ends it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A file in a project's folder with our words to the client's model; `alone` for a project without hooks."""

    file: str
    text: str
    alone: str


@dataclass(frozen=True, slots=True)
class Client:
    """One client. What is left out it does not have, or we do not know."""

    source: str
    """Our word for it: the source of its channels, and the name of its reader."""
    name: str
    """What its users call it."""
    handshake: tuple[str, ...] = ()
    """The names that it gives itself in the MCP handshake, in lower case."""
    history: str = ""
    """Where it keeps its conversations on this machine, and the variables that name another place, in Markdown."""
    history_name: str = ""
    """What these are called, if the client has another name."""
    shown_by: tuple[str, ...] = ()
    """The readers whose stores show that it is on this machine, wherever its settings stand."""
    folder: Place | None = None
    """Where its settings stand: a folder that shows that it is installed."""
    servers: ServerList | None = None
    hooks: Hooks | None = None
    rule: Rule | None = None
    purge: Purge | None = None
    is_logged_by_model: bool = False
    """Its model is asked to log each turn: nothing else brings its chats, or nothing as soon and as surely."""
    room: Room = SAFE_ROOM
    """Measured with the real client, with a margin."""
    command: str = ""
    """Its name for `ctxr install`; "" where only a hand can connect it."""
    project_option: str = ""
    """What `ctxr install --project` does for it."""
    then: str = ""
    """What the user does after it was connected."""
    link: str = ""
    """An address that opens it and offers to add a server, but for the server."""
    prompt_link: str = ""
    """The beginning of an address that opens it with a prompt written, which the user sends; the prompt follows."""


def settings_of_the_system(name: str) -> Path:
    """Where the system keeps the settings of an application with windows."""
    return user_config_path(name, appauthor=False, roaming=True)
