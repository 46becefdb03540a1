"""Shared parts of the writers, which build a client's session file that continues a conversation."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from registry.domain import Role, format_time, now
from sources.base import Paths
from sources.client import Client

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its result. `name`: at most 64 letters, digits, `_` and `-`, as all models' APIs require."""

    name: str
    params: Mapping[str, Any]
    result: str
    failed: bool = False


class Tools(NamedTuple):
    """A client's own names of the usual tools, each with its main parameter. It may not display unknown tools."""

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
class TransferPart:
    """A question, or a part of its answer: a text, followed by tool calls."""

    role: Role
    text: str
    timestamp: datetime | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Transfer:
    """A conversation to be continued in another client, beginning with a question.

    `folder`: the working folder in which the client is started.
    """

    messages: Sequence[TransferPart]
    title: str
    folder: str


class NewSession(NamedTuple):
    """A session to be written: its id, the path and text of its file, and other files."""

    session_id: str
    path: Path
    text: str
    others: Mapping[Path, str] = {}

    @property
    def files(self) -> dict[Path, str]:
        return {self.path: self.text, **self.others}


@dataclass(frozen=True, slots=True)
class Writer:
    """Builds the sessions of one client.

    Args:
        program: the command that users start.
        tested: the version whose format is written; all of its major version are assumed to have it.
        resume, imports: the program's arguments, with `{}` in place of the session's id or file.
        make: builds a session from a conversation, the client's version, paths, and a folder for files to import.
    """

    client: Client
    program: str
    tested: str
    resume: tuple[str, ...]
    make: Callable[[Transfer, str, Paths, Path], NewSession]
    imports: tuple[str, ...] = ()

    def command_for(self, session_id: str) -> list[str]:
        """Return the command that continues a session, to be run in its working folder."""
        return [self.program, *(argument.format(session_id) for argument in self.resume)]

    def import_command(self, path: Path) -> list[str]:
        """Return the command that imports a session's file; empty if the client needs no import."""
        return [self.program, *(argument.format(path) for argument in self.imports)] if self.imports else []


def calls_for(message: TransferPart, tools: Tools, prefix: str = "call_") -> list[tuple[str, Call]]:
    """Convert the calls of a message to the client's own tools, each with a new id."""
    return [(f"{prefix}{uuid4().hex[:24]}", _with_client_tool(call, tools)) for call in message.calls]


def _with_client_tool(call: Call, tools: Tools) -> Call:
    """Convert a call that reads a file or runs a command; return any other call unchanged."""
    for names, keys, (name, parameter) in ((_READ, _PATHS, tools.read), (_RUN, _COMMANDS, tools.run)):
        given = next((call.params[key] for key in keys if call.params.get(key)), None)
        if call.name.lower() in names and given:
            text = given if isinstance(given, str) else shlex.join(map(str, given))
            return replace(call, name=name, params={parameter: text})
    return call


def json_lines(records: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def link_records(records: Iterable[Json], id_name: str, parent_name: str) -> Iterator[Json]:
    """Give each record a new id, and the id of the previous record as its parent."""
    parent = None
    for record in records:
        record_id = str(uuid4())
        yield {id_name: record_id, parent_name: parent, **record}
        parent = record_id


def times_of(messages: Sequence[TransferPart]) -> Iterator[datetime]:
    """Yield a time for each message; if it has none, that of the previous message."""
    last = next((message.timestamp for message in messages if message.timestamp), None) or now()
    for message in messages:
        last = message.timestamp or last
        yield last


def with_times(messages: Sequence[TransferPart]) -> Iterator[tuple[TransferPart, str]]:
    """Yield each message with its time in ISO 8601."""
    return zip(messages, map(format_time, times_of(messages)), strict=True)
