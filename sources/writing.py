"""Write a conversation as the session file with which a client goes on; what differs between clients is a Writer."""

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from registry.domain import Role, format_time, now
from sources.base import Places
from sources.client import Client

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool's call with its result. `name`: letters, digits, `_` and `-`, 64 at most, as all models' APIs take."""

    name: str
    params: Mapping[str, Any]
    result: str
    failed: bool = False


class Tools(NamedTuple):
    """A client's names of the tools that all clients have, each with its main parameter: it may not show others."""

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
class TalkPart:
    """A question, or a part of its answer: a text, and the tools that were called after it, before the next part."""

    role: Role
    text: str
    timestamp: datetime | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation that goes on elsewhere: questions and answers in order, the first one a question.

    `folder`: the working folder in which the client is started.
    """

    messages: Sequence[TalkPart]
    title: str
    folder: str


class NewSession(NamedTuple):
    """A session to be written: its id, the file with the conversation, its text, and other files."""

    session_id: str
    path: Path
    text: str
    others: Mapping[Path, str] = {}

    @property
    def files(self) -> dict[Path, str]:
        return {self.path: self.text, **self.others}


@dataclass(frozen=True, slots=True)
class Writer:
    """Makes the sessions of one client.

    `program`: the command that users start. `tested`: the version whose format this is; the same major version is
    taken to have it too. `resume`, `imports`: the program's arguments, with `{}` for the session's id or its file.
    `make`: given conversation, client's version, places, and a folder of ours for a file that is imported.
    """

    client: Client
    program: str
    tested: str
    resume: tuple[str, ...]
    make: Callable[[Talk, str, Places, Path], NewSession]
    imports: tuple[str, ...] = ()

    def opens(self, session_id: str) -> list[str]:
        """Return the command that goes on with a session in its working folder."""
        return [self.program, *(argument.format(session_id) for argument in self.resume)]

    def takes_in(self, path: Path) -> list[str]:
        """Return the command that imports a session's file first; empty for a client that needs none."""
        return [self.program, *(argument.format(path) for argument in self.imports)] if self.imports else []


def calls_for(message: TalkPart, tools: Tools, prefix: str = "call_") -> list[tuple[str, Call]]:
    """Return the calls of a part of an answer as calls of the client's own tools, each with a new id."""
    return [(f"{prefix}{uuid4().hex[:24]}", _with_own_tool(call, tools)) for call in message.calls]


def _with_own_tool(call: Call, tools: Tools) -> Call:
    """Convert a call that reads a file or runs a command; return any other call as it is."""
    for names, keys, (name, parameter) in ((_READ, _PATHS, tools.read), (_RUN, _COMMANDS, tools.run)):
        given = next((call.params[key] for key in keys if call.params.get(key)), None)
        if call.name.lower() in names and given:
            text = given if isinstance(given, str) else shlex.join(map(str, given))
            return replace(call, name=name, params={parameter: text})
    return call


def json_lines(records: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def chained(records: Iterable[Json], id_name: str, parent_name: str) -> Iterator[Json]:
    """Give each record a new id and the id of the one before as its parent."""
    parent = None
    for record in records:
        own = str(uuid4())
        yield {id_name: own, parent_name: parent, **record}
        parent = own


def times_of(messages: Sequence[TalkPart]) -> Iterator[datetime]:
    """Yield a time for each message; one that has none takes that of the one before."""
    last = next((message.timestamp for message in messages if message.timestamp), None) or now()
    for message in messages:
        last = message.timestamp or last
        yield last


def with_times(messages: Sequence[TalkPart]) -> Iterator[tuple[TalkPart, str]]:
    """Yield each message with its time as most clients write it."""
    return zip(messages, map(format_time, times_of(messages)), strict=True)
