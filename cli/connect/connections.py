"""Find out which clients on this machine are connected, and connect or disconnect them by changing their files."""

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path

from backoffice.connections import Connection, ConnectionPart, ConnectionPlan, Connections, State
from cli.connect.installation import INSTALLABLE, OUR_HOOK, ClientPart, parts_of
from cli.connect.settings_files import Rewrite, apply, original_texts, read, rewrite, update_record
from cli.connect.snippets import this_program, this_server, write_launcher
from registry.errors import NotFound, StorageError
from sources.base import Paths
from sources.client import Client
from sources.clients import CLIENTS
from sources.kit.jsonc import is_bare
from sources.purging import retention_days


def connections_from(home: Path) -> Connections:
    """Return functions that inspect all clients of a home folder, and plan changes to their settings."""

    def inspect(projects: Sequence[Path]) -> list[Connection]:
        paths = Paths(home, os.environ)
        return [connection_of(client, paths, projects) for client in CLIENTS if client.servers]

    def plan(name: str, connects: bool) -> ConnectionPlan:
        client = INSTALLABLE.get(name)
        if client is None:
            raise NotFound("No such client", f"client: given {name!r}; allowed: {', '.join(INSTALLABLE)}")
        changes = changes_of(client, Paths(home, os.environ), installs=connects)

        def write() -> None:
            list(write_changes(changes))
            if connects:
                write_launcher(this_program())

        diff = "\n".join(line for change in changes for line in change.diff())
        return ConnectionPlan(client.name, diff, client.next_step, write)

    return Connections(inspect, plan)


def connection_of(client: Client, paths: Paths, projects: Sequence[Path] = ()) -> Connection:
    """Return the connection of one client. `projects`: folders to search for its rule."""
    is_here = bool(client.folder and client.folder(paths).exists()) or _has_store(client, paths)
    parts = list(_parts(client, paths, projects)) if is_here else []
    if not (is_here and client.purge):
        return Connection(client.name, client.command, is_here, parts)
    deleted_by = f"{'.'.join(client.purge.setting)} in {client.settings_file(paths, client.purge.file)}"
    return Connection(client.name, client.command, True, parts, retention_days(client, paths), deleted_by)


def _has_store(client: Client, paths: Paths) -> bool:
    from sources.readers import READERS

    try:
        return any(reader.name == client.source and list(reader.find(paths)) for reader in READERS)
    except OSError:  # a folder that cannot be read
        return False


def _parts(client: Client, paths: Paths, projects: Sequence[Path]) -> Iterator[ConnectionPart]:
    server = this_server()
    for part in parts_of(client, server, paths):
        found = _connection_part(part, "ctxr", "install", client.command)
        is_ignored = found.state == "installed" and part.what == "hooks" and _is_untrusted(client, part.file)
        yield replace(found, state="untrusted", command=None) if is_ignored else found
    for project in projects:
        for part in parts_of(client, server, paths, project):
            if part.what == "rule":
                yield _connection_part(part, "ctxr", "install", client.command, "--project", str(project))


def _is_untrusted(client: Client, file: Path) -> bool:
    hooks = client.hooks
    return bool(hooks and hooks.untrusted and hooks.untrusted(file, hooks.events, OUR_HOOK))


def _connection_part(part: ClientPart, *command: str) -> ConnectionPart:
    shown = subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)
    return ConnectionPart(part.what, str(part.file), _state_of(part), shown)


def _state_of(part: ClientPart) -> State:
    try:
        text = read(part.file) or ""
        if part.install(text) == text:
            return "installed"
        return "differs" if part.uninstall(text) != text else "missing"
    except (StorageError, ValueError):
        return "unreadable"


def changes_of(client: Client, paths: Paths, project: Path | None = None, *, installs: bool) -> list[Rewrite]:
    files: dict[Path, list[ClientPart]] = {}
    for part in parts_of(client, this_server(), paths, project):
        files.setdefault(part.file, []).append(part)
    changes = (_change(file, parts, installs=installs) for file, parts in files.items())
    return [change for change in changes if change]


def _change(file: Path, parts: Sequence[ClientPart], *, installs: bool) -> Rewrite | None:
    def install(text: str) -> str:
        return reduce(lambda text, part: part.install(text), parts, text)

    def uninstall(text: str) -> str:
        rest = reduce(lambda text, part: part.uninstall(text), parts, text)
        return "" if rest != text and is_bare(rest) else rest

    # Uninstalling restores what was there, so it needs no copy.
    change = rewrite(file, install if installs else uninstall, not installs or any(part.is_private for part in parts))
    if change and installs and change.before is not None and not uninstall(change.after or ""):
        is_new = uninstall(change.before) == change.before
        return replace(change, original=change.before if is_new else original_texts().get(str(file)))
    if not change or installs:
        return change
    return replace(change, after=original_texts().get(str(file)) if change.after is None else change.after)


def write_changes(changes: Sequence[Rewrite]) -> Iterator[tuple[Rewrite, Path | None]]:
    """Write the changes one by one and yield each with the copy of the old file, if one was made."""
    for change in changes:
        copy = apply(change)
        update_record({str(change.file): change.original})
        yield change, copy
