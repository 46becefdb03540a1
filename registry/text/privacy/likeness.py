"""Tests of values: made by a machine, chosen by a person, a card, a resident number, or a piece of code. Pure."""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections import Counter
from contextlib import suppress
from datetime import date

LONGEST_CHOSEN = 64
"""Characters of a password that a person chooses."""
_PLACEHOLDER = re.compile(
    r"^[$%{<\[]|\$[{(]|\{\{|%\(|\.\.\.|…|\*\*|xxx|your|placeholder|change.?me|replace|dummy|redacted|undefined|null$"
    r"|(?-i:EXAMPLE)|^\D*\d?\D*example\D*\d?$|insert|\[private\]",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"^[A-Za-z_]\w*(?:->|::|=)\w|^[-+]?\d[\d._]*$|^(?:https?:)?/|^@|^!\w+$|^(?:arn|urn):"  # expressions, addresses
    r"|^(?:[\w.-]+/)*[\w.-]+\.(?:[jt]sx?|py|go|rs|rb|java|kt|swift|php|cs|cpp|[chm]d?|vue|txt|json|ya?ml|toml|html?|css"
    r"|sh|sql|tf|cfg|ini|lock|log|pem|crt|gz|zip|png|svg|tfstate)\b(?:[:-]\d+){0,2}[:-]?$"  # files, with a line
    r"|^[\w./-]+:\d+(?::\d+)?:?$|^\w*:\d+:\d*:|^\d+:\d|^--\w|\(\?|[aA]-[zZ]|\\d|\{\d"
)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![.\w])")  # user.token: if each part is written like a name
_WORDS = re.compile(r"[A-Za-z]+(?:[ _./:@#-]+[A-Za-z]+)*[_-]?\d{0,3}")  # user_token_2, settings.SECRET
_CAMEL = re.compile(
    r"(?:(?<=_)\d[a-z]\b|[A-Z]?[a-z]{2,}+|Ed|[A-Z]{2,}+|[A-Z]\d+(?=[A-Z][a-z])|[Vv]?\d{1,3}+|[_.:-])++"
)  # OAuth2Client
_TECHNICAL = re.compile(
    r"b64(?:enc|dec)(?:ode)?|(?:(?:sha|aes|rsa|hs|rs|es|utf|latin|base|ipv|md|oauth|http|argon|pbkdf|ed|pkcs|tls|rfc|[bs]crypt|hmac|gcm|cbc|ctr|chacha)"
    r"[-_]?\d{0,5}(?:id?|d)?[-_/]?)+",
    re.IGNORECASE,
)
_SPOKEN = re.compile(
    r"(?:string|str|text|varchar|char|int|number|bool|null|none|true|false|empty|min(?:length)?|max(?:length)?|required"
    r"|confirm\w*|hashed\w*|encrypted\w*|changed|reset|updated|set|wrong|invalid|incorrect|expired|rejected|accepted"
    r"|missing|removed|deleted|rotated|stored|saved|step|phase|version|option|table|column|field|value|page)[_-]?v?\d{0,3}\??",
    re.IGNORECASE,
)
_NUMBERED = re.compile(  # a word of the field with a number or a version
    r"(?:[a-z]+[-_ ]?)?(?:python|py|ubuntu|debian|node|java|jdk|user|host|server|web|page|step|test|port|line|win"
    r"|windows|linux|ipv|mysql|postgres|psql|ssl|tls|http|php|ruby|rails|go|chapter|part|level|stage|area|region|room|gpt|claude)"
    r"[-_]?v?[\d.]+|[a-z]{2,3}-[a-z]+-\d|v?\d+(?:\.\w+)+|[\d.,:-]+[a-z]{1,10}|[A-Z]+[-#]\d+|[A-Za-z]+\d",
    re.IGNORECASE,
)
_TYPED_KOREAN = re.compile("[a-z]*(?:q[hjklnosp]|[wtdfzxgv]k|[wtrsfzgqe]j|dm|rm|gks|tjd|dks)[a-z]*")
_WORD = re.compile(r"(?!(?:pass|secret|token|user|admin)\w*$)[a-z]{5,24}")
_NO_WORD = re.compile(  # tells something about a password
    r".*(?:ed|ing|[ai]ble|ive|ory|ary|ent|ant|ly|onal|ous|ful|less|self|where|thing|body)"
    r"|broken|hidden|stolen|written|given|taken|forgotten|chosen|open|invalid|valid|void|public|static|dynamic|generic"
    r"|longer|stronger|weaker|later|never|either|neither|inner|outer|lower|upper|local|global|manual|normal|final|total"
    r"|wrong|right|weak|strong|short|shorter|empty|blank|known|unknown|safe|unsafe|secure|insecure|unique|random"
    r"|plain|okay|great|enough|there|these|those|their|theirs|yours|mine|still|again|about|above|below|under|before"
    r"|simple|complex|easy|clear|unclear|true|false|string|bytes|characters|numbers?|letters?|default|incomplete"
    r"|obsolete|private|visible|ready|alive|online|offline|complete|shown|reset|which|whatever|first|second|third"
    r"|inside|outside|today|tomorrow|yesterday|always|maybe|sorry|thanks|please|just|correct|incorrect|sure|unsure"
    r"|null|none|alphanumeric|lowercase|uppercase|salt|plaintext|base|crap|trash|garbage|stuff|fine|good|better|worse"
    r"|worst|best|hard|harder|dumb|stupid|lame|same|similar|pretty|quite|rather|somehow|another|other|basic|bearer"
    r"|digest|bcrypt|scrypt|argon|admin|login|email|mail|phone|field|column|table|value|name|error|hash|regex|config"
)
_SMALL = re.compile(  # words of a sentence
    r"\b(?:the|an?|and|or|of|to|in|for|with|your?|that|this|must|should|was|not|is|are|can|will|from|has|have|when|then"
    r"|but|any|all|used?|via|key|file|password|passphrase|new|old|enter|too|very|if|on|at|by|as|it|no)\b"
)
_UNIT = re.compile(r"\d{2}(?:[KMGTkmgt]?(?:[Hh]z|i?[Bb]|bps|bit|[WVA])|px|ms|Ti|th|nd|rd|st)$")
_LISTED = re.compile(r"[a-z]+(?::\w+)?(?:\|[a-z]+(?::\w+)?)+")
TITLED = re.compile(  # a name as in prose: PasswordEncoder2, user_table2, k8s-secret-v2
    r"(?:[A-Z][a-z]+){2,}\d?|[a-z]+(?:_[a-z]+)+\d?|\w*[A-Za-z]\d{1,3}-(?:[a-z]{3,}|[A-Z]{3,})"
    r"|[a-z]\w{1,8}(?:-[a-z]{3,})+(?:-v?\d)?"
)


