"""The record of facts about an AI client. `cli.connect` edits the client's files."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from platformdirs import user_config_path

from registry.domain import Role
from sources.base import Paths

PathOf = Callable[[Paths], Path]  # finds a file or folder of the client


@dataclass(frozen=True, slots=True)
class SizeLimit:
    """The longest tool answer that a client passes to its model, in characters or in bytes of UTF-8."""

    size: int
    in_bytes: bool = False

    def length_of(self, text: str) -> int:
        return len(text.encode()) if self.in_bytes else len(text)


# small enough for every known client: Codex has the lowest limit, about 12 000 bytes
SAFE_LIMIT = SizeLimit(9_500, in_bytes=True)


@dataclass(frozen=True, slots=True)
class ServerList:
    """The file in which the client lists its MCP servers.

    Args:
        file: its path below the client's folder, or a function that finds it.
        key: the path of keys to the list, with dots.
        entry: fields of a server's entry in addition to its command.
        is_one_command: program and arguments are one list, `command`, and the variables are in `environment`.
        in_project: the path of such a file in a project's folder, if the client reads one there.
    """

    file: str | PathOf
    key: str = "mcpServers"
    format: Literal["json", "toml"] = "json"
    entry: Mapping[str, Any] = field(default_factory=dict)
    is_one_command: bool = False
    in_project: str = ""


@dataclass(frozen=True, slots=True)
class Hooks:
    """The commands that the client runs at its events.

    Args:
        events: the events for which we install a command.
        message_fields: the role, and the payload's field with the text, by event; other events only trigger a sync.
        file: the file in the client's folder that lists the commands.
        format: of `hooks`: `list` is `{event: [handler]}`, `groups` is `{event: [{matcher?, hooks: [handler]}]}`.
        handler: returns a handler for a command.
        plugin: for a client that runs no commands, a program with `@HOOK@` in place of our command as a JSON list.
        untrusted: given the file, our events and a pattern of our commands, returns the events with untrusted hooks.
        is_among_settings: the file contains other settings too.
        is_strict_json: the client ignores the file if it has a comment or a trailing comma.
        before_tool: the event before a tool runs, and a pattern of the tools that change files or run commands.
        typed: returns the parts of a prompt that the user typed, split as the reader splits them.
    """

    events: tuple[str, ...]
    message_fields: Mapping[str, tuple[Role, str]] = field(default_factory=dict)
    file: str = "hooks.json"
    format: Literal["list", "groups"] = "groups"
    handler: Callable[[str], Mapping[str, Any]] = lambda command: {"type": "command", "command": command}
    plugin: Path | None = None
    untrusted: Callable[[Path, tuple[str, ...], re.Pattern[str]], Sequence[str]] | None = None
    is_among_settings: bool = False
    is_strict_json: bool = False
    before_tool: tuple[str, str] = ("", "")
    typed: Callable[[str], Iterable[str]] | None = None


@dataclass(frozen=True, slots=True)
class Purge:
    """The setting, in a file below its folder, that makes the client delete old conversations.

    `setting`: the path of keys to a number of days or a text such as `30d` or `4w`; `days`: the default.
    `switch`: the path of keys to a value that turns deletion off if it is false.
    """

    file: str
    setting: tuple[str, ...]
    days: int
    switch: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectRule:
    """A file in a project's folder with our instructions for the client's model; `text` is their template."""

    file: str
    text: Path


@dataclass(frozen=True, slots=True)
class Client:
    """A client. An omitted field means that the client does not have it, or that it is unknown.

    Args:
        source: the source of its channels, and the name of its reader.
        name: the name that users know.
        handshake: its other names in the MCP handshake, in lower case.
        folder: the folder of its settings.
        is_logged_by_model: its model is asked to log each turn, because nothing else captures its chats as soon.
        answer_limit: the limit measured with the real client, with a margin.
        installed_as: its name for `ctxr install`, if it is not the source.
        project_option: the effect of `ctxr install --project`.
        after_connecting: the user's next step, if it is not a restart.
        link, prompt_link: the beginning of URLs that open the client to add a server, or with a prompt.
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
    answer_limit: SizeLimit = SAFE_LIMIT
    installed_as: str = ""
    project_option: str = ""
    after_connecting: str = ""
    link: str = ""
    prompt_link: str = ""

    @property
    def command(self) -> str:
        """Return its name for `ctxr install`; "" if it can only be connected manually."""
        return self.installed_as or (self.source if self.servers else "")

    @property
    def next_step(self) -> str:
        return self.after_connecting or f"Restart {self.name}."

    def settings_file(self, paths: Paths, file: str | PathOf) -> Path:
        """Return the path of a settings file, given below the client's folder or by a function."""
        if callable(file):
            return file(paths)
        return self.folder(paths) / file if self.folder else Path(file)

    def history_in(self, paths: Paths) -> Path:
        """Return the folder of its conversations: the one named by `CTXR_<SOURCE>_DIR`, else its `folder`."""
        usual = [self.folder(paths)] if self.folder else []
        return [*paths.named(f"CTXR_{self.source.upper().replace('-', '_')}_DIR"), *usual][0]


def system_settings_folder(name: str) -> Path:
    """Return the operating system's folder for the settings of a desktop application."""
    return user_config_path(name, appauthor=False, roaming=True)
