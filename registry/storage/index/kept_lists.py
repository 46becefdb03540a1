"""Packed lists as a process keeps them from one search to the next: a common word is asked for again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from threading import Lock
from uuid import UUID

from registry.storage.index.posting_blocks import PackedList

MOST_BYTES = 32_000_000
"""Of all lists that are kept; what was asked for least lately goes."""


class KeptLists:
    """The packed lists of one registry in one version."""

    def __init__(self) -> None:
        self._version: UUID | None = None
        self._lists: OrderedDict[str, PackedList] = OrderedDict()
        self._size, self._lock = 0, Lock()

    def known(self, tokens: Iterable[str]) -> tuple[UUID | None, dict[str, PackedList]]:
        """The version that is kept, and its lists of these words."""
        with self._lock:
            found = {token: self._lists[token] for token in tokens if token in self._lists}
            for token in found:
                self._lists.move_to_end(token)
            return self._version, found

    def keep(self, version: UUID, lists: Mapping[str, PackedList]) -> None:
        """Have these as well; those of another version are forgotten."""
        with self._lock:
            if version != self._version:
                self._lists.clear()
                self._version, self._size = version, 0
            new = {token: held for token, held in lists.items() if token not in self._lists}
            self._lists.update(new)
            self._size += sum(held.size for held in new.values())
            while self._size > MOST_BYTES:
                self._size -= self._lists.popitem(last=False)[1].size
