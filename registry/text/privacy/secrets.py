"""Find secrets in a text by the rules, behind names such as `SECRET_KEY =` or 비밀번호는, and inside escapes. Pure."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from functools import lru_cache
from hashlib import blake2b
from operator import attrgetter
from typing import Any

from registry.text.privacy.cues import Secret
from registry.text.privacy.escapes import unescaped
from registry.text.privacy.near import find_near, is_secret, tells_of_secret
from registry.text.privacy.rules import Name, Rule, Rules, load_rules, spaced_words

MARK = re.compile(r"\[secret:[a-z-]+:[0-9a-f]{2}\]")
"""The mark that replaces a secret."""
MARK_BEGIN = "[secret:"
PRIVATE = "[private]"
"""Replaces the text between `<private>` and `</private>`."""
_PUBLIC_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]*(?:CERTIFICATE|PUBLIC KEY)[A-Z ]*-----[\s\S]+?-----END")
_BETWEEN = re.compile(r"<private>.*?</private>", re.IGNORECASE | re.DOTALL)


def is_masked(text: str) -> bool:
    """Return whether a text holds a mark."""
    return MARK_BEGIN in text and MARK.search(text) is not None


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets of a text in their order, also those with escapes; none overlaps another."""
    if MARK_BEGIN in text:
        text = MARK.sub(_blanks, text)  # else a mark were a name with a value
    if "-----BEGIN" in text:
        text = _PUBLIC_BLOCK.sub(_blanks, text)
    rules = load_rules()
    found = _find(text, rules)
    plain, places = unescaped(text)
    for kind, start, end in _find(plain, rules) if plain else ():
        secret = Secret(kind, places[start], places[end])
        found = [other for other in found if other.start < secret.start or secret.end < other.end]  # parts of it
        _add(secret, found)
    return found


def _blanks(match: re.Match[str]) -> str:
    return " " * len(match[0])


def mask(text: str, kind: str, key: bytes) -> str:
    """Return the mark of a secret: the same for the same one. Eight bits are too few to guess it back."""
    return f"[secret:{kind}:{blake2b(text.encode(), key=key, digest_size=1).hexdigest()}]"


def mask_secrets(text: str, key: bytes) -> str:
    """Replace each secret by a mark, also where the same secret is repeated without its name."""
    marks: dict[str, str] = {}
    for found in find_secrets(text):
        value = text[found.start : found.end]
        marks.setdefault(value, mask(value, found.kind, key))
    for value in sorted(marks, key=len, reverse=True):
        text = text.replace(value, marks[value])
    return text


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with each text changed, but for the names of fields."""
    match value:
        case str():
            return change(value)
        case Mapping():
            return {name: map_texts(held, change) for name, held in value.items()}
        case list() | tuple():
            return [map_texts(held, change) for held in value]
    return value


def without_private(text: str) -> str:
    """Replace the text between `<private>` and `</private>` by a mark."""
    return _BETWEEN.sub(PRIVATE, text) if "</" in text else text


def is_like(name: str, pattern: str) -> bool:
    """Return whether a pattern fits a path, its last part, or a folder above it."""
    last = re.split(r"[\\/]", name.rstrip("\\/"))[-1]
    return fnmatch(name, pattern) or fnmatch(last, pattern) or fnmatch(name, f"{pattern}/*")


def _find(text: str, rules: Rules) -> list[Secret]:
    found: list[Secret] = []
    matching, names, has_odd = rules.matching(text)
    for rule in matching:
        for secret in _by_rule(rule, text):
            _add(secret, found)
    for secret in find_near(text, names, has_odd=has_odd) if names or has_odd else ():
        _add(secret, found)
    return found


def _add(secret: Secret, found: list[Secret]) -> None:
    """Add a secret to those found, which are in their order, unless it overlaps one of them."""
    at = bisect_left(found, secret.start, key=attrgetter("start"))
    if (at == 0 or found[at - 1].end <= secret.start) and (at == len(found) or secret.end <= found[at].start):
        found.insert(at, secret)


def _by_rule(rule: Rule, text: str) -> Iterator[Secret]:
    group = "secret" if "secret" in rule.pattern.groupindex else 0
    for match in rule.pattern.finditer(text):
        if rule.looks(match[group]) and "EXAMPLE" not in match[group]:
            yield Secret(rule.kind, *match.span(group))


def may_hold_secret(name: str) -> bool:
    """Return whether the value under a field's name may be a secret by that name."""
    return _name_of(name) is not None


def is_secret_value(field: str, value: str) -> bool:
    """Return whether a value is a secret by the name of its field and by how it looks."""
    name = _name_of(field)
    return name is not None and is_secret(name, value, is_quoted=True) and not MARK.search(value)


@lru_cache(1024)
def _name_of(field: str) -> Name | None:
    spaced = spaced_words(field.lower())
    if tells_of_secret(field):
        return None
    for name in load_rules().names.values():
        if name.is_cue:
            continue
        if spaced == name.words if name.is_whole_word else name.words in spaced:
            return name
    return None
