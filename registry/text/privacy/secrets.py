"""Secrets in a text: keys, passwords, cards and resident numbers, by the formats that their givers publish. Pure.

Most texts hold none, and that is to cost little: a rule is asked only where a word stands that all it finds have beside
them. Each word is looked through once, however often it stands, and those that tell of no rule are remembered. Found
are also values behind a name (`SECRET_KEY =`, 비밀번호는), and what is written with escapes: JSON in JSON, addresses,
HTML. What people mark as not to be kept is marked, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import filterfalse
from typing import NamedTuple

from registry.text.privacy.formats import RULES, SHORTEST_KEY, Rule, Secret
from registry.text.privacy.likeness import (
    CODE,
    LONGEST_CHOSEN,
    SHORTEST_SECRET,
    is_chosen,
    is_random,
    is_strong,
    is_titled,
)

MARK = re.compile(r"\[secret:[a-z-]+:[0-9a-f]{2}\]")
"""What stands in a secret's place."""
MARK_BEGIN = "[secret:"


def is_masked(text: str) -> bool:
    """Return whether a text holds a mark."""
    return MARK_BEGIN in text and MARK.search(text) is not None


def find_secrets(text: str, words: Iterable[str] | None = None) -> list[Secret]:
    """The secrets of a text in their order, also of what it holds with escapes; none overlaps another.

    `words`: the text, parted by white space, where that is known.
    """
    told = _told_by(text.split() if words is None else words)
    if not told:
        return []
    if MARK_BEGIN in text:
        text = MARK.sub(lambda mark: " " * len(mark[0]), text)  # else a mark were a name with a value
        told = _told_by(text.split())
    taken = _found_in(text, told)
    plain, places = unescaped(text)
    if plain:
        for kind, start, end in _found_in(plain, _told_by(plain.split())):
            found = Secret(kind, places[start], places[end])
            taken += [found] if _is_free(found, taken) else []
    return sorted(taken, key=lambda found: found.start)


def is_secret_value(name: str, value: str) -> bool:
    """Return whether a value is a secret by the name of its field and by how it looks."""
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


def look_at(texts: Iterable[str]) -> None:
    """Know the words of some texts, which are looked at together in less time than text by text."""
    _told_by(" ".join(texts).split())


class _Told(NamedTuple):
    """The signs and hints in some words, and whether a year is among them."""

    signs: frozenset[str]
    hints: frozenset[str]
    has_year: bool


def _told_by(words: Iterable[str]) -> list[_Told]:
    suspicious = set(filterfalse(_SILENT.__contains__, words))
    told = [_TOLD[word] for word in suspicious if word in _TOLD]
    return told if len(told) == len(suspicious) else told + _looked_at(suspicious.difference(_TOLD))


def _looked_at(words: set[str]) -> list[_Told]:
    together = _tells(" ".join(words), _SIGNS, _BY_HINT)
    found: list[_Told] = []
    for word in words:
        told = _tells(word, together.signs, together.hints) if any(together) else together
        found += [told] if any(told) else []
        if len(word) <= _LONGEST_KNOWN:
            _remember(word, told)
    return found


def _remember(word: str, told: _Told) -> None:
    if len(_TOLD) + len(_SILENT) >= _MOST_KNOWN:
        _TOLD.clear()
        _SILENT.clear()
        _ALIKE.clear()
    if any(told):
        _TOLD[word] = _ALIKE.setdefault(told, told)  # most tell of the same few
    else:
        _SILENT.add(word)


def _tells(words: str, signs: Iterable[str], hints: Iterable[str]) -> _Told:
    lowered = f"{words} ".lower()
    made = " ".join([run for run in _LONG_WORD.findall(words) if _MADE.search(run)])
    return _Told(
        frozenset([sign for sign in signs if sign in lowered]),
        frozenset([hint for hint in hints if hint in made] if made else ()),
        _YEAR.search(lowered) is not None,
    )


