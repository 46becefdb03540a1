"""A big store read in a process of its own: on another core than the one that stores, and ahead of it.

That process does what needs no registry: it reads the sessions, looks which of their texts hold no secret, and analyses
these. Whatever goes wrong there, what it has not brought is read here.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from registry.domain import IDENTITY, Message, texts_in
from registry.errors import RegistryError
from registry.text.analysis.analyzer import ANALYZER_VERSION, note_analyzed, tokens_of
from registry.text.privacy.secrets import find_secrets, may_tell_of_secret, without_private
from sources.base import Counts, FoundSession, Skipped, Source
from sources.readers import READERS

WORTH_SESSIONS = 200
"""So many new sessions take seconds; the process costs a part of one."""
CHUNK_MESSAGES, CHUNK_CHARACTERS = 500, 4 * 2**20
"""About so much is handed over at once, and so much is read ahead."""

OBJECTS = 50_000
"""After so many new ones that process looks for garbage in circles, of which reading makes next to none."""

_ROOT = Path(__file__).parents[2]


class Chunk(NamedTuple):
    """Some sessions, and what is known of their texts: those without a secret, and the tokens of what was said."""

    found: list[FoundSession | Skipped]
    clean: list[str]
    tokens: dict[str, str]


def is_worth_it(reader: Source, store: Path) -> bool:
    """Whether a store that was never read is so big, and another core is there."""
    if reader not in READERS or not isinstance(reader, Counts) or (os.cpu_count() or 1) < 2:
        return False
    with suppress(RegistryError, OSError):  # the reading that follows says what is wrong
        return reader.count(store) >= WORTH_SESSIONS
    return False


def read_ahead(reader: Source, store: Path) -> Iterator[FoundSession | Skipped]:
    """The sessions of a store that was never read, as `reader.sessions` gives them."""
    from registry.storage.safety.masking import note_clean  # the other process needs no database

    brought: dict[str, str] = {}
    try:
        for chunk in _chunks_of(reader.name, store):
            note_clean(chunk.clean)
            note_analyzed(chunk.tokens)
            brought |= {one.key: one.fingerprint for one in chunk.found if isinstance(one, FoundSession)}
            yield from chunk.found
    except _Failed:
        yield from reader.sessions(store, brought)


class _Failed(Exception):
    """The process ended early, or what it said is not understood: it may be of another version by now."""


def _chunks_of(name: str, store: Path) -> Iterator[Chunk]:
    with _process() as (asked, told):
        try:
            pickle.dump((ANALYZER_VERSION, name, store), asked)
            asked.close()
        except OSError as exc:
            raise _Failed from exc
        while chunk := _next_chunk(told):
            yield chunk


def _next_chunk(told: IO[bytes]) -> Chunk | None:
    try:
        chunk: Chunk | None = pickle.load(told)  # noqa: S301, our own process
    except Exception as exc:  # nothing is said of what comes out of half an answer, or of another version's
        raise _Failed from exc
    return chunk


@contextmanager
def _process() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        process = subprocess.Popen(command, cwd=_ROOT, **pipes)  # noqa: S603, our own program
    except OSError as exc:  # nothing may be started here
        raise _Failed from exc
    assert process.stdin  # noqa: S101, they are pipes
    assert process.stdout  # noqa: S101
    try:
        yield process.stdin, process.stdout
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _chunks(findings: Iterable[FoundSession | Skipped]) -> Iterator[Chunk]:
    found: list[FoundSession | Skipped] = []
    messages = characters = 0
    for one in findings:
        found.append(one)
        if isinstance(one, FoundSession):
            messages += len(one.session.messages)
            characters += sum(len(message.text) for message in one.session.messages)
        if messages >= CHUNK_MESSAGES or characters >= CHUNK_CHARACTERS:
            yield _known_of(found)
            found, messages, characters = [], 0, 0
    yield _known_of(found)


def _known_of(found: list[FoundSession | Skipped]) -> Chunk:
    messages = [message for one in found if isinstance(one, FoundSession) for message in one.session.messages]
    said = dict.fromkeys(without_private(message.text) for message in messages)
    carried = dict.fromkeys(text for message in messages for text in texts_in([_about(message), message.context]))
    known = Chunk(found, [], {})
    for text in {**said, **carried}:
        words = dict.fromkeys(text.split())
        if may_tell_of_secret(words) and find_secrets(text):
            continue
        known.clean.append(text)
        if text in said:
            known.tokens[text] = " ".join(tokens_of(words))
    return known


def _about(message: Message) -> dict[str, Any]:
    return {name: held for name, held in message.more.items() if name not in IDENTITY}


def main() -> None:
    """Read what is asked for on the standard input, chunk by chunk onto the standard output."""
    version, name, store = pickle.load(sys.stdin.buffer)  # noqa: S301, our own process
    told, sys.stdout = sys.stdout.buffer, sys.stderr
    if version != ANALYZER_VERSION:
        sys.exit(1)
    reader = next(reader for reader in READERS if reader.name == name)
    gc.set_threshold(OBJECTS)
    for chunk in _chunks(reader.sessions(store, {})):
        pickle.dump(chunk, told, pickle.HIGHEST_PROTOCOL)
        told.flush()
    pickle.dump(None, told)
    told.flush()