def entropy(text: str) -> float:
    """Return the bits for each character, by how often each occurs."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values())


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder: `${TOKEN}`, `your-key`, `***`."""
    return _PLACEHOLDER.search(value[:LONGEST_CHOSEN]) is not None


def is_code(value: str) -> bool:
    """Return whether a value without quotes is an expression, an address, a path, or a line of a file."""
    if len(value) > 2 * LONGEST_CHOSEN:
        return False
    dotted = _DOTTED.match(value)
    is_path = dotted is not None and all(
        re.fullmatch(r"\w{1,3}|[A-Za-z]{1,8}\d+[a-z]?", part) or is_name(part) or _WORDS.fullmatch(part)
        for part in dotted[0].split(".")
    )
    return is_path or _CODE.search(value) is not None


def is_random(value: str) -> bool:
    """Return whether a value is made by a machine: letters and digits of more than 3 bits each, unlike words."""
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return is_mixed and not is_placeholder(value) and not _WORDS.fullmatch(value[:200]) and entropy(value) > 3


def is_name(value: str) -> bool:
    """Return whether a value is written like a name in code: `OAuth2Client`."""
    return len(value) <= 2 * LONGEST_CHOSEN and _CAMEL.fullmatch(value) is not None


def is_thrown(value: str) -> bool:
    """Return whether a word can be nothing but made by a machine."""
    return sum(map(str.isdigit, value[:200])) > 2 and not is_code(value) and not is_name(value) and is_random(value)


def is_password(value: str) -> bool:
    """Return whether a person may have chosen it: letters with digits, or with signs that no name has."""
    if len(value) > LONGEST_CHOSEN:
        return is_random(value)
    kinds = any(map(str.isalpha, value)) + any(map(str.isdigit, value)) + bool(re.search(r"[!@#^&*+=?~|]", value))
    is_word = any(each.fullmatch(value) for each in (_TECHNICAL, _SPOKEN, _LISTED))
    return kinds > 1 and not is_word and not is_placeholder(value)


def is_chosen(value: str) -> bool:
    """Return whether a person may have chosen it, where it stands without quotes."""
    return is_password(value) and not is_code(value) and any(map(str.isalpha, value))