def _found_in(text: str, told: Sequence[_Told]) -> list[Secret]:
    signs = frozenset[str]().union(*[one.signs for one in told])
    taken: list[Secret] = []
    for rule in _rules_for(text, told, signs):
        if not rule.needs or any(map(text.__contains__, rule.needs)):
            taken += [found for found in _by_rule(rule, text) if _is_free(found, taken)]
    return taken + [found for found in named(text, signs) if _is_free(found, taken)]


def _rules_for(text: str, told: Sequence[_Told], signs: Iterable[str]) -> list[Rule]:
    places = {at for sign in signs for at in _BY_WORD.get(sign, ())}
    places.update(at for one in told for hint in one.hints for at in _BY_HINT[hint])
    if any(one.has_year for one in told) and _DIGITS.search(text):
        places.update(_NUMBERS)
    return [RULES[at] for at in sorted(places)]


def _places(of: Callable[[Rule], tuple[str, ...]]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for at, rule in enumerate(RULES):
        for hint in of(rule):
            places.setdefault(hint, []).append(at)
    return places


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


PRIVATE = "[private]"
"""What stands in the place of what is between the tags."""
_BETWEEN = re.compile(r"<private>.*?</private>", re.IGNORECASE | re.DOTALL)


def without_private(text: str) -> str:
    """The text with a mark in the place of what stands between `<private>` and `</private>`."""
    return _BETWEEN.sub(PRIVATE, text) if "</" in text else text


def is_like(name: str, pattern: str) -> bool:
    """By the whole, or by the last part of a path; what is below a folder belongs to it."""
    from fnmatch import fnmatch

    last = re.split(r"[\\/]", name.rstrip("\\/"))[-1]
    return fnmatch(name, pattern) or fnmatch(last, pattern) or fnmatch(name, f"{pattern}/*")


# What follows a name: an equals sign or a colon in any of the usual notations, or what people write.
_GIVEN = (
    r"(?P<more>[A-Za-z0-9_-]{0,24})(?:\s?\([^()\n]{1,20}\))?\\*[\"'`\])*]{0,4}(?:(?:\s{0,3}(?::=|=>|==|=|:|：|→|->|(?<=\s)[|–—](?=\s)|(?:,|\()\s?(?=[\"'])|:\s?[A-Z]\w{2,11}\s?=)\s{0,3}"
    r"|\s(?=[\"'`])|(?P<told>\s{1,2}(?:is|are|was)\s{1,2}:?\s?|['’]s\s|(?:는|은|가|이|를|을|만)(?:\s{1,2}:?\s?|:\s?)|[はが是为]\s?))[*]{0,2}\s{0,2}"
    r"|(?P<loose>(?:\s[a-z]{1,12}){0,4}(?:\s(?:is|are|was|to|as)|:)\s{1,2}|\s{1,2}))"
)
_VALUE = (
    r"(?:\\*(?P<quote>[\"'`])(?P<quoted>[^\s\"'`\\]{6,300})\\*(?P=quote)"
    r"|(?P<bare>[^\s\"'`,;(){}<>\[\]\\\u3000-\u9fff\uac00-\ud7a3]{6,300}))"
)
_BEHIND = re.compile(_GIVEN + _VALUE)
_WHOSE = ("the ", "my ", "your ", "our ", "its ", "it ")
_AHEAD = re.compile(rf"(?<![^\s\"'`])(?P<secret>[^\s\"'`]{{8,64}})[\"'`]?\s(?:as|is|for)\s(?:{'|'.join(_WHOSE)})\Z")
"""What is said before a name: `… as the password`."""
_ABOUT = re.compile(
    r"(?:_|-)?(?:hash(?:er|ed)?|type|name|field|file|path|url|uri|id|length|len|policy|format|algorithm|label|hint"
    r"|regex|pattern|column|endpoint|expir\w*|count|size|version|env|var|header|prefix|dir|class|arn|ring)s?$",
    re.IGNORECASE,
)
"""Of a name: it does not hold the secret but tells of it."""

NAMES: dict[str, tuple[str, ...]] = {
    "password": (
        *("password", "passwd", "passphrase", "_pass", "pwd"),
        *("비밀번호", "비밀 번호", "비번", "패스워드", "암호", "パスワード", "密码", "密碼"),
    ),
    "secret": (
        *("secret", "token", "credential", "토큰", "시크릿", "시크릿키", "시크릿 키"),
        *("api 키", "api키", "인증키", "인증 키", "서비스키", "서비스 키", "비밀키", "비밀 키", "액세스 키"),
        *("api_key", "apikey", "api-key", "api key", "access_key", "accesskey", "access-key", "private_key"),
        *("privatekey", "auth_key", "signing_key", "encryption_key", "encryptionkey", "master_key"),
        *("account_key", "accountkey", "license_key"),
    ),
}
"""Behind these names a value that looks like one is a secret."""
NAME_SIGNS = {name: max(name.split(), key=len) for names in NAMES.values() for name in names}
"""A word, or part of one, that stands wherever the name does."""
_NAMED = [(kind, name) for kind, names in NAMES.items() for name in names]
_BY_SIGN = {
    sign: [at for at, (_, name) in enumerate(_NAMED) if NAME_SIGNS[name] == sign] for sign in NAME_SIGNS.values()
}
"""Where in the list of all names those of each sign stand."""
_PASSWORDS = frozenset(NAMES["password"])
_CALLED = re.compile("|".join(map(re.escape, NAME_SIGNS)), re.IGNORECASE)


def named(text: str, signs: Set[str]) -> Iterator[Secret]:
    """Values behind a name such as `SECRET_KEY =`; `signs`: those that stand in the text (`NAME_SIGNS`)."""
    called = [_NAMED[at] for at in sorted({at for sign in signs for at in _BY_SIGN.get(sign, ())})]
    lowered = text.lower() if called else ""
    if len(lowered) != len(text):  # a few letters grow when they are lowered: places would not agree
        lowered = text
    for kind, name in called:
        at = lowered.find(name)
        while at >= 0:
            if text.endswith(_WHOSE, 0, at) and (said := _AHEAD.search(text, max(0, at - 80), at)):
                yield from [Secret(kind, *said.span("secret"))] if is_strong(said["secret"]) else ()
            found = _BEHIND.match(text, at + len(name))
            if found and not _ABOUT.search(found["more"]) and (value := _value(found, name)):
                yield Secret(kind, found.start(value), found.end(value))
            at = lowered.find(name, at + len(name))


def _value(found: re.Match[str], name: str) -> str | None:
    """The group that holds the secret, if it looks like one."""
    group = "quoted" if found["quoted"] else "bare"
    if found["loose"] is not None:
        return group if is_strong(found[group]) else None
    if found["told"] is not None and group == "bare" and is_titled(found["bare"]):
        return None
    return group if _looks_like_one(name, found[group], is_quoted=group == "quoted") else None


def _looks_like_one(name: str, value: str, *, is_quoted: bool) -> bool:
    if name in _PASSWORDS:
        return len(value) <= LONGEST_CHOSEN and is_chosen(value) and (is_quoted or not CODE.search(value))
    return len(value) >= SHORTEST_SECRET and is_random(value) and (is_quoted or not CODE.search(value))


def may_hold_secret(name: str) -> bool:
    """Return whether what stands under a field's name may be a secret by that name."""
    return _called(name) is not None


def is_named_secret(name: str, value: str) -> bool:
    """Return whether a value is a secret by the name of its field and by how it looks."""
    called = _called(name)
    return called is not None and _looks_like_one(called, value, is_quoted=True)


@lru_cache(1024)
def _called(field: str) -> str | None:
    called = _CALLED.search(field)
    return called[0].lower() if called and not _ABOUT.search(field) else None


_ESCAPE = re.compile(  # begins with one of three signs: so they are looked for, and nothing else
    r"[\\%&](?:(?<=\\)\\*(?:u(?P<unit>[0-9a-fA-F]{4})|(?P<sign>[\"'/nrt]))"
    r"|(?<=%)(?P<octets>(?:25)*[0-9a-fA-F]{2}(?:%(?:25)*[0-9a-fA-F]{2})*)"
    r"|(?<=&)(?:amp;)*(?P<entity>quot|apos|lt|gt|amp|#\d{2,5}|#x[0-9a-fA-F]{2,4});)"
)
_OCTET = re.compile(r"%(?:25)*(?P<hex>[0-9a-fA-F]{2})")
_ENTITIES = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "amp": "&"}
_LETTERS = {"n": "\n", "r": "\n", "t": "\t"}
ESCAPING = ("\\u", "%", "&", '\\"', "\\'")
"""Where none of these stands, nothing is escaped."""


