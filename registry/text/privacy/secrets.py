"""Secrets in a text: keys, passwords, cards and resident numbers, by the formats that their givers publish. Pure.

Most texts hold none, and that is to cost little: a rule is asked only where a word stands that all it finds have beside
them. Each word is looked through once, however often it stands, and those that tell of no rule are remembered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from itertools import islice

from registry.text.privacy.escapes import ESCAPING, unescaped
from registry.text.privacy.formats import RULES, SHORTEST_KEY, Rule, Secret
from registry.text.privacy.named import NAME_SIGNS, is_named_secret, named

MARK = re.compile(r"\[secret:[a-z-]+:[0-9a-f]{2}\]")
"""What stands in a secret's place."""


def find_secrets(text: str) -> list[Secret]:
    """The secrets of a text in their order, also of what it holds with escapes; none overlaps another."""
    telling = _telling(text.split())
    if not telling:
        return []
    if "[secret:" in text:
        text = MARK.sub(lambda mark: " " * len(mark[0]), text)  # else a mark were a name with a value
        telling = _telling(text.split())
    taken = _found_in(text, telling)
    plain, places = unescaped(text)
    if plain:
        for kind, start, end in _found_in(plain, _telling(plain.split())):
            found = Secret(kind, places[start], places[end])
            taken += [found] if _is_free(found, taken) else []
    return sorted(taken, key=lambda found: found.start)


def may_tell_of_secret(words: Iterable[str]) -> bool:
    """Whether a text of these words, parted by white space, is to be looked through: most are not."""
    return bool(_telling(words))


def is_secret_value(name: str, value: str) -> bool:
    """Whether a value is a secret by the name of its field and by how it looks."""
    return is_named_secret(name, value) and not MARK.search(value)


def mask(text: str, kind: str, key: bytes) -> str:
    """The mark of one secret: the same for the same one, and eight bits of it, from which nobody can guess it back."""
    return f"[secret:{kind}:{blake2b(text.encode(), key=key, digest_size=1).hexdigest()}]"


def mask_secrets(text: str, key: bytes) -> str:
    """The text with a mark in the place of each secret, also where one of them stands again without its name."""
    marks: dict[str, str] = {}
    for found in find_secrets(text):
        value = text[found.start : found.end]
        marks.setdefault(value, mask(value, found.kind, key))
    for value in sorted(marks, key=len, reverse=True):
        text = text.replace(value, marks[value])
    return text


def _telling(words: Iterable[str]) -> set[str]:
    """The words but those of which it is known by now that they tell of nothing."""
    telling = set(words) - _SILENT
    if telling <= _KNOWN:
        return telling
    _know(telling - _KNOWN)
    return telling - _SILENT


def _know(words: set[str]) -> None:
    """Remember of each whether a sign stands in it, or a year; a very long one is looked at each time."""
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
        _SILENT.clear()
    known = [word for word in islice(words, _MOST_KNOWN) if len(word) <= _LONGEST_KNOWN]
    signs = _signs_in(known)
    lowered = ((word, _lowered([word])) for word in known)
    _SILENT.update(word for word, low in lowered if not (any(sign in low for sign in signs) or _YEAR.search(low)))
    _KNOWN.update(known)


def _signs_in(words: Sequence[str]) -> list[str]:
    lowered = _lowered(words)
    long = " ".join([word for word in words if len(word) >= SHORTEST_KEY])
    hints = [hint.lower() for hint in _BY_HINT if hint in long] if long else []
    return [*(sign for sign in _SIGNS if sign in lowered), *hints]


def _lowered(words: Iterable[str]) -> str:
    return f"{' '.join(words)} ".lower()


def _found_in(text: str, words: set[str]) -> list[Secret]:
    lowered = _lowered(words)
    taken: list[Secret] = []
    for rule in _rules_for(text, words, lowered):
        taken += [found for found in _by_rule(rule, text) if _is_free(found, taken)]
    return taken + [found for found in named(text, lowered) if _is_free(found, taken)]


def _rules_for(text: str, words: set[str], lowered: str) -> list[Rule]:
    """Those that may find something, in the order of the table."""
    long = [run for word in words if len(word) >= SHORTEST_KEY for run in _LONG_WORD.findall(word) if _MADE.search(run)]
    together = " ".join(long)
    places = {at for hint in _BY_HINT if hint in together for at in _BY_HINT[hint]} if long else set()
    places.update(at for word in _BY_WORD if word in lowered for at in _BY_WORD[word])
    if _YEAR.search(lowered) and _DIGITS.search(text):
        places.update(_NUMBERS)
    return [RULES[at] for at in sorted(places)]


def _places(of: Callable[[Rule], tuple[str, ...]]) -> dict[str, list[int]]:
    """Where in the table the rules of each hint stand."""
    places: dict[str, list[int]] = {}
    for at, rule in enumerate(RULES):
        for hint in of(rule):
            places.setdefault(hint, []).append(at)
    return places


_LONG_WORD = re.compile(rf"[A-Za-z0-9_.$|~+/=:@%-]{{{SHORTEST_KEY},}}")
_MADE = re.compile("[A-Z0-9]")
_YEAR = re.compile("[0-9]{4}")
_DIGITS = re.compile(r"[0-9]{4}(?:[ -][0-9]{4}|[0-9]{9}|[0-9]{2} ?- ?[0-9]{7}| [0-9]{6})")
"""Where nothing like it stands, there is neither a card nor a resident."""
_BY_HINT, _BY_WORD = _places(lambda rule: rule.hints), _places(lambda rule: rule.beside)
_NUMBERS = [at for at, rule in enumerate(RULES) if not rule.hints and not rule.beside]
_SIGNS = [*_BY_WORD, *NAME_SIGNS.values(), *ESCAPING]
_KNOWN, _SILENT = set[str](), set[str]()
_MOST_KNOWN, _LONGEST_KNOWN = 50_000, 64


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """In ASCII: no key goes on in the Korean particle behind it, and none is overlooked for it."""
    return re.compile(pattern, re.ASCII)


def _by_rule(rule: Rule, text: str) -> Iterator[Secret]:
    pattern = _compiled(rule.pattern)
    group = "secret" if "secret" in pattern.groupindex else 0
    for match in pattern.finditer(text):
        if rule.is_one is None or rule.is_one(match[group]):
            yield Secret(rule.kind, *match.span(group))


def _is_free(found: Secret, taken: list[Secret]) -> bool:
    return all(found.end <= other.start or other.end <= found.start for other in taken)
