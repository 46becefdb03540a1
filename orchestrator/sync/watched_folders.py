"""Which folders to watch, so that few watches see most of what clients write (the system allows only so many)."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sources.base import Places, Source, Watched

MOST = 500
"""Folders of one store. What lies beyond is noticed by the regular look."""
DEEPEST = 6
"""Levels below a store's folder."""

Plan = dict[str, frozenset[str]]
"""Folder to the names of the readers that want to know of changes in it."""


def plan(readers: Iterable[Source], places: Places) -> Plan:
    """The folders of all stores that are there now."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for reader in readers:
        for folder in _folders_of(reader, places):
            wanted[folder].add(reader.name)
    return {folder: frozenset(names) for folder, names in wanted.items()}


def _folders_of(reader: Source, places: Places) -> list[str]:
    try:
        return [folder for store in reader.find(places) for folder in _nearest(_tops(reader, store))]
    except Exception:  # the sync, which follows, says what is wrong
        return []


def _tops(reader: Source, store: Path) -> Iterable[Path]:
    if isinstance(reader, Watched):
        return reader.watched(store)
    return [store if store.is_dir() else store.parent]


def _nearest(tops: Iterable[Path]) -> list[str]:
    """The folders in and below the given ones: upper levels before lower ones, on each the latest changed first."""
    found: list[str] = []
    level = [str(top) for top in tops if os.path.isdir(top)]
    for _ in range(DEEPEST + 1):
        found += level[: MOST - len(found)]
        if len(found) >= MOST:
            break
        level = _latest_first(entry for folder in level for entry in _folders_in(folder))
    return found


def _folders_in(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            yield from [entry for entry in listing if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return


def _latest_first(folders: Iterable[os.DirEntry[str]]) -> list[str]:
    dated: Sequence[tuple[float, str]] = [(_changed(folder), folder.path) for folder in folders]
    return [path for _, path in sorted(dated, reverse=True)]


def _changed(folder: os.DirEntry[str]) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0
