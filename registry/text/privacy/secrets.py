"""Find secrets in a text by the rules, after names such as `SECRET_KEY =` or 비밀번호는, and inside escapes. Pure."""

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
from registry.text.privacy.nearby_values import describes_secret, find_nearby, is_secret
from registry.text.privacy.rules import Name, Rule, Rules, load_rules, spaced_words

MARK = re.compile(r"\[secret:[a-z-]+:[0-9a-f]{2}\]")
"""The mark that replaces a secret."""
MARK_BEGIN = "[secret:"
PRIVATE = "[private]"
"""Replaces the text between `<private>` and `</private>`."""
_PUBLIC_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]*(?:CERTIFICATE|PUBLIC KEY)[A-Z ]*-----[\s\S]+?-----END")
_PRIVATE_TEXT = re.compile(r"<private>.*?</private>", re.IGNORECASE | re.DOTALL)


def is_masked(text: str) -> bool:
    """Return True if a text contains a mark."""
    return MARK_BEGIN in text and MARK.search(text) is not None


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets of a text in order, also those with escapes, without overlaps."""
    if MARK_BEGIN in text:
        text = MARK.sub(_blanks, text)  # otherwise a mark would look like a name with a value
    if "-----BEGIN" in text:
        text = _PUBLIC_BLOCK.sub(_blanks, text)
    rules = load_rules()
    found = _find(text, rules)
    plain, positions = unescaped(text)
    for kind, start, end in _find(plain, rules) if plain else ():
        secret = Secret(kind, positions[start], positions[end])
        found = [other for other in found if other.start < secret.start or secret.end < other.end]  # parts of it
        _add(secret, found)
    return found


def _blanks(match: re.Match[str]) -> str:
    return " " * len(match[0])


def mask(text: str, kind: str, key: bytes) -> str:
    """Return the mark of a secret, the same for equal ones. Eight bits are too few to recover the secret from them."""
    return f"[secret:{kind}:{blake2b(text.encode(), key=key, digest_size=1).hexdigest()}]"


def mask_secrets(text: str, key: bytes) -> str:
    """Replace each secret by a mark, also if it is repeated without its name."""
    marks: dict[str, str] = {}
    for found in find_secrets(text):
        value = text[found.start : found.end]
        marks.setdefault(value, mask(value, found.kind, key))
    for value in sorted(marks, key=len, reverse=True):
        text = text.replace(value, marks[value])
    return text


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Apply a function to each text of a JSON value, but not to the names of fields."""
    match value:
        case str():
            return change(value)
        case Mapping():
            return {name: map_texts(item, change) for name, item in value.items()}
        case list() | tuple():
            return [map_texts(item, change) for item in value]
    return value


def private_texts(text: str) -> list[str]:
    """Return what `without_private` replaces."""
    return _PRIVATE_TEXT.findall(text)


def without_private(text: str) -> str:
    """Replace the text between `<private>` and `</private>` by a mark."""
    return _PRIVATE_TEXT.sub(PRIVATE, text) if "</" in text else text


def is_like(name: str, pattern: str) -> bool:
    """Return True if a pattern matches a path, its last part, or a folder above it."""
    last = re.split(r"[\\/]", name.rstrip("\\/"))[-1]
    return fnmatch(name, pattern) or fnmatch(last, pattern) or fnmatch(name, f"{pattern}/*")


def _find(text: str, rules: Rules) -> list[Secret]:
    found: list[Secret] = []
    matching, names, has_unmistakable = rules.matching(text)
    for rule in matching:
        for secret in _by_rule(rule, text):
            _add(secret, found)
    for secret in find_nearby(text, names, has_unmistakable=has_unmistakable) if names or has_unmistakable else ():
        _add(secret, found)
    return found


def _add(secret: Secret, found: list[Secret]) -> None:
    """Insert a secret into those found, which are in order, unless it overlaps one of them."""
    at = bisect_left(found, secret.start, key=attrgetter("start"))
    if (at == 0 or found[at - 1].end <= secret.start) and (at == len(found) or secret.end <= found[at].start):
        found.insert(at, secret)


def _by_rule(rule: Rule, text: str) -> Iterator[Secret]:
    group = "secret" if "secret" in rule.pattern.groupindex else 0
    for match in rule.pattern.finditer(text):
        if rule.test(match[group]) and "EXAMPLE" not in match[group]:
            yield Secret(rule.kind, *match.span(group))


def may_contain_secret(name: str) -> bool:
    """Return True if the value of a field may be a secret, by the field's name."""
    return _name_of(name) is not None


def is_secret_value(field: str, value: str) -> bool:
    """Return True if a value is a secret, by the name of its field and by its form."""
    name = _name_of(field)
    return name is not None and is_secret(name, value, is_quoted=True) and not MARK.search(value)


@lru_cache(1024)
def _name_of(field: str) -> Name | None:
    spaced = spaced_words(field.lower())
    if describes_secret(field):
        return None
    for name in load_rules().names.values():
        if name.is_cue:
            continue
        if spaced == name.words if name.is_whole_word else name.words in spaced:
            return name
    return None