def is_strong(value: str) -> bool:
    """Return whether it can be nothing but a password: where no sign says that one follows."""
    is_mixed = any(map(str.islower, value)) and any(map(str.isupper, value))
    is_made = any(map(str.isdigit, value)) and (is_mixed or bool(re.search(r"[!#$%^&*?~+=]", value)))
    is_other = is_name(value) or "/" in value or _UNIT.search(value) or re.search(r"\w@[\w-]+\.\w", value)
    return is_made and not is_other and 7 < len(value) <= LONGEST_CHOSEN and is_chosen(value)


def is_mentioned(value: str) -> bool:
    """Return whether it may be a password where a sentence says that one follows, and is no technical word."""
    is_plain = (
        _NUMBERED.fullmatch(value)
        or TITLED.fullmatch(value[:200])
        or re.search(r"\w@[\w-]+\.\w|^[\w.-]*/|[=*]$", value)
    )
    return 5 < len(value) <= LONGEST_CHOSEN and not is_plain and is_chosen(value)


def is_typed_korean(value: str) -> bool:
    """Return whether Korean was typed with Latin letters (비밀 becomes `qlalf`), as many Korean passwords are."""
    return 4 < len(value) < 24 and _TYPED_KOREAN.fullmatch(value) is not None


def is_word(value: str) -> bool:
    """Return whether a word behind "the password is" may be the password, and tells nothing about it."""
    return _WORD.fullmatch(value) is not None and _NO_WORD.fullmatch(value) is None


def is_no_default(value: str) -> bool:
    """Return whether it is neither a placeholder nor a word that stands for a password."""
    defaults = (
        "password",
        "passwd",
        "pass",
        "pwd",
        "pw",
        "secret",
        "token",
        "mypassword",
        "username",
        "user",
        "postgres",
    )
    return not is_placeholder(value) and value.lower() not in defaults


def is_discord_id(value: str) -> bool:
    """Return whether a token begins with a number in base 64."""
    with suppress(ValueError):
        return b64decode(value.partition(".")[0] + "==", b"-_").isdigit()
    return False


def is_encoded_key(value: str) -> bool:
    """Return whether base 64 begins with the header of a private key."""
    return b"PRIVATE KEY" in b64decode(value[:80])


def is_resident(number: str) -> bool:
    """Return whether a resident number has a possible birthday and a check digit, which newer ones do not have."""
    digits = [int(digit) for digit in number if digit.isdigit()]
    century = {1: 1900, 2: 1900, 5: 1900, 6: 1900}.get(digits[6], 2000)
    try:
        born = date(century + digits[0] * 10 + digits[1], digits[2] * 10 + digits[3], digits[4] * 10 + digits[5])
    except ValueError:
        return False
    weights = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
    check = (11 - sum(map(int.__mul__, digits, weights)) % 11) % 10
    is_foreign = digits[6] >= 5
    return digits[12] in (check, (check + 2) % 10 if is_foreign else check) or born >= date(2020, 10, 1)


_CARDS = re.compile(  # by the first digits of the big networks
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|(?:6011|65\d\d|64[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|(?:62|9[4-6])\d{14}"
)


def is_card(number: str) -> bool:
    """Return whether a number is of a card network and has the right check digit."""
    digits = re.sub("[ -]", "", number)
    if not _CARDS.fullmatch(digits):
        return False
    doubled = [int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def is_argument(value: str) -> bool:
    """Return whether an argument of a command that takes a password is one, and no variable, option or prompt."""
    return is_no_default(value) and len(set(value)) > 2


def is_value(value: str) -> bool:
    """Return whether the value beside a user's name is a password, and no type, translation or variable."""
    is_other = any(each.fullmatch(value) for each in (_SPOKEN, _TECHNICAL, _LISTED)) or value.istitle()
    return is_argument(value) and not is_code(value) and not is_other


def is_phrase(value: str) -> bool:
    """Return whether words are chosen by chance: a sentence has small words, a remark tells about the password."""
    words = re.split("[ -]", value.lower())
    return not _SMALL.search(value.lower()) and (len(words) > 3 or not any(map(_NO_WORD.fullmatch, words)))


def is_pin(value: str) -> bool:
    """Return whether digits are no year and no example."""
    return not re.match(r"(?:19|20)\d\d$|0000+$|9999+$|1234567?8?$", value)


def has_digit(value: str) -> bool:
    return any(map(str.isdigit, value))


TESTS = {
    "argument": is_argument,
    "value": is_value,
    "phrase": is_phrase,
    "with-digit": has_digit,
    "random": is_random,
    "thrown": is_thrown,
    "chosen": is_chosen,
    "strong": is_strong,
    "no-default": is_no_default,
    "discord-id": is_discord_id,
    "encoded-key": is_encoded_key,
    "resident-number": is_resident,
    "card-number": is_card,
}
"""By the names that `looks` has in a file of rules."""
