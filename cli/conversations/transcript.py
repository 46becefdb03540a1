"""What `ctxr extract` shows: messages to read, in as many columns as there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from cli.output import counted, cut, display_width, local_time, one_line, pad, printable, with_bold_hits, wrap

ROLE_COLOURS = {"user": "cyan", "assistant": "green", "error": "red"}
INDENT = "  "
TIME = "2025-09-29 14:30"
PROJECT = 20
INFERRED = "inferred"
WORDS_RELAXED = "Nothing about these words in that time or place; this is what was said there last."


def transcript(result: Mapping[str, Any], width: int) -> str:
    """An extract's result as text, coloured; click takes the colours out where there is no terminal."""
    return "\n".join(_lines(result, width))


def _lines(result: Mapping[str, Any], width: int) -> Iterator[str]:
    counts = result["metadata"]
    yield from _head(result, width)
    if later := result.get("newer"):
        yield _dim(f"A later conversation may change this: {printable(later['channel'])}")
        yield from with_bold_hits("\n".join(_indented(later["line"], width))).split("\n")
    if "summary" in result:
        yield ""
        yield from wrap(printable(result["summary"]), width)
    messages = result["messages"]
    for message in messages:
        if gap := message.get("gap_before"):
            yield ""
            yield _dim(_left_out(gap, ""))
        yield ""
        yield from _message_lines(message, width)
    if newer := counts.get("newer_messages"):
        yield ""
        yield _dim(_left_out(newer, "newer "))
    if "next_cursor" in counts:
        yield ""
        yield _dim("There is more; repeat the command with:")
        yield f"--cursor {counts['next_cursor']}"
    if "candidates" in result:
        yield ""
        yield _dim("Not what you meant? Other channels:")
        yield from _candidate_lines(result["candidates"], width)


def _head(result: Mapping[str, Any], width: int) -> Iterator[str]:
    """Which conversation it is, how much of it is here, and how sure it is that it was meant."""
    counts = result["metadata"]
    yield click.style(printable(result["channel"]), bold=True)
    if title := result.get("title"):
        place = f"{printable(result['source'])}, {cut(printable(result['project']), PROJECT)}"
        yield f"{cut(one_line(title), width - display_width(place) - len(INDENT))}{INDENT}{_dim(place)}"
    yield _dim(
        f"{counts['filtered_messages']} of {counted(counts['total_messages'], 'message')},"
        f" last activity {local_time(counts['last_activity'])}"
    )
    if sure := result.get("confidence"):
        yield _dim(f"Confidence: {sure}")
    if note := result.get("note"):
        yield from (click.style(line, fg="yellow") for line in wrap(printable(note), width))
    elif counts.get("understood", {}).get("relaxed") == "words":
        yield _dim(WORDS_RELAXED)


def _message_lines(message: Mapping[str, Any], width: int) -> Iterator[str]:
    yield _said(message)
    yield from (_dim(f"{INDENT}({mark})") for mark in _marks(message))
    yield from _indented(message["text"], width)


def _said(message: Mapping[str, Any]) -> str:
    role = click.style(message["role"], fg=ROLE_COLOURS.get(message["role"], "yellow"), bold=True)
    return f"{role}  {_dim(local_time(message['timestamp']))}"


def _marks(message: Mapping[str, Any]) -> Iterator[str]:
    if message.get("time") == INFERRED:
        yield "time inferred: its client stored none"
    if length := message.get("full_length"):
        yield f"shortened, {length:,} characters in full"
    if at := message.get("replaced_on"):
        yield f"replaced at {local_time(at)}"


def _left_out(count: int, which: str) -> str:
    return f"… {count} {which}{'message' if count == 1 else 'messages'} left out …"


def _indented(text: str, width: int) -> Iterator[str]:
    for line in wrap(printable(text), width - len(INDENT)):
        yield (INDENT + line).rstrip()


def _candidate_lines(candidates: list[Mapping[str, Any]], width: int) -> Iterator[str]:
    """A channel is copied from here, so its name is never cut; title and project take what is left."""
    for other in candidates:
        yield f"{local_time(other['when'])}  {printable(other['channel'])}"
        project = cut(printable(other["project"]), PROJECT)
        room = width - len(TIME) - 2 * len(INDENT) - display_width(project)
        yield _dim(f"{' ' * len(TIME)}{INDENT}{pad(one_line(other['title']), room)}{INDENT}{project}".rstrip())
        margin = " " * len(TIME) + INDENT
        for message in other.get("messages", ()):
            yield margin + cut(one_line(message["text"]), width - len(margin))


def _dim(text: str) -> str:
    return click.style(text, dim=True)