def unescaped(text: str) -> tuple[str, Sequence[int]]:
    """Its lines that hold escapes, each with the one before, as they are read; and where each of their letters begins.

    The places are one more than the letters: the last is the end. Where nothing is escaped, both are empty.
    """
    parts, places, end, line_end = list[str](), list[int](), 0, 0
    for escape in _ESCAPE.finditer(text) if any(map(text.__contains__, ESCAPING)) else ():
        if escape.start() >= line_end:
            parts.append(text[end:line_end])
            places += range(end, line_end)
            end = max(line_end, text.rfind("\n", 0, max(0, text.rfind("\n", 0, escape.start()))) + 1)
        parts.append(text[end : escape.start()])
        places += range(end, escape.start())
        for letter, place in _letters(escape):
            parts.append(letter)
            places.append(place)
        end = escape.end()
        line_end = max(end, text.find("\n", end) + 1 or len(text))
    return "".join((*parts, text[end:line_end])), [*places, *range(end, line_end + 1)] if parts else []


def _letters(escape: re.Match[str]) -> Iterator[tuple[str, int]]:
    at = escape.start()
    if unit := escape["unit"]:
        yield chr(int(unit, 16)), at
    elif entity := escape["entity"]:
        yield _ENTITIES.get(entity) or chr(int(f"0{entity[1:]}", 16 if entity[1] == "x" else 10)), at
    elif sign := escape["sign"]:
        yield _LETTERS.get(sign, sign), at
    else:
        yield from _in_octets(escape[0], at)


