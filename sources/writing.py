"""What a writer is: it makes of a conversation the session file with which a client goes on, and writes nothing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from registry.domain import Role, format_time, now
from sources.base import Places
from sources.client import Client


@dataclass(frozen=True, slots=True)
class Call:
    """A tool's call and what came of it."""

    name: str
    """Letters, digits, `_` and `-`, 64 at most: no model's API takes others."""
    params: Mapping[str, Any]
    result: str
    failed: bool = False


class Toolbox(NamedTuple):
    """What a client calls the tools that all have, and the parameter that says most: others it may not show."""

    read: tuple[str, str]
    run: tuple[str, str]


_READ = {"read", "read_file", "readfile", "read_file_v2", "view", "view_file"}
_RUN = {
    *("bash", "shell", "shell_command", "local_shell", "exec_command", "execute_command", "run_command"),
    *("run_shell_command", "run_in_terminal", "run_terminal_cmd", "run_terminal_command", "run_terminal_command_v2"),
}
_PATHS = ("file_path", "filePath", "path", "absolute_path", "target_file", "filepath", "AbsolutePath")
_COMMANDS = ("command", "cmd", "CommandLine")


@dataclass(frozen=True, slots=True)
class Said:
    """A question, or a part of its answer: a text, and the tools that were called after it, before the next part."""

    role: Role
    text: str
    timestamp: datetime | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Carried:
    """A conversation that goes on elsewhere: questions and answers in order, the first one a question."""

    messages: Sequence[Said]
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


def called(message: Said, tools: Toolbox, prefix: str = "call_") -> list[tuple[str, Call]]:
    """The calls of a part of an answer as calls of the client's own tools, each with a new id."""
    return [(f"{prefix}{uuid4().hex[:24]}", _with_own_tool(call, tools)) for call in message.calls]


def _with_own_tool(call: Call, tools: Toolbox) -> Call:
    """Of reading a file and running a command; any other call stays as it was."""
    for names, keys, (name, parameter) in ((_READ, _PATHS, tools.read), (_RUN, _COMMANDS, tools.run)):
        said = next((call.params[key] for key in keys if call.params.get(key)), None)
        if call.name.lower() in names and said:
            text = said if isinstance(said, str) else shlex.join(map(str, said))
            return replace(call, name=name, params={parameter: text})
    return call


def lines(records: Iterable[Mapping[str, Any]]) -> str:
    """Records as JSON, one on a line."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def times_of(messages: Sequence[Said]) -> Iterator[datetime]:
    """A time for each message; one that has none takes that of the one before it."""
    last = next((message.timestamp for message in messages if message.timestamp), None) or now()
    for message in messages:
        last = message.timestamp or last
        yield last


def stamped(messages: Sequence[Said]) -> Iterator[tuple[Said, str]]:
    """Each message with its time as most clients write it."""
    return zip(messages, map(format_time, times_of(messages)), strict=True)
