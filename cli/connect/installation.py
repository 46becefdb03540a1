"""The parts that connect a client: which of its files hold an entry of ours, and how it is put in and taken out.

Clients refuse unknown keys, so our hooks are recognised by their command.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from cli.connect.jsonc import append, drop, drop_items, get, is_bare, put
from cli.connect.snippets import SERVER, StdioServer
from cli.connect.toml_tables import drop_table, put_table
from sources.base import Places
from sources.client import Client, Hooks, ServerList
from sources.clients import CLIENTS

INSTALLABLE = {client.command: client for client in CLIENTS if client.command}
"""The clients that can be installed, by their names on the command line."""

_HOOKED = "|".join(client.source for client in CLIENTS if client.hooks)
OURS = re.compile(rf"""(?:\bctxr(?:\.exe)?|\bcli\.entry)["']?\s+hook\s+(?:{_HOOKED})\b""", re.IGNORECASE)
"""Matches a command that runs our hook."""

Edit = Callable[[str], str]
Handlers = Mapping[str, Mapping[str, Any]]
"""A hook's handler, by event."""


@dataclass(frozen=True, slots=True)
class ClientPart:
    """A file of a client with our entry in it. The edits take the file's text ("" for no file) and return the new one.

    They raise ValueError for a text they cannot change. A file that is empty afterwards is removed.
    """

    what: Literal["server", "hooks", "rule"]
    file: Path
    install: Edit
    uninstall: Edit
    is_private: bool = False
    """It holds other settings too, such as keys and tokens: no copy of it may be left behind."""


def parts_of(client: Client, server: StdioServer, places: Places, project: Path | None = None) -> Iterator[ClientPart]:
    """Return everything that connects a client, in the home folder or in a project's folder."""
    if client.servers:
        yield _server(client, client.servers, server_of(client, server), places, project)
    if client.hooks and client.folder:
        yield _hooks(client.source, client.hooks, server, client.folder(places) / client.hooks.file)
    if client.rule and project:
        text = client.rule.text.read_text(encoding="utf-8")
        yield ClientPart("rule", project / client.rule.file, lambda _: text, lambda _: "")


def server_of(client: Client, server: StdioServer) -> StdioServer:
    """Return the server as a client starts it whose hooks we install, if it has any."""
    # The record of a client that is not logged by its model says already that its chats are captured.
    return server.started_by(client, is_captured=client.is_logged_by_model and client.hooks is not None)


def _server(
    client: Client, listed: ServerList, server: StdioServer, places: Places, project: Path | None
) -> ClientPart:
    file = client.settings_file(places, listed.file)
    if project and listed.in_project:
        file = project / listed.in_project
    path = (*listed.key.split("."), SERVER)
    entry = {**listed.entry, **(server.one_command() if listed.is_one_command else server.entry())}
    if listed.format == "toml":
        return ClientPart(
            "server", file, lambda text: put_table(text, path, entry), lambda text: drop_table(text, path), True
        )
    return ClientPart(
        "server", file, lambda text: put(text, path, entry), lambda text: _nothing_if_bare(text, drop(text, path)), True
    )


def _hooks(source: str, hooks: Hooks, server: StdioServer, file: Path) -> ClientPart:
    if hooks.plugin:
        text = hooks.plugin.read_text(encoding="utf-8")
        plugin = text.replace("@HOOK@", json.dumps(server.hook_words(source)))
        return ClientPart("hooks", file, lambda _: plugin, lambda _: "", is_private=True)
    handlers = {event: hooks.handler(server.hook_command(source, event)) for event in hooks.events}
    if hooks.format == "list":
        return ClientPart("hooks", file, partial(_put_listed, handlers), _drop_listed, hooks.is_among_settings)
    put_grouped = partial(_put_grouped, handlers, dict([hooks.acts]))
    return ClientPart("hooks", file, put_grouped, _drop_grouped, hooks.is_among_settings)


def _put_listed(handlers: Handlers, text: str) -> str:
    """Add hooks to `hooks: {event: [handler]}` and a version."""
    text = _drop_listed_handlers(text, handlers)
    if get(text, ("version",)) is None:
        text = put(text, ("version",), 1)
    for event, handler in handlers.items():
        if handler not in _items(get(text, ("hooks", event))):
            text = append(text, ("hooks", event), handler)
    return text


def _drop_listed(text: str) -> str:
    rest = _drop_listed_handlers(text, {})
    return rest if rest == text or not is_bare(drop(rest, ("version",))) else ""


def _drop_listed_handlers(text: str, wanted: Handlers) -> str:
    for event in _members(get(text, ("hooks",))):
        text = drop_items(text, ("hooks", event), partial(_is_outdated, wanted.get(event)))
    return text


def _put_grouped(handlers: Handlers, matchers: Mapping[str, str], text: str) -> str:
    """Add hooks to `hooks: {event: [{matcher?, hooks: [handler]}]}`."""
    text = _drop_grouped_handlers(text, handlers)
    for event, handler in handlers.items():
        groups = _items(get(text, ("hooks", event)))
        if not any(handler in _items(_members(group).get("hooks")) for group in groups):
            matcher = {"matcher": matchers[event]} if event in matchers else {}
            text = append(text, ("hooks", event), {**matcher, "hooks": [handler]})
    return text


def _drop_grouped(text: str) -> str:
    return _nothing_if_bare(text, _drop_grouped_handlers(text, {}))


def _drop_grouped_handlers(text: str, wanted: Handlers) -> str:
    for event in _members(get(text, ("hooks",))):
        for index in reversed(range(len(_items(get(text, ("hooks", event)))))):
            text = drop_items(text, ("hooks", event, index, "hooks"), partial(_is_outdated, wanted.get(event)))
        text = drop_items(text, ("hooks", event), lambda group: _members(group).keys() == {"matcher"})  # it was ours
    return text


def _is_outdated(wanted: Mapping[str, Any] | None, handler: Any) -> bool:
    """Return whether a handler runs our hook, but differs from the wanted one."""
    if handler == wanted:
        return False
    commands = (_members(handler).get(name) for name in ("command", "bash", "powershell"))
    return any(isinstance(command, str) and OURS.search(command) for command in commands)


def _nothing_if_bare(text: str, rest: str) -> str:
    return "" if rest != text and is_bare(rest) else rest


def _members(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
