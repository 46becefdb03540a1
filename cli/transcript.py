"""What `ctxr extract` shows: messages to read, in as many columns as there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from cli.output import cut, display_width, local_time, pad, printable, wrap

ROLE_COLOURS = {"user": "cyan", "assistant": "green", "error": "red"}
INDENT = "  "
TIME = "2025-09-29 14:30"


def transcript(result: Mapping[str, Any], width: int) -> str:
    """An extract's result as text, coloured; click takes the colours out where there is no terminal."""
    return "\n".join(_lines(result, width))


def _lines(result: Mapping[str, Any], width: int) -> Iterator[str]:
    counts = result["metadata"]
    yield click.style(printable(result["channel"]), bold=True)
    yield _dim(
        f"{counts['filtered_messages']} of {counts['total_messages']} messages,"
        f" last activity {local_time(counts['last_activity'])}"
    )
    if "summary" in result:
        yield ""
        yield from wrap(printable(result["summary"]), width)
    for message in result["messages"]:
        yield ""
        yield from _message_lines(message, width)
    if "next_cursor" in counts:
        yield ""
        yield _dim("There is more; repeat the command with:")
        yield f"--cursor {counts['next_cursor']}"
    if "candidates" in result:
        yield ""
        yield _dim("Not what you meant? Other channels:")
        yield from _candidate_lines(result["candidates"], width)


def _message_lines(message: Mapping[str, Any], width: int) -> Iterator[str]:
    role = click.style(message["role"], fg=ROLE_COLOURS.get(message["role"], "yellow"), bold=True)
    yield f"{role}  {_dim(local_time(message['timestamp']))}"
    for line in wrap(printable(message["text"]), width - len(INDENT)):
        yield (INDENT + line).rstrip()


def _candidate_lines(candidates: list[Mapping[str, Any]], width: int) -> Iterator[str]:
    """A channel is copied from here, so its name is never cut; title and project take what is left."""
    for other in candidates:
        yield f"{local_time(other['last_activity'])}  {printable(other['channel'])}"
        project = cut(printable(other["project"]), 20)
        room = width - len(TIME) - 2 * len(INDENT) - display_width(project)
        yield _dim(f"{' ' * len(TIME)}{INDENT}{pad(printable(other['title'] or ''), room)}{INDENT}{project}".rstrip())


def _dim(text: str) -> str:
    return click.style(text, dim=True)
