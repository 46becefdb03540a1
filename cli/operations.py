"""Run operations for commands, and define the options that name sessions and projects."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from cli.terminal import NotHere, terminal
from orchestrator.requests.calls import project_of, working_folder
from orchestrator.requests.refusals import succeeded
from registry.errors import RegistryError
from registry.project import Project
from registry.settings import Settings, read_settings

if TYPE_CHECKING:
    from orchestrator.service import Execution, Orchestrator
    from registry.registry import Registry


def _completions(kind: str, text: str) -> list[CompletionItem]:
    with suppress(RegistryError):
        return [CompletionItem(name) for name in run_operation("complete", {"kind": kind, "text": text})["names"]]
    return []


def completes(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return the shell completion of an option that takes the name of a tag or a client."""
    return lambda _ctx, _param, incomplete: _completions(kind, incomplete)


class SessionId(click.ParamType[str]):
    """A session by any of its names. A shell takes `#3` for a comment, so `3` is accepted."""

    name = "ID"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return _completions("session", incomplete)


class ProjectFolder(click.ParamType[str | None]):
    """`current`, `all`, a folder's path, or a folder's bare name."""

    name = "PROJECT"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        fixed = [CompletionItem(word) for word in ("current", "all") if word.startswith(incomplete)]
        return fixed + _completions("project", incomplete)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str | None:
        """Return the folder's path or name; None for all."""
        if value.startswith((".", "~", os.sep)):
            path = full_path(value)
            return path if "*" in path else Project.from_path(path).path
        return project_of(value, working_folder(terminal().folder))


source_option = click.option(
    "--source", shell_complete=completes("source"), help="Only sessions of this client: cursor, claude-code, …."
)
id_argument = click.argument(
    "session_id",
    metavar="ID",
    type=SessionId(),
    help="Session id or its beginning, channel, nickname, or number in the list.",
)
project_option = click.option(
    "--project",
    type=ProjectFolder(),
    default="all",
    show_default=True,
    help="Only this project: current, a path, or a folder's name.",
)


def full_path(path: str) -> str:
    return os.path.abspath(os.path.join(terminal().folder, Path(path).expanduser()))


def run_operation(
    name: str,
    query: Mapping[str, Any],
    channel: str | None = None,
    observe: Callable[[Execution], None] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Run an operation with the arguments that are not None, and return its outcome; raise its failure.

    `observe` is called with the execution's record when it has ended.
    """
    given = {key: value for key, value in query.items() if value is not None}
    return run_request({"operation": name, "channel": channel, "query": given, "source": "ctxr", **more}, observe)


def run_request(request: Mapping[str, Any], observe: Callable[[Execution], None] | None = None) -> dict[str, Any]:
    """Run a whole request and return its outcome; raise its failure as the RegistryError of that code."""
    if run := terminal().run:
        if observe:
            raise NotHere
        outcome = run(request)
    else:

        async def ask(orchestrator: Orchestrator) -> dict[str, Any]:
            if observe:
                orchestrator.observers.append(observe)
            return await orchestrator.run(request, this_client(), door="cli")

        outcome = with_orchestrator(ask)
    found = succeeded(outcome)
    if copy := found.get("metadata", found).get("local_copy"):
        since = f"since {copy['as_of']}" if copy["as_of"] else "so far"
        click.echo(f"{copy['of']} has not answered {since}; this is from the copy on this machine.", err=True)
    return found


def with_orchestrator(work: Callable[[Orchestrator], Awaitable[Any]], settings: Settings | None = None) -> Any:
    from orchestrator.opening import open_orchestrator  # takes half a second, which `ctxr -h` does not need

    async def run() -> Any:
        async with open_orchestrator(settings or read_settings()) as orchestrator:
            return await work(orchestrator)

    return asyncio.run(run())


def with_registry(work: Callable[[Registry], Coroutine[Any, Any, Any]]) -> Any:
    from orchestrator.opening import with_registry  # slow, as above

    return with_registry(read_settings(), work)


def this_client() -> str:
    """Return the client name under which commands are recorded."""
    return f"ctxr {version('context-registry')}"
