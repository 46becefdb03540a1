"""Filters of the templates: figures, icons, and a record's fields in words."""

import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import date
from math import log10
from typing import Any

from backoffice.pages.reader import FOLDER
from orchestrator.operations import labels
from orchestrator.operations.usage import in_dollars
from registry.text.analysis.analyzer import IDENTIFIER_PREFIX
from registry.text.model_names import model_name
from registry.text.privacy.hidden_characters import visible

MAX_WIDTH = 96  # pixels of the longest bar of a duration
MAX_MS = 30_000.0  # the duration with the longest bar: the usual time limit
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_MARKS = re.compile(r"`{3,}\w*\s?|`|\*\*|(?<!\S)#{1,6}\s")  # of Markdown; a row shows one line, unformatted
_IMAGE = re.compile(r"!\[([^\]]*)\]\(\S*?(?:\)|…|$)")  # a preview may end within its address
_FAULTY = re.compile(r"(?:^|(?<=; ))(?:query\.)?([\w.]+)(?=: (?:given|missing))")

_WORDS: Mapping[str, Any] = tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8"))
FIELDS: Mapping[str, str] = {name: english for name, (english, _) in labels().items()}
ROLES: Mapping[str, str] = _WORDS["roles"]
ERRORS: Mapping[str, str] = _WORDS["errors"]
# By field; a value that is not listed here is data and is shown as it is.
VALUES: Mapping[str, Mapping[str, str]] = _WORDS["values"] | {"role": ROLES, "roles": ROLES, "changed": FIELDS}

CLIENT_ICONS = {
    "claude": "claude",
    "claude-code": "claudecode",
    "cursor": "cursor",
    "cursor-agent": "cursor",
    "copilot-vscode": "githubcopilot",
    "copilot-cli": "githubcopilot",
    "gemini": "googlegemini",
    "gemini-cli": "googlegemini",
    "windsurf": "windsurf",
    "cline": "cline",
    "zed": "zedindustries",
    "opencode": "opencode",
    "qwen-code": "qwen",
    "codex": "square-terminal",
}


def duration(ms: float | None) -> str:
    """Format a duration: `0.04 ms`, `3.2 ms`, `48 ms`, `1.2 s`; a dash for None."""
    if ms is None:
        return "–"
    if ms >= 1000:
        return f"{ms / 1000:,.1f} s"
    digits = 0 if ms >= 10 else 1 if ms >= 1 else 2
    return f"{ms:.{digits}f} ms"


def bar(ms: float) -> int:
    """Return the width of a duration's bar, on a logarithmic scale."""
    return max(2, min(MAX_WIDTH, round(MAX_WIDTH * log10(1 + ms) / log10(1 + MAX_MS))))


def number(value: float) -> str:
    return f"{value:,}"


def short_number(value: int) -> str:
    """Return a large number in thousands, millions or billions: 12.9M."""
    for unit, size in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if value >= size * 10 or (value >= size and unit != "K"):
            return f"{value / size:,.1f}{unit}"
    return number(value)


def plain(text: str) -> str:
    """Return a line without its Markdown marks; an image becomes its description."""
    return _MARKS.sub("", _IMAGE.sub(r"\1", text)).strip() or ("…" if text else "")


def weekday(day: str) -> str:
    return f"{date.fromisoformat(day):%a}"


def client_icon(source: str) -> str:
    return CLIENT_ICONS.get(source, "message-circle")


def token(given: str) -> str:
    """Return an index token without the prefix of its kind."""
    return given.removeprefix(IDENTIFIER_PREFIX)


def is_instant(given: object) -> bool:
    return isinstance(given, str) and _INSTANT.fullmatch(given) is not None


def field(name: str) -> str:
    return FIELDS.get(name, name.replace("_", " "))


def named(details: str, translate: Callable[[str], str]) -> str:
    """Replace field names in an error's details by their labels.

    `query.limit: given 0` becomes `at most: given 0`, and `messages.0.role: missing` becomes
    `messages › 1 › who speaks: missing`.
    """
    return _FAULTY.sub(lambda found: _path(found[1], translate), details)


def _path(names: str, translate: Callable[[str], str]) -> str:
    parts = names.replace(".text", ".content").split(".")  # the text of a query is its words, that of a message is not
    return " › ".join(str(int(part) + 1) if part.isdecimal() else translate(field(part)) for part in parts)


def value(given: str, name: str) -> str | None:
    """Return the English words for a field's value; None if the value is data."""
    return VALUES.get(name, {}).get(given)


def asked(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request, those of its query among them."""
    return {**{name: given for name, given in request.items() if name != "query"}, **request.get("query", {})}


def show_invisible(value: Any) -> Any:
    """Replace the invisible characters of a text by their names."""
    if not isinstance(value, str) or (shown := visible(value)) is value:
        return value
    return type(value)(shown)


FIGURES = (duration, bar, number, short_number, weekday)
TEXTS = (plain, client_icon, token, field, named, value, asked, model_name)
FILTERS: Mapping[str, Callable[..., Any]] = {one.__name__: one for one in (*FIGURES, *TEXTS)} | {"dollars": in_dollars}
