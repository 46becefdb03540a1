"""From a command to an operation: which session, which project; the request; and running it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from cli.terminal import NotHere, terminal
from orchestrator.requests.calls import project_of, working_folder
from registry.errors import (
    InternalError,
    InvalidRequest,
    NotFound,
    OperationTimeout,
    RegistryError,
    StorageError,
    Unauthorized,
)
from registry.settings import Settings, read_settings

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator
    from registry.storage.records.executions import Execution

_ORDINAL = re.compile(r"\d{1,5}")
_ERRORS: dict[str, type[RegistryError]] = {
    kind.code: kind for kind in (InvalidRequest, Unauthorized, NotFound, StorageError, OperationTimeout, InternalError)
}


def _known(kind: str, text: str) -> list[CompletionItem]:
    with suppress(RegistryError):
        return [
            CompletionItem(name) for name in run_operation(operation("complete", {"kind": kind, "text": text}))["names"]
        ]
    return []


def complete_tag(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Tags that begin so."""
    return _known("tag", incomplete)


def complete_source(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Clients there are sessions of."""
    return _known("source", incomplete)


class SessionId(click.ParamType[str]):
    """A session by any of its names. A shell takes `#3` for a comment, so `3` will do."""

    name = "ID"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Nicknames and ids that begin so."""
        return _known("session", incomplete)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The reference as the registry reads it."""
        return f"#{value}" if _ORDINAL.fullmatch(value) else value


source_option = click.option(
    "--source", shell_complete=complete_source, help="Only this client's: cursor, claude-code, …."
)


class ProjectFolder(click.ParamType[str | None]):
    """`current`, `all`, a folder as the shell names it, or a folder's bare name."""

    name = "PROJECT"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names and folders of projects that begin so."""
        fixed = [CompletionItem(word) for word in ("current", "all") if word.startswith(incomplete)]
        return fixed + _known("project", incomplete)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str | None:
        """The folder's path or name; None for all."""
        if value.startswith((".", "~", os.sep)):
            return os.path.abspath(os.path.join(terminal().folder, Path(value).expanduser()))
        return project_of(value, working_folder(terminal().folder))


id_argument = click.argument(
    "session_id",
    metavar="ID",
    type=SessionId(),
    help="Its id or the beginning of one, channel, nickname, or place in the list.",
)
project_option = click.option(
    "--project",
    type=ProjectFolder(),
    default="all",
    show_default=True,
    help="Only this project: current, a path, or a folder's name.",
)


def operation(name: str, query: dict[str, Any], channel: str | None = None) -> dict[str, Any]:
    """A request of the terminal's; what was not given is left out."""
    given = {key: value for key, value in query.items() if value is not None}
    return {"operation": name, "channel": channel, "query": given, "source": "ctxr"}


def run_operation(request: Mapping[str, Any], observe: Callable[[Execution], None] | None = None) -> dict[str, Any]:
    """The outcome of a request; its failure is raised as the RegistryError of that code.

    `observe` is told of the run when it has ended, failed or not.
    """
    if run := terminal().run:
        if observe:
            raise NotHere
        outcome = run(request)
    else:

        async def asked(orchestrator: Orchestrator) -> dict[str, Any]:
            if observe:
                orchestrator.observers.append(observe)
            return await orchestrator.run(request, this_client(), door="cli")

        outcome = with_orchestrator(asked)
    if outcome["success"]:
        _say_whose_answer(outcome)
        return outcome
    error = outcome["error"]
    raise _ERRORS[error["code"]](error["message"], error["details"])


def _say_whose_answer(outcome: Mapping[str, Any]) -> None:
    """Beside the answer, that it is out of this machine's copy while the registry elsewhere does not answer."""
    if copy := outcome.get("metadata", outcome).get("local_copy"):
        since = f"since {copy['as_of']}" if copy["as_of"] else "so far"
        click.echo(f"{copy['of']} has not answered {since}; this is out of the copy on this machine.", err=True)


def with_orchestrator(work: Callable[[Orchestrator], Awaitable[Any]]) -> Any:
    """Run some work on the configured registry and return its result."""
    return asyncio.run(_with_orchestrator(read_settings(), work))


def this_client() -> str:
    """Return the client name under which commands are recorded."""
    return f"ctxr {version('context-registry')}"


async def _with_orchestrator(settings: Settings, work: Callable[[Orchestrator], Awaitable[Any]]) -> Any:
    from orchestrator.opening import open_orchestrator  # half a second that `ctxr -h` does not need

    async with open_orchestrator(settings) as orchestrator:
        return await work(orchestrator)
