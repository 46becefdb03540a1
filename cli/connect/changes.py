"""Find and write the changes of settings files that connect or disconnect a client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from cli.connect.installation import ClientPart, parts_of
from cli.connect.settings_files import Rewrite, apply, remember, remembered, rewrite
from cli.connect.snippets import this_server
from sources.base import Places
from sources.client import Client


def changes_of(client: Client, places: Places, project: Path | None = None, *, installs: bool) -> list[Rewrite]:
    """Return the changes of files that connect a client, or disconnect it."""
    files: dict[Path, list[ClientPart]] = {}
    for part in parts_of(client, this_server(), places, project):
        files.setdefault(part.file, []).append(part)
    changes = (_change(file, parts, installs=installs) for file, parts in files.items())
    return [change for change in changes if change]


def _change(file: Path, parts: Sequence[ClientPart], *, installs: bool) -> Rewrite | None:
    def put_in(text: str) -> str:
        for part in parts:
            text = part.install(text)
        return text

    def take_out(text: str) -> str:
        for part in parts:
            text = part.uninstall(text)
        return text

    change = rewrite(file, put_in if installs else take_out, any(part.is_private for part in parts))
    if change and installs and change.before is not None and not take_out(change.after or ""):
        is_new = take_out(change.before) == change.before
        return replace(change, original=change.before if is_new else remembered(file))
    if change and change.after is None:
        is_only_ours = change.before == put_in("").rstrip("\n") + "\n"
        return replace(change, after=remembered(file), is_private=change.is_private or is_only_ours)
    return change


def write_changes(changes: Sequence[Rewrite]) -> Iterator[tuple[Rewrite, Path | None]]:
    """Write the changes one by one and yield each with the copy of the old file, if one was kept."""
    for change in changes:
        copy = apply(change)
        remember(change.file, change.original)
        yield change, copy
