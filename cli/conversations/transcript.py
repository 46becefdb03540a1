"""Show what `ctxr extract` found: messages to read."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from cli.output import (
    counted,
    cut,
    dim,
    display_width,
    line_width,
    local_time,
    one_line,
    printable,
    with_bold_hits,
    wrap,
)

ROLE_COLOURS = {"user": "cyan", "assistant": "green", "error": "red"}
INDENT = "  "
WORDS_RELAXED = "Nothing about these words in that time or place; this is what was said there last."


def transcript(result: Mapping[str, Any]) -> Iterator[str]:
    counts = result["metadata"]
    yield from _head(result)
    if later := result.get("newer"):
        yield dim(f"A later conversation may change this: {printable(later['channel'])}")
        yield from with_bold_hits("\n".join(_indented(later["line"]))).split("\n")
    if "summary" in result:
        yield ""
        yield from wrap(printable(result["summary"]), line_width())
    messages = result["messages"]
    for message in messages:
        if gap := message.get("gap_before"):
            yield "\n" + dim(f"… {counted(gap, 'message')} left out …")
        yield ""
        yield from _message_lines(message)
    if newer := counts.get("newer_messages"):
        yield "\n" + dim(f"… {counted(newer, 'newer message')} left out …")
    if "next_cursor" in counts:
        yield f"\n{dim('There is more; repeat the command with:')}"
        yield f"--cursor {counts['next_cursor']}"
    if "candidates" in result:
        yield f"\n{dim('Not what you meant? Other channels:')}"
        for other in result["candidates"]:
            yield from _candidate_lines(other)


def _head(result: Mapping[str, Any]) -> Iterator[str]:
    counts = result["metadata"]
    yield click.style(printable(result["channel"]), bold=True)
    if title := result.get("title"):
        place = f"{printable(result['source'])}, {cut(printable(result['project']), 20)}"
        yield f"{cut(one_line(title), line_width() - display_width(place) - len(INDENT))}{INDENT}{dim(place)}"
    total = counted(counts["total_messages"], "message")
    yield dim(f"{counts['filtered_messages']} of {total}, last activity {local_time(counts['last_activity'])}")
    if confidence := result.get("confidence"):
        yield dim(f"Confidence: {confidence}")
    if note := result.get("note"):
        yield from (click.style(line, fg="yellow") for line in wrap(printable(note), line_width()))
    elif counts.get("understood", {}).get("relaxed") == "words":
        yield dim(WORDS_RELAXED)


def _message_lines(message: Mapping[str, Any]) -> Iterator[str]:
    role = click.style(message["role"], fg=ROLE_COLOURS.get(message["role"], "yellow"), bold=True)
    yield f"{role}  {dim(local_time(message['timestamp']))}"
    yield from (dim(f"{INDENT}({mark})") for mark in _marks(message))
    yield from _indented(message["text"])


def _marks(message: Mapping[str, Any]) -> Iterator[str]:
    if message.get("time") == "inferred":
        yield "time inferred: its client stored none"
    if length := message.get("full_length"):
        yield f"shortened, {length:,} characters in full"
    if at := message.get("replaced_on"):
        yield f"replaced at {local_time(at)}"


def _indented(text: str) -> Iterator[str]:
    for line in wrap(printable(text), line_width() - len(INDENT)):
        yield (INDENT + line).rstrip()


def _candidate_lines(other: Mapping[str, Any]) -> Iterator[str]:
    """Return the lines about another channel. Its name is never cut: users copy it."""
    time, margin = local_time(other["when"]), " " * len("2025-09-29 14:30  ")
    yield f"{time}  {printable(other['channel'])}"
    project = cut(one_line(other["project"]), 20)
    title = cut(one_line(other["title"]), line_width() - len(margin) - len(INDENT) - display_width(project))
    yield dim(f"{margin}{title}{INDENT}{project}".rstrip())
    for message in other.get("messages", ()):
        yield margin + cut(one_line(message["text"]), line_width() - len(margin))