def _in_octets(written: str, at: int) -> Iterator[tuple[str, int]]:
    octets = [(int(octet["hex"], 16), at + octet.start()) for octet in _OCTET.finditer(written)]
    number = 0
    for letter in bytes(value for value, _ in octets).decode(errors="surrogateescape"):
        yield letter, octets[number][1]
        number += len(letter.encode(errors="surrogateescape"))


_LONG_WORD = re.compile(rf"[A-Za-z0-9_.$|~+/=:@%-]{{{SHORTEST_KEY},}}")
_MADE = re.compile("[A-Z0-9]")
_YEAR = re.compile("[0-9]{4}")
_DIGITS = re.compile(r"[0-9]{4}(?:[ -][0-9]{4}|[0-9]{9}|[0-9]{2} ?- ?[0-9]{7}| [0-9]{6})")
"""Where nothing like it stands, there is neither a card nor a resident."""
_BY_HINT, _BY_WORD = _places(lambda rule: rule.hints), _places(lambda rule: rule.beside)
_NUMBERS = [at for at, rule in enumerate(RULES) if not rule.hints and not rule.beside]
_SIGNS = [*_BY_WORD, *NAME_SIGNS.values(), *ESCAPING]
_TOLD, _SILENT, _ALIKE = dict[str, _Told](), set[str](), dict[_Told, _Told]()
_MOST_KNOWN, _LONGEST_KNOWN = 50_000, 64
