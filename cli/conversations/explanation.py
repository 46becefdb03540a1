"""What `--explain` shows: an execution's own record of what was looked up, kept and left out, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from cli.output import display_width, printable, wrap
from registry.storage.records.executions import Execution

INDENT = "  "


def explanation(run: Execution, width: int) -> str:
    """The steps of an execution as text, coloured, in so many columns."""
    return "\n".join(_lines(run, width))


def _lines(run: Execution, width: int) -> Iterator[str]:
    yield click.style(f"Why: {run.id}, {run.operation}, {run.duration_ms:.1f} ms", bold=True)
    for step in run.steps:
        yield f"{step['node']}  {step['duration_ms']:.1f} ms  {step['status']}"
        for name, value in step["detail"].items():
            if value not in (None, [], {}, ""):
                yield from _detail(name.replace("_", " "), value, width)


def _detail(name: str, value: Any, width: int) -> Iterator[str]:
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        yield f"{INDENT}{name}:"
        for item in value:
            yield from _hanging(_item(item), width, 2 * INDENT)
    else:
        yield from _hanging(f"{name}: {_plain(value)}", width, INDENT)


def _hanging(text: str, width: int, indent: str) -> Iterator[str]:
    first, *more = wrap(printable(text), width - display_width(indent) - len(INDENT))
    yield indent + first
    yield from (indent + INDENT + line for line in more)


def _item(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    shape = next((shape for key, shape in _SHAPES.items() if key in item), _pairs)
    return shape(item)


def _verdict(item: Mapping[str, Any]) -> str:
    parts = f"{item['own']:.2f} own + {item['neighbours']:.2f} neighbours"
    wording = f" of other wording {item['wording']}" if item["wording"] else ""
    similar = f", similarity {item['similarity']:.3f}" if "similarity" in item else ""
    covers = f"covers {item['coverage']:.0%}{wording}{similar}"
    return f"#{item['message']} {item['role']} {item['score']:.2f} = {parts}, {covers}; {_why(item)}"


def _why(item: Mapping[str, Any]) -> str:
    return "kept" if item["kept"] else f"left out: {item['reason']}"


def _term(item: Mapping[str, Any]) -> str:
    weight = f", weight {item['weight']:.2f}" if "weight" in item else ", not looked up"
    return f"{item['token']}: in {item['in_messages']} messages{weight}"


def _pairs(item: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in item.items())


_SHAPES = {"coverage": _verdict, "in_messages": _term}


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} → {_plain(item)}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return str(value)
