"""What a user may write in a search besides words: "a phrase", -word, word*, tag:x, after:2026-03, 지난주. Pure.

An ordinary sentence means what it says: a hyphenated word, a command's option, a URL, `C++`, `a - b`,
an unknown `name:` are text; so is everything in a text of several lines, which was pasted and not typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from registry.domain import Role
from registry.text.times.spans import TICK, Span
from registry.text.times.time_words import find_time, parse_span

EVER = Span(None, None)


@dataclass(frozen=True, slots=True)
class Search:
    """A search, read. `words` is what ranks; the rest must hold. `when_words` names the time meant by `when`.

    `without_time` is the whole of the words, to fall back on if nothing is found in the time they name.
    """

    words: str = ""
    phrases: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    project: str | None = None
    source: str | None = None
    roles: tuple[str, ...] = ()
    after: datetime | None = None
    before: datetime | None = None
    when: Span = EVER
    when_words: str = ""
    without_time: str = ""

    @property
    def from_(self) -> datetime | None:
        """The first instant asked for."""
        return max((at for at in (self.after, self.when.start) if at), default=None)

    @property
    def to(self) -> datetime | None:
        """The last instant asked for."""
        return min((at for at in (self.before, self.when.end) if at), default=None)

    def at_any_time(self) -> Search:
        """The search without its time words."""
        return replace(self, words=self.without_time, when=EVER, when_words="")


_QUOTED = r'(?:"(?P<quoted>[^"\n]*[^\s"][^"\n]*)"|“(?P<curly>[^”\n]*[^\s”][^”\n]*)”)'
_ITEM = re.compile(
    rf"""(?<!\S)
    (?: (?P<minus>-)?{_QUOTED}(?=$|[\s.,;:?!)\]]|[가-힣])
      | -(?P<excluded>[^\W\d_][\w.+\#]*)(?!\S)
      | (?P<prefix>\w[\w.-]*)\*(?!\S)
      | (?P<field>tag|project|source|role|after|before):(?:"(?P<inquotes>[^"\n]+)"|(?P<value>[^\s"]+))(?!\S)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_SHORTEST_OPTION = 4
_SHORTEST_PREFIX = 2
_SOURCE = re.compile(r"[a-z][a-z0-9-]{0,63}").fullmatch
_COMMAND = re.compile(r"(?:^|\s)(?:--\w|\$ |sudo |git |docker |kubectl |npm |pip |curl |grep |tar |ssh |rm )")


def read_search(text: str, now: datetime) -> Search:
    """A search as it was typed; times are read with the clock and the offset of `now`."""
    if "\n" in text.strip():
        return Search(words=text, without_time=text)
    search, kept, at = Search(), [], 0
    for match in _ITEM.finditer(text):
        taken = _TAKE[_kind(match)](search, match, text, now)
        if taken is not None:
            kept += [text[at : match.start()]]
            search, at = taken, match.end()
    rest = "".join([*kept, text[at:]])
    return _with_time(replace(search, words=rest.strip(), without_time=rest.strip()), now)


def _with_time(search: Search, now: datetime) -> Search:
    word = find_time(search.words, now)
    if word is None:
        return search
    words = f"{search.words[: word.begin]} {search.words[word.end :]}"
    named = search.words[word.begin : word.end]
    return replace(search, words=" ".join(words.split()), when=word.span, when_words=named)


Taken = Search | None
"""The search with one item more; None if the item is nothing but text."""


def _kind(match: re.Match[str]) -> str:
    if match["quoted"] or match["curly"]:
        return "quoted"
    return match["field"].lower() if match["field"] else "excluded" if match["excluded"] else "prefix"


def _quoted(search: Search, match: re.Match[str], _text: str, _now: datetime) -> Taken:
    phrase = match["quoted"] or match["curly"]
    if match["minus"]:
        return replace(search, excluded=(*search.excluded, phrase))
    return replace(search, phrases=(*search.phrases, phrase))


def _excluded(search: Search, match: re.Match[str], text: str, _now: datetime) -> Taken:
    """`ls -la` and `git commit -am` carry options, which are short or stand among a command's."""
    word = match["excluded"]
    if word.isascii() and (len(word) < _SHORTEST_OPTION or _COMMAND.search(text)):
        return None
    return replace(search, excluded=(*search.excluded, word))


def _prefix(search: Search, match: re.Match[str], _text: str, _now: datetime) -> Taken:
    word = match["prefix"].rstrip(".-_")
    if len(word) < (_SHORTEST_PREFIX if word.isascii() else 1):
        return None
    return replace(search, prefixes=(*search.prefixes, word))


def _value(match: re.Match[str]) -> str:
    return str(match["inquotes"] or match["value"]).strip()


def _tag(search: Search, match: re.Match[str], _text: str, _now: datetime) -> Taken:
    return replace(search, tags=(*search.tags, _value(match)))


def _project(search: Search, match: re.Match[str], _text: str, _now: datetime) -> Taken:
    return replace(search, project=_value(match))


def _source(search: Search, match: re.Match[str], _text: str, _now: datetime) -> Taken:
    return replace(search, source=_value(match).lower()) if _SOURCE(_value(match).lower()) else None


def _role(search: Search, match: re.Match[str], _text: str, _now: datetime) -> Taken:
    role = _value(match).lower()
    return replace(search, roles=(*search.roles, role)) if role in set(Role) else None


def _after(search: Search, match: re.Match[str], _text: str, now: datetime) -> Taken:
    span = parse_span(_value(match), now)
    return replace(search, after=span.start) if span else None


def _before(search: Search, match: re.Match[str], _text: str, now: datetime) -> Taken:
    """Before a day means before it begins."""
    span = parse_span(_value(match), now)
    return replace(search, before=span.start - TICK) if span and span.start else None


_TAKE: dict[str, Callable[[Search, re.Match[str], str, datetime], Taken]] = {
    "quoted": _quoted,
    "excluded": _excluded,
    "prefix": _prefix,
    "tag": _tag,
    "project": _project,
    "source": _source,
    "role": _role,
    "after": _after,
    "before": _before,
}
