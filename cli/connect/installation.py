"""What connecting a client means: which of its files say what of us. Pure but for the paths.

Clients refuse files with marks of ours in them, so hooks of ours are recognised by their command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cli.connect.jsonc import append, drop, drop_items, get, is_bare, put
from cli.connect.snippets import SERVER, StdioServer
from cli.connect.toml_tables import drop_table, put_table
from sources.base import Places
from sources.client import Client, Rule, ServerList
from sources.clients import CLIENTS

INSTALLABLE = {client.command: client for client in CLIENTS if client.command}
"""The clients that can be installed, by their names on the command line."""

_HOOKED = "|".join(client.source for client in CLIENTS if client.hooks)
_OURS = re.compile(rf"""(?:\bctxr(?:\.exe)?|\bcli\.entry)["']?\s+hook\s+(?:{_HOOKED})\b""", re.IGNORECASE)

Edit = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a client and what it says of us. The edits take the file's text ("" for none) and give the new
    one; ValueError for a text they cannot change. A file that is empty then is to be removed.
    """

    what: str
    file: Path
    install: Edit
    uninstall: Edit


def parts_of(client: Client, server: StdioServer, places: Places, project: Path | None = None) -> Iterator[Part]:
    """Everything that connects a client, here or in a project's folder where it has a list or a rule of its own."""
    if client.servers:
        yield _server(client.servers, server, places, project)
    if client.hooks and client.folder:
        commands = {event: server.hook_command(client.source, event) for event in client.hooks.events}
        put_in, take_out = _HOOK_FORMATS[client.hooks.format]
        yield Part("hooks", client.folder(places) / client.hooks.file, partial(put_in, commands), take_out)
    if client.rule and project:
        yield _rule(client.rule, project)


def _server(listed: ServerList, server: StdioServer, places: Places, project: Path | None) -> Part:
    file = project / listed.in_project if project and listed.in_project else listed.file(places)
    path, entry = (listed.key, SERVER), {**listed.entry, **server.entry()}
    if listed.format == "toml":
        return Part("server", file, lambda text: put_table(text, path, entry), lambda text: drop_table(text, path))
    return Part(
        "server", file, lambda text: put(text, path, entry), lambda text: _nothing_if_bare(text, drop(text, path))
    )


def _rule(rule: Rule, project: Path) -> Part:
    return Part("rule", project / rule.file, lambda _: rule.text, lambda _: "")


def _with_listed_hooks(commands: Mapping[str, str], text: str) -> str:
    """`hooks: {event: [{command}]}`, and a version."""
    text = _without_listed_handlers(text, set(commands.values()))
    if get(text, ("version",)) is None:
        text = put(text, ("version",), 1)
    for event, command in commands.items():
        if command not in _commands(get(text, ("hooks", event))):
            text = append(text, ("hooks", event), {"command": command})
    return text


def _without_listed_hooks(text: str) -> str:
    rest = _without_listed_handlers(text, set())
    return rest if rest == text or not is_bare(drop(rest, ("version",))) else ""


def _without_listed_handlers(text: str, wanted: set[str]) -> str:
    for event in _keys(get(text, ("hooks",))):
        text = drop_items(text, ("hooks", event), lambda handler: _is_ours(handler, wanted))
    return text


def _with_grouped_hooks(commands: Mapping[str, str], text: str) -> str:
    """`hooks: {event: [{matcher?, hooks: [{type, command}]}]}`."""
    text = _without_grouped_handlers(text, set(commands.values()))
    for event, command in commands.items():
        groups = get(text, ("hooks", event))
        present = [each for group in _items(groups) for each in _commands(_members(group).get("hooks"))]
        if command not in present:
            text = append(text, ("hooks", event), {"hooks": [{"type": "command", "command": command}]})
    return text


def _without_grouped_hooks(text: str) -> str:
    return _nothing_if_bare(text, _without_grouped_handlers(text, set()))


def _without_grouped_handlers(text: str, wanted: set[str]) -> str:
    for event in _keys(get(text, ("hooks",))):
        for index in reversed(range(len(_items(get(text, ("hooks", event)))))):
            path = "hooks", event, index, "hooks"
            text = drop_items(text, path, lambda handler: _is_ours(handler, wanted))
    return text


_HOOK_FORMATS = {
    "list": (_with_listed_hooks, _without_listed_hooks),
    "groups": (_with_grouped_hooks, _without_grouped_hooks),
}
"""How hooks are put in and taken out."""


def _is_ours(handler: Any, wanted: set[str]) -> bool:
    """Whether a hook runs us, but in another way than is wanted."""
    command = _members(handler).get("command")
    return isinstance(command, str) and command not in wanted and _OURS.search(command) is not None


def _commands(handlers: Any) -> list[Any]:
    return [_members(handler).get("command") for handler in _items(handlers)]


def _nothing_if_bare(text: str, rest: str) -> str:
    """What is left of a text; a file that held only us goes."""
    return "" if rest != text and is_bare(rest) else rest


def _members(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _keys(value: Any) -> list[str]:
    return list(_members(value))
