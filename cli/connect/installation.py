"""What connecting a client means: which of its files say what of us (formats/live-capture.md). Pure but for the paths.

Clients refuse files with marks of ours in them, so hooks of ours are recognised by their command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cli.connect.clients import known_clients
from cli.connect.jsonc import append, drop, drop_items, get, is_bare, put
from cli.connect.snippets import CURSOR_RULE_FILE, CURSOR_RULE_WITH_HOOKS, SERVER, StdioServer
from cli.connect.toml_tables import drop_table, put_table

NAMES = {
    "cursor": "Cursor",
    "claude-desktop": "Claude Desktop",
    "claude-code": "Claude Code",
    "vscode": "VS Code",
    "codex": "Codex",
}
"""The clients that can be installed, and their names in `cli.connect.clients`."""

OF_A_PROJECT = ("cursor", "vscode")
"""Those that can keep something of us in a project's folder."""

HOOKS = {
    "cursor": ("beforeSubmitPrompt", "afterAgentResponse", "stop", "sessionEnd"),
    "claude-code": ("UserPromptSubmit", "Stop", "SessionEnd"),
    "codex": ("UserPromptSubmit", "Stop"),
}
"""The events that we ask to be told of."""

_OURS = re.compile(r"""(?:\bctxr(?:\.exe)?|\bcli\.entry)["']?\s+hook\s+(?:cursor|claude-code|codex)\b""", re.IGNORECASE)

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


def command_name(client: str) -> str | None:
    """The client's name on the command line; None for one that cannot be installed."""
    return next((name for name, shown in NAMES.items() if shown == client), None)


def parts_of(client: str, server: StdioServer, home: Path, project: Path | None = None) -> list[Part]:
    """Everything that connects a client, by its name on the command line."""
    found = next(each for each in known_clients(home) if each.name == NAMES[client])
    if client == "vscode":
        file = project / ".vscode" / "mcp.json" if project else found.config
        return [_json_server(file, "servers", {"type": "stdio", **server.entry()})]
    if client == "codex":
        return [_toml_server(found.config, server.entry()), _hooks(found.folder / "hooks.json", client, server)]
    connected = _json_server(found.config, "mcpServers", server.entry())
    if client == "claude-code":
        return [connected, _hooks(found.folder / "settings.json", client, server)]
    if client == "cursor":
        rule = [_rule(project / CURSOR_RULE_FILE)] if project else []
        return [connected, _hooks(found.folder / "hooks.json", client, server), *rule]
    return [connected]


def _json_server(file: Path, key: str, entry: Mapping[str, Any]) -> Part:
    path = key, SERVER
    return Part(
        "server", file, lambda text: put(text, path, entry), lambda text: _nothing_if_bare(text, drop(text, path))
    )


def _toml_server(file: Path, entry: Mapping[str, Any]) -> Part:
    path = "mcp_servers", SERVER
    return Part("server", file, lambda text: put_table(text, path, entry), lambda text: drop_table(text, path))


def _rule(file: Path) -> Part:
    return Part("rule", file, lambda _: CURSOR_RULE_WITH_HOOKS, lambda _: "")


def _hooks(file: Path, client: str, server: StdioServer) -> Part:
    commands = {event: server.hook_command(client, event) for event in HOOKS[client]}
    if client == "cursor":
        return Part("hooks", file, partial(_with_cursor_hooks, commands), _without_cursor_hooks)
    return Part("hooks", file, partial(_with_grouped_hooks, commands), _without_grouped_hooks)


def _with_cursor_hooks(commands: Mapping[str, str], text: str) -> str:
    """Cursor's shape: `hooks: {event: [{command}]}`, and a version."""
    text = _without_cursor_handlers(text, set(commands.values()))
    if get(text, ("version",)) is None:
        text = put(text, ("version",), 1)
    for event, command in commands.items():
        if command not in _commands(get(text, ("hooks", event))):
            text = append(text, ("hooks", event), {"command": command})
    return text


def _without_cursor_hooks(text: str) -> str:
    rest = _without_cursor_handlers(text, set())
    return rest if rest == text or not is_bare(drop(rest, ("version",))) else ""


def _without_cursor_handlers(text: str, wanted: set[str]) -> str:
    for event in _keys(get(text, ("hooks",))):
        text = drop_items(text, ("hooks", event), lambda handler: _is_ours(handler, wanted))
    return text


def _with_grouped_hooks(commands: Mapping[str, str], text: str) -> str:
    """The shape of Claude Code and Codex: `hooks: {event: [{matcher?, hooks: [{type, command}]}]}`."""
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
