"""What commands print: JSON, failures, and text measured by display width, for a Korean letter is two columns wide."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, TypeVar

import click

from cli.terminal import terminal
from registry.text.privacy.hidden_characters import visible

Report = TypeVar("Report")
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, for scripts.")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ZERO_WIDTH = {"Mn", "Me", "Cf"}
_FENCE = "```"
_HIT = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)


def print_json(value: Any) -> None:
    """Print JSON that every stdout can carry: letters as they are where it is UTF-8, escaped elsewhere."""
    click.echo(json.dumps(value, ensure_ascii=not is_utf8(), indent=2))


def print_json_line(value: Any) -> None:
    """Print JSON on one line, for programs that read line by line."""
    click.echo(json.dumps(value, ensure_ascii=not is_utf8()))


def print_report(value: Report, as_json: bool, lines: Callable[[Report, int], Iterable[str]]) -> None:
    """Print a value as JSON, or as the lines that it makes within the terminal's width."""
    if as_json:
        print_json(value)
        return
    for line in lines(value, line_width()):
        click.echo(line)


def counted(number: int, one: str) -> str:
    """Format a count: "1 message", "2,300 messages"; `one` takes an s."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def is_utf8() -> bool:
    """Return whether stdout can carry every letter."""
    return terminal().is_utf8


def line_width() -> int:
    """The columns to fill: the terminal's, at most 100, and 80 where there is none."""
    return min(terminal().columns, 100)


def printable(text: str) -> str:
    """Without control characters, and with the invisible ones named: a stored text must not steer or deceive."""
    return visible(_CONTROLS.sub("", text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """A stored text that must not break the line or steer the terminal."""
    return " ".join(printable(text).split())


def with_bold_hits(snippet: str) -> str:
    """A snippet with its hits in bold; the marks around them are for programs."""
    return _HIT.sub(lambda hit: click.style(hit[1], bold=True), snippet).replace("**", "")


def display_width(text: str) -> int:
    """Return how many columns a terminal gives a text of one line."""
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, width: int) -> str:
    """The beginning of a text, at most `width` columns, with an ellipsis where something is left out."""
    if _end_within(text, 0, width) == len(text):
        return text
    return text[: _end_within(text, 0, width - 1)] + "…"


def pad(text: str, width: int) -> str:
    """The text, cut or filled with spaces to exactly `width` columns."""
    shown = cut(text, width)
    return shown + " " * (width - display_width(shown))


def _end_within(text: str, start: int, width: int) -> int:
    for place in range(start, len(text)):
        width -= _columns(text[place])
        if width < 0:
            return place
    return len(text)


def wrap(text: str, width: int) -> Iterator[str]:
    """The lines of a text, broken at spaces where there are some; code blocks stay as they are."""
    in_code = False
    for line in text.split("\n"):
        is_fence = line.lstrip().startswith(_FENCE)
        if in_code or is_fence:
            yield line
        else:
            yield from _wrap_line(line, width)
        in_code ^= is_fence


def _wrap_line(line: str, width: int) -> Iterator[str]:
    line, start = line.rstrip(), 0
    while (end := _end_within(line, start, width)) < len(line):
        space = line.rfind(" ", start, end + 1)
        at = space if line[start : max(start, space)].strip() else max(end, start + 1)
        yield line[start:at].rstrip()
        start = at
        while line[start] == " ":
            start += 1
    yield line[start:]


def local_time(instant: str) -> str:
    """An instant of the registry (ISO 8601) as the reader's clock shows it, to the minute."""
    return datetime.fromisoformat(instant).astimezone().strftime("%Y-%m-%d %H:%M")


class TerminalError(click.ClickException):
    """A failure that only a terminal knows, not an operation's; `details` says what to do."""

    code: str
    exit_code = 1

    def __init__(self, message: str, details: str) -> None:
        super().__init__(message)
        self.details = details
