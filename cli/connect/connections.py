"""Which clients know us, and what is to be done where they do not: for `ctxr doctor` and the backoffice."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from backoffice.connections import Connection, ConnectionPart, Connections, State
from cli.connect.clients import Client, known_clients
from cli.connect.installation import Part, command_name, parts_of
from cli.connect.settings_files import read
from cli.connect.snippets import SERVER, this_server
from registry.errors import StorageError
from sources.base import Places

RULED = "cursor"
"""The client that has a rule in each project."""


def connections_from(home: Path) -> Connections:
    """Looks at all clients, as seen from a home folder."""
    return partial(_connections, home)


def _connections(home: Path, projects: Sequence[Path]) -> list[Connection]:
    return [connection_of(client, home, projects) for client in known_clients(home)]


def connection_of(client: Client, home: Path, projects: Sequence[Path] = ()) -> Connection:
    """One client; `projects` are folders in which its rule is looked for, if it has one."""
    is_here = client.folder.exists() or _has_store(client, home)
    return Connection(client.name, is_here, list(_parts(client, home, projects)) if is_here else [])


def _has_store(client: Client, home: Path) -> bool:
    from sources.readers import READERS

    places = Places(home, os.environ)
    try:
        return any(reader.name in client.readers and list(reader.find(places)) for reader in READERS)
    except OSError:  # a folder that may not be looked into
        return False


def _parts(client: Client, home: Path, projects: Sequence[Path]) -> Iterator[ConnectionPart]:
    name = command_name(client.name)
    if name is None:
        yield ConnectionPart("server", str(client.config), _is_named(client.config), None)
        return
    server = this_server()
    for part in parts_of(name, server, home):
        yield _looked_at(part, "ctxr", "install", name)
    for project in projects if name == RULED else ():
        rule = next(part for part in parts_of(name, server, home, project) if part.what == "rule")
        yield _looked_at(rule, "ctxr", "install", name, "--project", str(project))


def _looked_at(part: Part, *command: str) -> ConnectionPart:
    shown = subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)
    return ConnectionPart(part.what, str(part.file), _state_of(part), shown)


def _state_of(part: Part) -> State:
    """What installing would change is not installed; what uninstalling would change is something of ours."""
    try:
        text = read(part.file) or ""
        if part.install(text) == text:
            return "installed"
        return "differs" if part.uninstall(text) != text else "missing"
    except (StorageError, ValueError):
        return "unreadable"


def _is_named(file: Path) -> State:
    """Of a client whose settings we do not write."""
    try:
        return "installed" if SERVER in (read(file) or "") else "missing"
    except StorageError:
        return "unreadable"
