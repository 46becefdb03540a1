"""What commands about sessions take in common: which session, which project, and how they print."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click

from orchestrator.projects import project_of, working_folder

_ORDINAL = re.compile(r"\d{1,5}")


class SessionId(click.ParamType[str]):
    """A session by any of its names. A shell takes `#3` for a comment, so `3` will do."""

    name = "ID"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The reference as the registry reads it."""
        return f"#{value}" if _ORDINAL.fullmatch(value) else value


class ProjectFolder(click.ParamType[str | None]):
    """`current`, `all`, a folder as the shell names it, or a folder's bare name."""

    name = "PROJECT"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str | None:
        """The folder's path or name; None for all."""
        if value.startswith((".", "~", os.sep)):
            return os.path.abspath(Path(value).expanduser())
        return project_of(value, working_folder())


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
source_option = click.option("--source", help="Only this client's: cursor, claude-code, ….")


def operation(name: str, query: dict[str, Any], channel: str | None = None) -> dict[str, Any]:
    """A request of the terminal's; what was not given is left out."""
    given = {key: value for key, value in query.items() if value is not None}
    return {"operation": name, "channel": channel, "query": given, "source": "ctxr"}
