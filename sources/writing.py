"""What a writer is: it makes of a conversation the session file with which a client goes on, and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from registry.domain import Message, format_time, now
from sources.base import Places
from sources.client import Client


@dataclass(frozen=True, slots=True)
class Carried:
    """A conversation that goes on elsewhere: questions and answers in order, the first one a question."""

    messages: Sequence[Message]
    title: str
    folder: str
    """The working folder in which the client is started."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a writer made: new files, and the commands that open the session, in that folder."""

    session_id: str
    path: Path
    """The file that holds the conversation."""
    files: Mapping[Path, str]
    command: tuple[str, ...]
    before: tuple[str, ...] = ()
    """A command that runs first, where the client takes sessions in itself."""


class Writer(Protocol):
    """Writes the sessions of one client."""

    client: Client
    program: str
    """The command that users start."""
    tested: str
    """The version whose format this is; the same major version is taken to have it too."""

    def opens(self, session_id: str) -> tuple[str, ...]:
        """The command that goes on with a session."""

    def write(self, talk: Carried, version: str, places: Places, drafts: Path) -> Written:
        """The files of a new session. `drafts`: a folder of ours for what the client takes in by a command."""


def lines(records: Iterable[Mapping[str, Any]]) -> str:
    """Records as JSON, one on a line."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def times_of(messages: Sequence[Message]) -> Iterator[datetime]:
    """A time for each message; one that has none takes that of the one before it."""
    last = next((message.timestamp for message in messages if message.timestamp), None) or now()
    for message in messages:
        last = message.timestamp or last
        yield last


def stamped(messages: Sequence[Message]) -> Iterator[tuple[Message, str]]:
    """Each message with its time as most clients write it."""
    return zip(messages, map(format_time, times_of(messages)), strict=True)
