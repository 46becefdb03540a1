"""The process that reads stores ahead: asked for some, it tells of one after the other what is in it.

It does what needs no registry: it reads the sessions, looks for what is secret in them, and makes those that are kept
as they are ready to be stored. While who stores them waits for more, it only reads, and leaves the rest to him.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Condition, Thread
from typing import IO, Any

from orchestrator.sync.reading_ahead import Chunk, End, with_rows
from orchestrator.sync.spool import registry_home
from registry.domain import IDENTITY, Message, Session, texts_in
from registry.text.analysis.analyzer import ANALYZER_VERSION, tokens_of
from registry.text.privacy.rules import use_own_rules
from registry.text.privacy.secrets import find_secrets, without_private
from sources.base import FoundSession, Skipped
from sources.readers import READERS

CHUNK_MESSAGES, CHUNK_CHARACTERS = 500, 4 * 2**20
"""About so much is handed over at once."""
AHEAD = 32 * 2**20
"""Bytes. So much is read ahead of who stores it: he may be busy starting."""
OBJECTS = 50_000
"""After so many new ones it is looked for garbage in circles, of which reading makes next to none."""


class _Outlet:
    """Writes in a thread of its own, so that reading goes on while nobody takes what is written."""

    def __init__(self, told: IO[bytes]) -> None:
        self._told, self._waiting, self._held = told, deque[bytes](), 0
        self._changed = Condition()
        Thread(target=self._write, daemon=True).start()

    def put(self, value: object) -> None:
        """Say a value, as soon as there is room."""
        said = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._held + len(said) <= AHEAD)
            self._waiting.append(said)
            self._held += len(said)
            self._changed.notify_all()

    @property
    def is_empty(self) -> bool:
        """Return whether all that was put has been taken."""
        return not self._held

    def close(self) -> None:
        """Wait until all is said."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                said = self._waiting.popleft()
            try:
                self._told.write(said)
                self._told.flush()
            except OSError:
                os._exit(1)  # nobody listens any more
            with self._changed:
                self._held -= len(said)
                self._changed.notify_all()


def main() -> None:
    """Read the stores that are asked for on the standard input, chunk by chunk onto the standard output."""
    stores, is_shared = pickle.load(sys.stdin.buffer)  # noqa: S301, our own process
    outlet, sys.stdout = _Outlet(sys.stdout.buffer), sys.stderr
    gc.set_threshold(OBJECTS)
    use_own_rules(registry_home())
    outlet.put(ANALYZER_VERSION)
    for name, store in stores:
        outlet.put(End(is_complete=_read(outlet, name, store, is_shared=is_shared)))
    outlet.close()


def _read(outlet: _Outlet, name: str, store: Path, *, is_shared: bool) -> bool:
    reader = next(reader for reader in READERS if reader.name == name)
    try:
        for found in _parts(reader.sessions(store, {})):
            is_awaited = is_shared and outlet.is_empty
            outlet.put(Chunk(found, [], {}) if is_awaited else _looked_at([with_rows(one, name) for one in found]))
    except Exception:  # who reads it again says what is wrong with it
        return False
    return True


def _parts(findings: Iterable[FoundSession | Skipped]) -> Iterator[list[FoundSession | Skipped]]:
    found: list[FoundSession | Skipped] = []
    messages = characters = 0
    for one in findings:
        found.append(one)
        if isinstance(one, FoundSession):
            messages += len(one.session.messages)
            characters += sum(len(message.text) for message in one.session.messages)
        if messages >= CHUNK_MESSAGES or characters >= CHUNK_CHARACTERS:
            yield found
            found, messages, characters = [], 0, 0
    yield found


def _looked_at(found: list[FoundSession | Skipped]) -> Chunk:
    sessions = [one for one in found if isinstance(one, FoundSession)]
    messages = [message for one in sessions if one.ready is None for message in one.session.messages]
    said = dict.fromkeys(without_private(message.text) for message in messages)
    carried = dict.fromkeys(text for one in sessions for text in texts_in(_described(one.session)))
    carried |= dict.fromkeys(text for message in messages for text in texts_in([_about(message), message.context]))
    clean: list[str] = []
    tokens: dict[str, str] = {}
    for text in {**said, **carried}:
        words = dict.fromkeys(text.split())
        if find_secrets(text):
            continue
        clean.append(text)
        if text in said:
            tokens[text] = " ".join(tokens_of(words))
    return Chunk(found, clean, tokens, is_looked_at=True)


def _described(session: Session) -> list[Any]:
    return [session.session_id, session.title, session.project, session.meta]


def _about(message: Message) -> dict[str, Any]:
    return {name: held for name, held in message.more.items() if name not in IDENTITY}
