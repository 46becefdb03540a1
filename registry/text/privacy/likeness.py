"""How a value looks: thrown by a machine, chosen by a person, a card, a resident, or a piece of code. Pure."""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections import Counter
from contextlib import suppress
from datetime import date


def is_resident(number: str) -> bool:
    """A resident number with a birthday that there is; those given out since October 2020 have no check digit."""
    digits = [int(digit) for digit in number if digit.isdigit()]
    century = {1: 1900, 2: 1900, 5: 1900, 6: 1900}.get(digits[6], 2000)
    year = century + digits[0] * 10 + digits[1]
    try:
        born = date(year, digits[2] * 10 + digits[3], digits[4] * 10 + digits[5])
    except ValueError:
        return False
    weights = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
    check = (11 - sum(map(int.__mul__, digits, weights)) % 11) % 10
    is_foreign = digits[6] >= 5
    return digits[12] in (check, (check + 2) % 10 if is_foreign else check) or born >= date(2020, 10, 1)


_CARDS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|(?:6011|65\d\d|64[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|(?:62|9[4-6])\d{14}"
)
"""By the first digits of the big networks."""


def is_card(number: str) -> bool:
    digits = re.sub("[ -]", "", number)
    if not _CARDS.fullmatch(digits):
        return False
    doubled = [int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_PLACEHOLDER = re.compile(
    r"^[$%{<\[]|\$[{(]|\{\{|%\(|\.\.\.|…|\*\*|xxx|your|placeholder|change.?me|dummy|redacted|undefined|null$|example|insert",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[A-Za-z]+(?:[ _./:@#-]+[A-Za-z]+)*[_-]?\d{0,3}")
"""Names, paths and sentences: `user_token_2`, `settings.SECRET`."""
SHORTEST_SECRET = 10
RANDOM = 3.0
"""Bits for each character; English words have fewer, what a machine throws has more."""
_TECHNICAL = re.compile(
    r"(?:sha|aes|rsa|hs|rs|es|utf|base|ipv|md|oauth|http|argon|pbkdf|ed|pkcs|tls|rfc|[bs]crypt)[-_]?\d{1,5}",
    re.IGNORECASE,
)
"""What passwords are spoken of with."""
_SPOKEN = re.compile(
    r"(?:string|str|text|varchar|char|int|number|bool|null|none|true|false|empty|min(?:length)?|max(?:length)?|required"
    r"|confirm\w*|hashed\w*|encrypted\w*|changed|reset|updated|set|wrong|invalid|incorrect|expired|rejected|accepted"
    r"|missing|removed|deleted|rotated|stored|saved|step|phase|version|option|table|column|field|value|page)[_-]?v?\d{0,3}",
    re.IGNORECASE,
)
_LISTED = re.compile(r"[a-z]+(?::\w+)?(?:\|[a-z]+(?::\w+)?)+")
_TITLED = re.compile(
    r"(?:[A-Z][a-z]+){2,}\d?|[a-z]+(?:_[a-z]+)+\d?|\w*[A-Za-z]\d{1,3}-(?:[a-z]{3,}|[A-Z]{3,})"
    r"|[a-z]\w{1,8}(?:-[a-z]{3,})+(?:-v?\d)?"
)
_DEFAULTS = frozenset({"password", "passwd", "pass", "pwd", "pw", "secret", "username", "user"})


def entropy(text: str) -> float:
    """Bits for each character, by how often each occurs."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values())


def is_random(value: str) -> bool:
    """Letters and digits as a machine throws them."""
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return is_mixed and not _PLACEHOLDER.search(value) and not _WORDS.fullmatch(value) and entropy(value) > RANDOM


def is_chosen(value: str) -> bool:
    """A password as a person chooses one: letters with digits, or with signs that no name has."""
    kinds = any(map(str.isalpha, value)) + any(map(str.isdigit, value)) + bool(re.search(r"[!@#^&*+=?~|]", value))
    is_spoken = any(each.fullmatch(value) for each in (_TECHNICAL, _SPOKEN, _LISTED))
    return kinds > 1 and not is_spoken and not _PLACEHOLDER.search(value)


def is_titled(value: str) -> bool:
    """Return whether a word is a name as in prose: `PasswordEncoder2`, `user_table2`, `AES256-GCM`, `k8s-secret-v2`."""
    return bool(_TITLED.fullmatch(value))


_CAMEL = re.compile(r"(?:[A-Z]?[a-z]{2,}|[A-Z]{2,}|\d{1,3}|[_.:-])+")
"""A name of code's, with digits or without: `OAuth2Client`."""


def is_strong(value: str) -> bool:
    """A password that can be nothing else: for where it stands beside a name and no sign says that it is one."""
    is_mixed = any(map(str.islower, value)) and any(map(str.isupper, value))
    is_made = any(map(str.isdigit, value)) and (is_mixed or bool(re.search(r"[!#$%^&*?~+=]", value)))
    is_name = _CAMEL.fullmatch(value) or "@" in value or "/" in value
    return is_made and not is_name and 7 < len(value) <= LONGEST_CHOSEN and is_option(value)


def is_thrown(value: str) -> bool:
    """Return whether a word looks machine-made."""
    is_name = _CAMEL.fullmatch(value) or CODE.search(value)
    return sum(map(str.isdigit, value)) > 2 and not is_name and is_random(value)


def is_bot(value: str) -> bool:
    """A bot's number before its first full stop, in base 64."""
    with suppress(ValueError):
        return b64decode(value.partition(".")[0] + "==", b"-_").isdigit()
    return False


def is_url_password(value: str) -> bool:
    return not _PLACEHOLDER.search(value) and value.lower() not in _DEFAULTS


def is_command_password(value: str) -> bool:
    return is_option(value) and any(map(str.isalpha, value))


def is_option(value: str) -> bool:
    return is_chosen(value) and not CODE.search(value)


def is_header(value: str) -> bool:
    return any(map(str.isdigit, value)) and not _PLACEHOLDER.search(value) and entropy(value) > RANDOM


LONGEST_CHOSEN = 64
"""Characters of a password that a person chooses."""
CODE = re.compile(r"^[A-Za-z_]\w*(?:\.|->|::|=)\w|^[-+]?\d[\d._]*$|^(?:https?:)?/|^@")
"""What stands in code without quotes is an expression."""
