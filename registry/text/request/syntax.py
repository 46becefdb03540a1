"""Parse the operators of a search: -word, tag:x, project:x, source:x, role:x, after:2026-03. Pure.

Everything else is plain text: a hyphenated word, a command's option, a URL, `C++`, `a - b`, an unknown `name:`, and any
text of several lines, which was pasted.
"""

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from registry.domain import Role
from registry.text.times.spans import EVER, TICK, Span
from registry.text.times.time_words import parse_span


@dataclass(frozen=True, slots=True)
class Search:
    """A parsed search: the `words` to rank by, and filters. `when_words` is the text that `when` was parsed from."""

    words: str = ""
    excluded: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    project: str | None = None
    source: str | None = None
    roles: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    when: Span = EVER
    when_words: str = ""

    @property
    def from_(self) -> datetime | None:
        """Return the start of the time filter."""
        return max((at for at in (self.after, self.when.start) if at), default=None)

    @property
    def to(self) -> datetime | None:
        """Return the end of the time filter."""
        return min((at for at in (self.before, self.when.end) if at), default=None)

    def at_any_time(self) -> Self:
        """Return the search without the time in its words."""
        return replace(self, when=EVER, when_words="")


_SHORTEST_EXCLUDED = 4  # `ls -la` and `tar -xzf` carry options
_OPERATOR = re.compile(
    rf"""(?<!\S)
    (?: -(?P<excluded>[^\W\d_][\w.+\#]{{{_SHORTEST_EXCLUDED - 1},}}|[^\W\d_\x00-\x7f]\w*)(?!\S)
      | (?P<field>tag|project|source|role|after|before):(?:"(?P<quoted>[^"\n]+)"|(?P<value>[^\s"]+))(?!\S)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_SOURCE = re.compile(r"[a-z][a-z0-9-]{0,63}").fullmatch
_COMMAND = re.compile(r"(?:^|\s)(?:--\w|\$ |sudo |git |docker |kubectl |npm |pip |curl |grep |tar |ssh |rm )")


def parse_search(text: str, now: datetime) -> Search:
    """Parse a search as typed. Times are relative to `now` and in its UTC offset."""
    if "\n" in text.strip():
        return Search(words=text)
    search, rest_parts, at = Search(), [], 0
    is_command = bool(_COMMAND.search(text))
    for match in _OPERATOR.finditer(text):
        changes = _excluded(search, match, is_command) if match["excluded"] else _filter(search, match, now)
        if changes:
            rest_parts.append(text[at : match.start()])
            search, at = replace(search, **changes), match.end()
    rest = "".join([*rest_parts, text[at:]]).strip()
    return replace(search, words=rest)


def _excluded(search: Search, match: re.Match[str], is_command: bool) -> dict[str, Any]:
    word = match["excluded"]
    return {} if is_command and word.isascii() else {"excluded": (*search.excluded, word)}


def _filter(search: Search, match: re.Match[str], now: datetime) -> dict[str, Any]:
    """Return the fields that the operator sets; empty for an invalid value, which stays text."""
    field, value = match["field"].lower(), str(match["quoted"] or match["value"]).strip()
    if field in ("after", "before"):
        span = parse_span(value, now)
        if span is None or (field == "before" and span.start is None):
            return {}
        # Before a day means before it begins.
        return {"after": span.start} if field == "after" else {"before": span.start and span.start - TICK}
    if field == "tag":
        return {"tags": (*search.tags, value)}
    if field == "project":
        return {"project": value}
    if field == "source":
        return {"source": value.lower()} if _SOURCE(value.lower()) else {}
    return {"roles": (*search.roles, value.lower())} if value.lower() in set(Role) else {}
