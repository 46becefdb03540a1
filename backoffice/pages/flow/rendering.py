"""Filters for durations, shares and record fields, and rendering of the pages of runs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from math import log10
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from backoffice.pages.reader import FOLDER
from backoffice.pages.rendering import environment, render
from orchestrator.operations import labels
from registry.text.analysis.analyzer import IDENTIFIER_PREFIX

LONGEST_MS = 30_000.0
"""A bar of full width: the usual time limit."""
WIDTH = 96
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def duration(ms: float | None) -> str:
    """Format a duration: `0.04 ms`, `3.2 ms`, `48 ms`, `1.2 s`; a dash for None."""
    if ms is None:
        return "–"
    if ms >= 1000:
        return f"{ms / 1000:,.1f} s"
    digits = 0 if ms >= 10 else 1 if ms >= 1 else 2
    return f"{ms:.{digits}f} ms"


def bar(ms: float) -> int:
    """Return the width of a duration's bar, on a logarithmic scale up to 30 s."""
    return max(2, min(WIDTH, round(WIDTH * log10(1 + ms) / log10(1 + LONGEST_MS))))


def token(given: str) -> str:
    """Return an index token without the prefix of its kind."""
    return given.removeprefix(IDENTIFIER_PREFIX)


def share(part: float | None) -> str:
    """Format a success rate; 100 % only if nothing failed."""
    if part is None:
        return "–"
    return f"{100 * part:.0f} %" if part in (0, 1) else f"{min(100 * part, 99.9):.1f} %"


def is_instant(given: object) -> bool:
    """Return whether a value is a time in ISO 8601 and UTC."""
    return isinstance(given, str) and _INSTANT.fullmatch(given) is not None


def render_flow(request: Request, template: str, **context: Any) -> HTMLResponse:
    """Render a page of runs, insights or settings."""
    return render(request, f"flow/{template}", **{"section": "flow", **context})


WORDS: Mapping[str, Any] = tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8"))
FIELDS: Mapping[str, str] = {name: english for name, (english, _) in labels().items()}
ROLES: Mapping[str, str] = WORDS["roles"]
ERRORS: Mapping[str, str] = WORDS["errors"]
# By field; a value that is not listed here is data and is shown as it is.
VALUES: Mapping[str, Mapping[str, str]] = WORDS["values"] | {"role": ROLES, "roles": ROLES, "changed": FIELDS}


def field(name: str) -> str:
    """Return the English label of a record's field."""
    return FIELDS.get(name, name.replace("_", " "))


def named(details: str, translate: Callable[[str], str]) -> str:
    """Replace field names in an error's details by their labels: `query.limit: given 0` becomes `at most: given 0`."""
    return _FAULTY.sub(lambda found: translate(field(found[1])), details)


_FAULTY = re.compile(r"(?:^|(?<=; ))(?:query\.)?(\w+)(?=: (?:given|missing))")


def value(given: str, name: str) -> str | None:
    """Return the English words for a field's value; None if the value is data."""
    return VALUES.get(name, {}).get(given)


def asked(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request, those of its query among them."""
    return {**{name: given for name, given in request.items() if name != "query"}, **request.get("query", {})}


environment.globals |= {"roles_in_words": ROLES, "errors_in_words": ERRORS}
environment.tests["instant"] = is_instant
environment.filters |= {
    "duration": duration,
    "bar": bar,
    "share": share,
    "field": field,
    "named": named,
    "value": value,
    "asked": asked,
    "token": token,
}
