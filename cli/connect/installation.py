"""The parts that connect a client: the files that get our entry, and the edits that add and remove it.

Clients refuse unknown keys, so our hooks are recognised by their command.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from cli.connect.snippets import SERVER, StdioServer
from cli.connect.toml_tables import drop_table, put_table
from sources.base import Paths
from sources.client import Client, Hooks, ServerList
from sources.clients import CLIENTS
from sources.kit.jsonc import append, drop, drop_items, get, is_bare, put
from sources.kit.loose_json import items, mapping

INSTALLABLE = {client.command: client for client in CLIENTS if client.command}
"""The clients that can be installed, by their names on the command line."""

_HOOK_CLIENTS = "|".join(client.source for client in CLIENTS if client.hooks)
OUR_HOOK = re.compile(rf"""(?:\bctxr(?:\.exe)?|\bcli\.entry)["']?\s+hook\s+(?:{_HOOK_CLIENTS})\b""", re.IGNORECASE)
"""Matches a command that runs our hook."""

Edit = Callable[[str], str]
Handlers = Mapping[str, Mapping[str, Any]]  # a hook's handler, by event


@dataclass(frozen=True, slots=True)
class ClientPart:
    """A file of a client with our entry in it. The edits take the file's text ("" for no file) and return the new one.

    They raise ValueError for a text they cannot change. A file that is empty afterwards is removed.
    """

    what: Literal["server", "hooks", "rule"]
    file: Path
    install: Edit
    uninstall: Edit
    is_private: bool = False  # it may hold keys and tokens, so no copy of it is kept


def parts_of(client: Client, server: StdioServer, paths: Paths, project: Path | None = None) -> Iterator[ClientPart]:
    """Return everything that connects a client, in the home folder or in a project's folder."""
    if client.servers:
        yield _server(client, client.servers, server_of(client, server), paths, project)
    if client.hooks and client.folder:
        yield _hooks(client.source, client.hooks, server, client.folder(paths) / client.hooks.file)
    if client.rule and project:
        text = client.rule.text.read_text(encoding="utf-8")
        yield ClientPart("rule", project / client.rule.file, lambda _: text, lambda _: "")


def server_of(client: Client, server: StdioServer) -> StdioServer:
    """Return the server as this client starts it: `--captured` if our hooks capture its chats."""
    # If `is_logged_by_model` is False, the client's record already says that its chats are captured.
    return server.started_by(client, is_captured=client.is_logged_by_model and client.hooks is not None)


def _server(client: Client, listed: ServerList, server: StdioServer, paths: Paths, project: Path | None) -> ClientPart:
    file = client.settings_file(paths, listed.file)
    if project and listed.in_project:
        file = project / listed.in_project
    path = (*listed.key.split("."), SERVER)
    entry = {**listed.entry, **(server.one_command() if listed.is_one_command else server.entry())}
    add, remove = (put_table, drop_table) if listed.format == "toml" else (put, drop)
    return ClientPart("server", file, lambda text: add(text, path, entry), lambda text: remove(text, path), True)


def _hooks(source: str, hooks: Hooks, server: StdioServer, file: Path) -> ClientPart:
    if hooks.plugin:
        text = hooks.plugin.read_text(encoding="utf-8")
        plugin = text.replace("@HOOK@", json.dumps(server.hook_words(source)))
        return ClientPart("hooks", file, lambda _: plugin, lambda _: "", is_private=True)
    handlers = {event: hooks.handler(server.hook_command(source, event)) for event in hooks.events}

    def drop_hooks(text: str) -> str:
        rest = _drop_outdated(hooks, {}, text)
        is_version_left = hooks.format == "list" and rest != text and is_bare(drop(rest, ("version",)))
        return "" if is_version_left else rest

    return ClientPart("hooks", file, partial(_put_hooks, hooks, handlers), drop_hooks, hooks.is_among_settings)


def _put_hooks(hooks: Hooks, handlers: Handlers, text: str) -> str:
    if hooks.is_strict_json and not is_bare(text):
        _require_strict_json(text)
    text = _drop_outdated(hooks, handlers, text)
    if hooks.format == "list" and get(text, ("version",)) is None:
        text = put(text, ("version",), 1)
    for event, handler in handlers.items():
        if not any(handler in items(get(text, path)) for path in _lists_of_handlers(hooks, event, text)):
            matcher = {"matcher": hooks.before_tool[1]} if event == hooks.before_tool[0] else {}
            group = handler if hooks.format == "list" else {**matcher, "hooks": [handler]}
            text = append(text, ("hooks", event), group)
    return text


def _require_strict_json(text: str) -> None:
    try:
        json.loads(text.removeprefix("\ufeff"))
    except ValueError as exc:
        raise ValueError(f"With a comment or a trailing comma the client ignores the whole file: {exc}") from exc


def _drop_outdated(hooks: Hooks, wanted: Handlers, text: str) -> str:
    for event in mapping(get(text, ("hooks",))):
        for path in _lists_of_handlers(hooks, event, text):
            text = drop_items(text, path, partial(_is_outdated, wanted.get(event)))
        if hooks.format == "groups":
            text = drop_items(text, ("hooks", event), lambda group: mapping(group).keys() == {"matcher"})  # ours
    return text


def _lists_of_handlers(hooks: Hooks, event: str, text: str) -> list[tuple[str | int, ...]]:
    """Return the paths of the lists of an event's handlers, the last one first."""
    if hooks.format == "list":
        return [("hooks", event)]
    return [("hooks", event, index, "hooks") for index in reversed(range(len(items(get(text, ("hooks", event))))))]


def _is_outdated(wanted: Mapping[str, Any] | None, handler: Any) -> bool:
    """Return whether a handler runs our hook, but differs from the wanted one."""
    if handler == wanted:
        return False
    commands = (mapping(handler).get(name) for name in ("command", "bash", "powershell"))
    return any(isinstance(command, str) and OUR_HOOK.search(command) for command in commands)
