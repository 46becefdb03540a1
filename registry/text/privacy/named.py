"""Values behind a name, such as `SECRET_KEY =` and 비밀번호는. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from registry.text.privacy.formats import Secret
from registry.text.privacy.likeness import (
    CODE,
    LONGEST_CHOSEN,
    SHORTEST_SECRET,
    is_chosen,
    is_random,
    is_strong,
    is_titled,
)

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
_PASSWORDS = frozenset(NAMES["password"])
_CALLED = re.compile("|".join(map(re.escape, NAME_SIGNS)), re.IGNORECASE)


def named(text: str, words: str) -> Iterator[Secret]:
    """Values behind a name such as `SECRET_KEY =`; `words`: those of the text that may tell of one, in lower case."""
    called = [(kind, name) for kind, names in NAMES.items() for name in names if NAME_SIGNS[name] in words]
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


def is_named_secret(name: str, value: str) -> bool:
    """Whether a value is a secret by the name of its field and by how it looks."""
    called = _called(name)
    return called is not None and _looks_like_one(called, value, is_quoted=True)


@lru_cache(1024)
def _called(field: str) -> str | None:
    """What a field's name calls a secret, if it does; the same fields come again and again."""
    called = _CALLED.search(field)
    return called[0].lower() if called and not _ABOUT.search(field) else None
