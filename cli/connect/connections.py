"""Which clients know us, and what is to be done where they do not: for `ctxr doctor` and the backoffice."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from backoffice.connections import Connection, ConnectionPart, Connections, State
from cli.connect.client_version import for_its_version
from cli.connect.installation import OURS, Part, parts_of
from cli.connect.settings_files import read
from cli.connect.snippets import SERVER, this_server
from registry.errors import StorageError
from sources.base import Places
from sources.client import Client
from sources.clients import CLIENTS
from sources.purging import days_kept


def connections_from(home: Path) -> Connections:
    """Looks at all clients, as seen from a home folder."""
    return partial(_connections, home)


def _connections(home: Path, projects: Sequence[Path]) -> list[Connection]:
    places = Places(home, os.environ)
    return [connection_of(client, places, projects) for client in CLIENTS if client.servers]


def connection_of(client: Client, places: Places, projects: Sequence[Path] = ()) -> Connection:
    """Return the connection of one client; `projects`: folders in which its rule is looked for."""
    has_settings = client.folder is not None and client.folder(places).exists()
    is_here = has_settings or _has_store(client, places)
    if not is_here:
        return Connection(client.name, False, [])
    days = days_kept(client.purge, places) if client.purge else None
    by = f"{'.'.join(client.purge.setting)} in {client.purge.file(places)}" if client.purge else ""
    return Connection(client.name, True, list(_parts(client, places, projects)), days, by)


def _has_store(client: Client, places: Places) -> bool:
    from sources.readers import READERS

    try:
        return any(reader.name in client.shown_by and list(reader.find(places)) for reader in READERS)
    except OSError:  # a folder that may not be looked into
        return False


def _parts(client: Client, places: Places, projects: Sequence[Path]) -> Iterator[ConnectionPart]:
    server = this_server()
    if not client.command:
        yield from (_found(part) for part in parts_of(client, server, places))
        return
    for part in parts_of(for_its_version(client), server, places):
        looked_at = _looked_at(part, "ctxr", "install", client.command)
        is_passed_over = looked_at.state == "installed" and part.what == "hooks" and _untrusted(client, part.file)
        yield replace(looked_at, state="untrusted", command=None) if is_passed_over else looked_at
    for project in projects:
        for part in parts_of(client, server, places, project):
            if part.what == "rule":
                yield _looked_at(part, "ctxr", "install", client.command, "--project", str(project))


def _untrusted(client: Client, file: Path) -> bool:
    hooks = client.hooks
    return bool(hooks and hooks.untrusted and hooks.untrusted(file, hooks.events, OURS))


def _found(part: Part) -> ConnectionPart:
    return ConnectionPart(part.what, str(part.file), _is_named(part.file), None)


def _looked_at(part: Part, *command: str) -> ConnectionPart:
    shown = subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)
    return ConnectionPart(part.what, str(part.file), _state_of(part), shown)


def _state_of(part: Part) -> State:
    try:
        text = read(part.file) or ""
        if part.install(text) == text:
            return "installed"
        return "differs" if part.uninstall(text) != text else "missing"
    except (StorageError, ValueError):
        return "unreadable"


def _is_named(file: Path) -> State:
    try:
        return "installed" if SERVER in (read(file) or "") else "missing"
    except StorageError:
        return "unreadable"
