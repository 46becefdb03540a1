"""A search on the Registry page: how it was read, as chips that can be taken off, and why each row is there. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from backoffice.pages.viewer.snippets import Part, snippet

IDENTIFIER = re.compile(r"(?=.*\d)(?=.*[_/-])[^\s\"]{8,200}")
"""What is pasted as an id, and not searched for in words."""


class Chip(NamedTuple):
    """One thing a search was read as. `kind` names its label; `rest`: the search without it, None if it cannot go."""

    kind: str
    text: str
    rest: str | None


class Hit(NamedTuple):
    """Why a conversation is in the list: its best message, and how many have to do with the words."""

    message_id: str
    parts: Sequence[Part]
    messages: int | None


def chips(text: str, understood: Mapping[str, Any]) -> list[Chip]:
    """The parts of a search in the order of their kinds."""
    return [Chip(kind, shown, _cut(text, pattern)) for kind, shown, pattern in _read(understood)]


def _read(understood: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Kind, what is shown, and the pattern of how it was typed."""
    for word in understood.get("words", ()):
        yield "word", word, rf"(?<!\w){re.escape(word)}\S*"
    for phrase in understood.get("phrases", ()):
        yield "phrase", f"“{phrase}”", rf'["“]{re.escape(phrase)}["”]'
    for prefix in understood.get("prefixes", ()):
        yield "word", f"{prefix}*", rf"{re.escape(prefix)}[.\-_]*\*"
    for word in understood.get("excluded", ()):
        yield "without", word, rf'-["“]?{re.escape(word)}["”]?'
    for tag in understood.get("tags", ()):
        yield "tag", tag, _field("tag", tag)
    for source in understood.get("sources", ()):
        yield "source", source, rf"{_field('source', source)}|(?:in )?\b{re.escape(source)}\S*"
    if project := understood.get("project"):
        name = project.replace("\\", "/").rpartition("/")[2]
        yield "project", name, rf"{_field('project', project)}|{_field('project', name)}|(?:in )?\b{re.escape(name)}\S*"
    if when := understood.get("when"):
        yield "time", when, rf"{re.escape(when)}\S*"
    elif "from" in understood or "to" in understood:
        days = (understood.get(edge, "")[:10] for edge in ("from", "to"))
        yield "time", " – ".join(days).strip(), r'(?:after|before):(?:"[^"]+"|\S+)'


def _field(name: str, value: str) -> str:
    return rf'{name}:"?{re.escape(value)}"?'


def _cut(text: str, pattern: str) -> str | None:
    rest = " ".join(re.sub(pattern, " ", text, flags=re.IGNORECASE).split())
    return rest if rest != " ".join(text.split()) else None


def best_hits(answer: Mapping[str, Any]) -> dict[str, Hit]:
    """For each session of `search_sessions` its best message, and how many there are."""
    words = answer["understood"].get("words", [])
    return {
        session["channel"]: Hit(best["id"], marked(best["snippet"], words), session["match_count"])
        for session in answer["sessions"]
        for best in session["matches"][:1]
    }


def newest_hits(answer: Mapping[str, Any]) -> dict[str, Hit]:
    """For each channel of `list` its best message."""
    words = answer.get("understood", {}).get("words", [])
    hits = answer.get("hits", {})
    return {name: Hit(message["id"], snippet(message["text"], words), None) for name, message in hits.items()}


def marked(passage: str, words: Sequence[str]) -> list[Part]:
    """A passage whose hits stand between asterisks, in parts."""
    if "**" not in passage:
        return snippet(passage, words)
    return [Part(part, at % 2 == 1) for at, part in enumerate(passage.split("**")) if part]
