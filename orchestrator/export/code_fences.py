"""Find the code blocks of a Markdown text (CommonMark 4.5). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_FENCE = re.compile(r" {0,3}(?:(`{3,})([^`]*)|(~{3,})(.*))")
_BACKTICKS = re.compile("`+")


class FencedPassage(NamedTuple):
    """Prose, or the contents of one code block. `fence` is set if the block is not closed."""

    is_code: bool
    text: str
    fence: str = ""


def passages(text: str) -> Iterator[FencedPassage]:
    """Yield prose and code in turn, without the fences and without empty prose."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        mark, info = (found[1] or found[3], found[2] or found[4] or "") if found else ("", "")
        ends = bool(fence) and mark.startswith(fence) and not info.strip()
        if mark and (ends or not fence):
            yield from _passage(lines, is_code=ends)
            lines, fence = [], "" if ends else mark
        else:
            lines.append(line)
    yield from _passage(lines, is_code=bool(fence), fence=fence)


def _passage(lines: list[str], *, is_code: bool, fence: str = "") -> Iterator[FencedPassage]:
    text = "\n".join(lines)
    if is_code or text.strip():
        yield FencedPassage(is_code, text, fence)


def closed(text: str) -> str:
    """Close the last code block of a text, so that what follows is not part of it."""
    fences = [passage.fence for passage in passages(text)]
    return f"{text}\n{fences[-1]}" if fences and fences[-1] else text


def fence_for(text: str) -> str:
    """Return a fence that nothing in the text closes."""
    return "`" * max([2, *map(len, _BACKTICKS.findall(text))]) + "`"
