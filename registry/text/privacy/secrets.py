"""Find secrets in a text by the rules, behind names such as `SECRET_KEY =` or 비밀번호는, and inside escapes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from registry.text.privacy.escapes import unescaped
from registry.text.privacy.likeness import (
    TITLED,
    is_chosen,
    is_code,
    is_mentioned,
    is_name,
    is_password,
    is_random,
    is_strong,
    is_thrown,
)
from registry.text.privacy.prose import find_in_column, find_mentioned, find_pin
from registry.text.privacy.rules import SHORTEST_KEY, Name, Rule, Rules, load_rules, spaced_words

MARK = re.compile(r"\[secret:[a-z-]+:[0-9a-f]{2}\]")
"""The mark that replaces a secret."""
MARK_BEGIN = "[secret:"
PRIVATE = "[private]"
"""Replaces the text between `<private>` and `</private>`."""
_BETWEEN = re.compile(r"<private>.*?</private>", re.IGNORECASE | re.DOTALL)


class Secret(NamedTuple):
    """A secret in a text: its kind and position."""

    kind: str
    start: int
    end: int


def is_masked(text: str) -> bool:
    """Return whether a text holds a mark."""
    return MARK_BEGIN in text and MARK.search(text) is not None


def find_secrets(text: str) -> list[Secret]:
    """Return the secrets of a text in their order, also those with escapes; none overlaps another."""
    if MARK_BEGIN in text:
        text = MARK.sub(lambda mark: " " * len(mark[0]), text)  # else a mark were a name with a value
    rules = load_rules()
    found = _find(text, rules)
    plain, places = unescaped(text)
    for kind, start, end in _find(plain, rules) if plain else ():
        _add(Secret(kind, places[start], places[end]), found)
    return sorted(found, key=lambda secret: secret.start)


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


def without_private(text: str) -> str:
    """Replace the text between `<private>` and `</private>` by a mark."""
    return _BETWEEN.sub(PRIVATE, text) if "</" in text else text


def is_like(name: str, pattern: str) -> bool:
    """Return whether a pattern fits a path, its last part, or a folder above it."""
    last = re.split(r"[\\/]", name.rstrip("\\/"))[-1]
    return fnmatch(name, pattern) or fnmatch(last, pattern) or fnmatch(name, f"{pattern}/*")


def _find(text: str, rules: Rules) -> list[Secret]:
    found: list[Secret] = []
    matching, names = rules.matching(text)
    for rule in matching:
        for secret in _by_rule(rule, text):
            _add(secret, found)
    for secret in _by_name(text, names) if names else ():
        _add(secret, found)
    return found


def _add(secret: Secret, found: list[Secret]) -> None:
    if all(secret.end <= other.start or other.end <= secret.start for other in found):
        found.append(secret)


def _by_rule(rule: Rule, text: str) -> Iterator[Secret]:
    group = "secret" if "secret" in rule.pattern.groupindex else 0
    for match in rule.pattern.finditer(text):
        if rule.looks is None or rule.looks(match[group]):
            yield Secret(rule.kind, *match.span(group))


CLOSE = 40
MOST_REPEATS = 20
"""After so many times of a name, each within CLOSE characters of the one before, sentences are not searched again."""
_VALUE = (
    r"(?:\\*(?P<quote>[\"'`])(?P<quoted>[^\s\"'`\\]{6,})\\*(?P=quote)"
    r"|(?P<bare>[^\s\"'`,;(){}<>\[\]\\\u3000-\u9fff\uac00-\ud7a3]{6,}+)(?![(\[]))"
)
_BEHIND = re.compile(  # a name's end, then a sign of assignment in any of the usual notations, a verb or a particle
    r"(?P<more>[A-Za-z0-9_-]{0,24})(?P<note>\s?\([^()\n]{1,20}\))?\\*[\"'`\])*]{0,4}"
    r"(?:[ \t]{0,3}(?::=|=>|={1,3}|!==?|\?=|\|\||\?\?|:|：|→|(?<!\) )->|(?<=\s)[|│–—-](?=\s)|:\s?[A-Z]\w{2,11}\s?=)"
    r"[ \t]{0,3}|(?P<listed>[ \t]{0,3}[,(]\s?(?=[\"'])|[ \t](?=[\"'`]))"
    r"|(?P<told>[ \t]{1,2}(?:is|are|was|should be|must be)[ \t]{1,2}:?[ \t]?|['’]s[ \t]|,?[ \t]it(?:'s|’s| is)[ \t]"
    r"|\s?(?:값\s?)?(?:는|은|가|이|를|을|만|란)(?:[ \t]{1,2}:?[ \t]?|:[ \t]?)|[はが是为][ \t]?))[*]{0,2}[ \t]{0,2}"
    + _VALUE
)
_FURTHER = re.compile(  # a few words between, or nothing that says that a value follows
    r"(?P<more>[A-Za-z0-9_-]{0,24})(?P<verb>(?:,?[ ][\w@.-]{1,20}){0,6}(?:[ ](?:is|are|was|to|as|be|->|→)|:))?"
    r"[ \t]{1,12}" + _VALUE
)
_BELOW = re.compile(r"[^\n=;{}]{0,100}:[ \t]*\r?\n\s{0,8}(?P<bare>[^\s()\[\]{}<>]{6,})(?<!:)[ \t]*(?:\r?\n|\Z)")
"""A line that ends in a colon, and a value alone on the next."""
_ABOUT = re.compile(  # ends a name that does not hold the secret but tells of it
    r"(?:_|-)?(?:hash(?:er|ed)?|type|name|field|file|path|url|uri|id|length|len|policy|format|algorithm|label|hint"
    r"|regex|pattern|column|endpoint|expir\w*|count|size|version|env|var|header|prefix|age|limit|reset|dir|class|arn|ring|accessor"
    r"|manager)s?$",
    re.IGNORECASE,
)
_ARN = re.compile(r"\b(?:arn|urn):[\w:/.-]*$|\bAWS::[\w:]*$")  # an Amazon resource name that goes on


def _by_name(text: str, names: Sequence[Name]) -> Iterator[Secret]:
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters grow when they are lowered: places would not agree
        lowered = text
    spaced = spaced_words(lowered)
    for name in names:
        at, repeats, before = spaced.find(name.words), 0, 0
        while at >= 0:
            end = behind = at + len(name.words)
            is_part = name.is_whole_word and _is_part(
                spaced, at, end, may_be_plural=name.is_cue and name.kind == "password"
            )
            if not is_part and not _is_public(text[max(0, at - 200) : at]):
                secret, behind = (None, end) if name.is_cue else _value_behind(text, end, name)
                yield from [secret] if secret else ()
                repeats = repeats + 1 if at - before < CLOSE else 0
                if repeats < MOST_REPEATS:
                    yield from _around(text, at, end, name)
                before = at
            at = spaced.find(name.words, behind)


def _around(text: str, at: int, end: int, name: Name) -> Iterator[Secret]:
    """Yield what is said near a name and in the column of a table below it."""
    is_password = name.kind == "password"
    if name.kind == "pin" or (is_password and not name.is_cue and name.words != "pass"):
        if pin := find_pin(text, at, end, is_told=is_password and name.words.isascii()):
            yield Secret("pin", *pin)
        for place in find_in_column(text, at, end):
            yield Secret(name.kind, *place)
    if name.kind != "pin":
        for place in find_mentioned(text, at, end, is_password, name.is_cue or name.words == "pass"):
            yield Secret(name.kind, *place)


def _is_part(text: str, start: int, end: int, *, may_be_plural: bool) -> bool:
    """Return whether a name is part of a longer word. A Korean particle may follow it."""
    end += may_be_plural and text[end : end + 1] == "s"
    behind = text[end : end + 1]
    return text[start - 1 : start].isalnum() or (behind.isascii() and behind.isalnum())


def _value_behind(text: str, end: int, name: Name) -> tuple[Secret | None, int]:
    """Return the secret behind the end of a name, and where to search on."""
    for pattern, group_of in ((_BEHIND, _assigned), (_FURTHER, _mentioned), (_BELOW, _mentioned)):
        found = pattern.match(text, end)
        group = group_of(found, name) if found else None
        if found and group:
            return Secret(name.kind, *found.span(group)), found.end()
        if found and len(found[0]) > 1000:  # looked at once, however often it has the name in it
            return None, found.end()
    return None, end


def _is_public(before: str) -> bool:
    """Return whether the words before a name make it the name of something public."""
    return before.lower().endswith(("public", "public_", "publickey", "public key ")) or (
        any(map(before.__contains__, ("arn:", "urn:", "AWS::"))) and _ARN.search(before) is not None
    )


def _assigned(found: re.Match[str], name: Name) -> str | None:
    """Return the group of the match that holds the secret, if it looks like one."""
    if _ABOUT.search(found["more"]) or ((found["note"] or " ")[0] == "(" and name.words.isascii()):  # a call
        return None
    group = "quoted" if found["quoted"] else "bare"
    value, is_listed = found[group], found["listed"] is not None
    if name.is_whole_word and (found["more"] or (is_listed and not found["listed"].isspace())):
        return None
    is_prose = group == "bare" and found["told"] is not None and TITLED.fullmatch(value[:200])
    if is_prose or (
        is_listed
        and (is_code(value) or re.match("-|.*=$", value) or (is_name(value) and not found["listed"].isspace()))
    ):
        return None
    return group if _is_secret(name, value, is_quoted=group == "quoted") else None


def _mentioned(found: re.Match[str], name: Name) -> str | None:
    if found.re is _BELOW:
        value = found["bare"]
        return "bare" if is_thrown(value) or (name.kind == "password" and is_mentioned(value)) else None
    if (name.is_whole_word and not found["verb"]) or _ABOUT.search(found["more"]):
        return None
    is_told = found["verb"] and not name.is_whole_word and name.kind == "password"
    if found["quoted"]:
        return "quoted" if is_told and is_chosen(found["quoted"]) else None
    value = found["bare"]
    if is_told and not TITLED.fullmatch(value[:200]):
        return "bare" if sum(map(str.isdigit, value)) > 1 and is_chosen(value) else None
    return "bare" if is_strong(value) or (name.kind == "secret" and is_thrown(value)) else None


def _is_secret(name: Name, value: str, *, is_quoted: bool) -> bool:
    if (not is_quoted and is_code(value)) or (name.kind == "secret" and is_name(value)):
        return False
    if name.kind == "password":
        return is_password(value)
    return len(value) >= SHORTEST_KEY and is_thrown(value) if name.needs_long else len(value) >= 10 and is_random(value)


def may_hold_secret(name: str) -> bool:
    """Return whether the value under a field's name may be a secret by that name."""
    return _name_of(name) is not None


def is_secret_value(field: str, value: str) -> bool:
    """Return whether a value is a secret by the name of its field and by how it looks."""
    name = _name_of(field)
    return name is not None and _is_secret(name, value, is_quoted=True) and not MARK.search(value)


@lru_cache(1024)
def _name_of(field: str) -> Name | None:
    spaced = spaced_words(field.lower())
    if _ABOUT.search(field):
        return None
    for name in load_rules().names.values():
        if name.is_cue:
            continue
        if spaced == name.words if name.is_whole_word else name.words in spaced:
            return name
    return None
