"""The facts about one AI client, as one record. Editing the client's files is in `cli.connect`."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_config_path

from registry.domain import Role
from sources.base import Places

PathOf = Callable[[Places], Path]  # where something of the client is, for a home folder and an environment


@dataclass(frozen=True, slots=True)
class Room:
    """The most of a tool's answer that a client passes on to its model, in characters or in bytes of UTF-8."""

    size: int
    in_bytes: bool = False

    def length_of(self, text: str) -> int:
        """Return a text's length as the client counts it."""
        return len(text.encode()) if self.in_bytes else len(text)


# valid in every known client: Codex, the narrowest, cuts an answer at about 12 000 bytes
SAFE_ROOM = Room(9_500, in_bytes=True)


@dataclass(frozen=True, slots=True)
class ServerList:
    """The file in which the client lists its MCP servers below `key`, each with `entry` beside its command.

    `file`: below the client's folder, or a function that finds it. `key`: a name, or a path of names with dots.
    `is_one_command`: program and arguments are one list, `command`, and the variables are in `environment`.
    `in_project`: the path of the same file in a project's folder, if the client reads one there.
    """

    file: str | PathOf
    key: str = "mcpServers"
    format: Literal["json", "toml"] = "json"
    entry: Mapping[str, Any] = field(default_factory=dict)
    is_one_command: bool = False
    in_project: str = ""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The commands that the client runs at its events, listed in `file` in its folder.

    `events`: those that we ask for. `said`: the role and the field of the payload with a message's text, by event;
    other events only trigger a sync of the client's files. `format`: `list` is
    `hooks: {event: [handler]}` and a version, `groups` is `hooks: {event: [{matcher?, hooks: [handler]}]}`. `handler`:
    returns a handler for a command. `plugin`: the program for a client that runs no commands, in which `@HOOK@` stands
    for the words of our command as JSON. `untrusted`: given the file, our events and a pattern of our commands, returns
    the events whose hook the user has to trust first. `is_among_settings`: the file holds other settings too. `acts`:
    the event before a tool runs, and a pattern of the tools that change something. `typed`: returns what the user typed
    in a prompt, in the pieces in which the reader will find it.
    """

    events: tuple[str, ...]
    said: Mapping[str, tuple[Role, str]] = field(default_factory=dict)
    file: str = "hooks.json"
    format: Literal["list", "groups"] = "groups"
    handler: Callable[[str], Mapping[str, Any]] = lambda command: {"type": "command", "command": command}
    plugin: Path | None = None
    untrusted: Callable[[Path, tuple[str, ...], re.Pattern[str]], Sequence[str]] | None = None
    is_among_settings: bool = False
    acts: tuple[str, str] = ("", "")
    typed: Callable[[str], Iterable[str]] | None = None


@dataclass(frozen=True, slots=True)
class Purge:
    """The setting, in a file below its folder, by which the client deletes old conversations itself.

    `setting`: the path of keys to a number of days or a text such as `30d` or `4w`; `days` if it is not set.
    `switch`: the path of keys to a value that ends it if it is false.
    """

    file: str
    setting: tuple[str, ...]
    days: int
    switch: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectRule:
    """A file in a project's folder with our words to the client's model, which are in `text`."""

    file: str
    text: Path


@dataclass(frozen=True, slots=True)
class Client:
    """A client. A field that is left out means that the client does not have it, or that it is not known.

    `source`: the source of its channels, and the name of its reader. `name`: the one that users know.
    `handshake`: its other names in the MCP handshake, in lower case. `folder`: that of its settings.
    `is_logged_by_model`: its model is asked to log each turn, since nothing else captures its chats, or not as soon.
    `room`: measured with the real client, with a margin. `installed_as`: its name for `ctxr install` if it is not the
    source. `project_option`: the effect of `ctxr install --project`. `then`: what the user does after it was
    connected, if not to restart it. `link`, `prompt_link`: addresses that open it and offer to add a server, or with a
    prompt written; our part follows.
    """

    source: str
    name: str
    handshake: tuple[str, ...] = ()
    folder: PathOf | None = None
    servers: ServerList | None = None
    hooks: Hooks | None = None
    rule: ProjectRule | None = None
    purge: Purge | None = None
    is_logged_by_model: bool = False
    room: Room = SAFE_ROOM
    installed_as: str = ""
    project_option: str = ""
    then: str = ""
    link: str = ""
    prompt_link: str = ""

    @property
    def command(self) -> str:
        """Return its name for `ctxr install`; "" if it can only be connected by hand."""
        return self.installed_as or (self.source if self.servers else "")

    @property
    def next_step(self) -> str:
        """Return what the user does after it was connected."""
        return self.then or f"Restart {self.name}."

    def settings_file(self, places: Places, file: str | PathOf) -> Path:
        """Return a file of its settings, which is named below its folder, or found by a function."""
        if callable(file):
            return file(places)
        return self.folder(places) / file if self.folder else Path(file)

    def history_in(self, places: Places) -> Path:
        """Return where it keeps conversations: the folder that `CTXR_<SOURCE>_DIR` names, else its `folder`."""
        usual = [self.folder(places)] if self.folder else []
        return [*places.named(f"CTXR_{self.source.upper().replace('-', '_')}_DIR"), *usual][0]


def settings_of_the_system(name: str) -> Path:
    """Return the folder in which the system keeps the settings of a desktop application."""
    return user_config_path(name, appauthor=False, roaming=True)
