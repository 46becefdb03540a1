"""Print results as JSON or text, and measure text in terminal columns: a Korean letter takes two."""

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any

import click

from cli.terminal import terminal
from registry.text.privacy.hidden_characters import visible

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, for scripts.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str, *, err: bool = False) -> None:
    """Ask a yes-or-no question and abort without a yes; if stdin is closed, name the option `--yes`."""
    try:
        click.confirm(question, abort=True, err=err)
    except click.Abort as exc:
        if isinstance(exc.__context__, EOFError):
            click.echo("\nNo answer. --yes skips the question.", err=True)
        raise


def printed(lines: Callable[[Any], Iterable[str]]) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Decorate a command that returns its result: add `--json`, and print the result as JSON or as `lines` of text."""

    def decorate(callback: Callable[..., Any]) -> Callable[..., None]:
        @as_json_option
        @wraps(callback)
        def command(as_json: bool, **given: Any) -> None:
            show(callback(**given), as_json, lines)

        return command

    return decorate


def show(result: Any, as_json: bool, lines: Callable[[Any], Iterable[str]]) -> None:
    if as_json:
        print_json(result)
        return
    for line in lines(result):
        click.echo(line)


def print_json(value: Any, indent: int | None = 2) -> None:
    """Print JSON; letters are escaped where stdout is not UTF-8."""
    click.echo(json.dumps(value, ensure_ascii=not terminal().is_utf8, indent=indent))


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on stderr, and yield the function `update(done, total)`."""
    with click.progressbar(length=1, label=label, show_pos=True, file=sys.stderr) as bar:

        def update(done: int, total: int) -> None:
            bar.length = max(done, total, 1)
            bar.update(done - bar.pos)

        yield update


def counted(number: int, noun: str) -> str:
    """Format a count: "1 message", "2,300 messages"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def dim(text: str) -> str:
    return click.style(text, dim=True)


def line_width() -> int:
    return min(terminal().columns, 100)


def printable(text: str) -> str:
    """Remove control characters and name invisible ones: stored text must not steer the terminal or deceive."""
    return visible(re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "", text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """Return stored text that cannot break the line or steer the terminal."""
    return " ".join(printable(text).split())


def with_bold_hits(snippet: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", lambda hit: click.style(hit[1], bold=True), snippet, flags=re.DOTALL).replace(
        "**", ""
    )


def display_width(text: str) -> int:
    return sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Shorten a text to `width` columns, with an ellipsis where something is left out."""
    return text if _fitting(text, width) == len(text) else text[: _fitting(text, width - 1)] + "…"


def pad(text: str, width: int) -> str:
    """Cut or fill a text to exactly `width` columns."""
    shown = cut(text, width)
    return shown + " " * (width - display_width(shown))


def _fitting(text: str, width: int) -> int:
    for index, letter in enumerate(text):
        width -= _columns(letter)
        if width < 0:
            return index
    return len(text)


def wrap(text: str, width: int) -> Iterator[str]:
    """Break lines at spaces where there are some; code blocks stay as they are."""
    in_code = False
    for line in text.split("\n"):
        is_fence = line.lstrip().startswith("```")
        if in_code or is_fence:
            yield line
        else:
            yield from _wrap_line(line.rstrip(), width)
        in_code ^= is_fence


def _wrap_line(line: str, width: int) -> Iterator[str]:
    while (end := _fitting(line, width)) < len(line):
        space = line.rfind(" ", 0, end + 1)
        at = space if line[: max(0, space)].strip() else max(end, 1)
        yield line[:at].rstrip()
        line = line[at:].lstrip(" ")
    yield line


def local_time(instant: str) -> str:
    """Format an ISO 8601 instant in the reader's time zone, to the minute."""
    return datetime.fromisoformat(instant).astimezone().strftime("%Y-%m-%d %H:%M")


@dataclass(eq=False)
class TerminalError(Exception):
    """A failure of the command line itself, not of an operation; `details` says what to do."""

    code: str
    message: str
    details: str

    def __str__(self) -> str:
        return self.message
