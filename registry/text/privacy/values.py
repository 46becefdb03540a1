"""Judge by its form whether a value looks like a secret, or like a card's number or a resident's. Pure."""

import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable
from datetime import date
from enum import IntEnum
from functools import lru_cache

LONGEST_CHOSEN = 64  # characters of a password that a person chooses


class Form(IntEnum):
    """Oddness of a value. The odder it is, the looser its tie to a word such as "password" may be."""

    NONE = 0
    """A path, an address, a number, a placeholder, code, or a word of the field."""
    WORD = 1
    """A plain word, or words that are joined: `penguin`, `kimchi_jjigae`."""
    NUMBERED = 2
    """Words with digits, or Korean typed with Latin letters: `sunflower22`, `Alder-52-fern`, `qlalfdlek`."""
    ODD = 3
    """Digits among letters, or capitals within: `7dk31fx802`, `Neptune2023`."""
    STRANGE = 4
    """Several of these, or signs within: `Gr4nite!moss`."""
    MADE = 5
    """Made by a machine: 16 characters or more, letters and digits at random."""
    NEVER = 6
    """No value has it: asked for where nothing is odd enough."""


_PLACEHOLDER = re.compile(
    r"^[$%{<\[]|^hmac-sha\d+:|^(?:my|access|secret|api|auth|client)_(?:access_)?(?:key|secret|token|password|pass)$|^user(?:name)?:pass(?:word|wd)?@|\$[{(]|\{\{|\.\.\.|…|(?<!\d{3})\*\*|\*\*(?!$)|[•●]{2}|xxxx|(?<![a-z0-9])your|placeholder|change.?me|replace|dummy|redacted|undefined|null$"
    r"|^\D*\d?\D*example\D*\d?$|insert|(?:key|token|secret|password|value|goes)[_-]here$|여기|입력",
    re.IGNORECASE,
)
_CODE = re.compile(  # an expression, a number, an address, a path, a file with its line, a digest
    r"^[A-Za-z_]\w*(?:->|::)\w|^(?:#[\w.]+|[A-Za-z_]+\d?)=[\w/]|^[A-Za-z_]+=$|^[-+]?\d[\d._]*$|^#\W"
    r"|^(?:https?:|\.{1,2})?/(?!(?=(?:\D*\d){3})(?=[^A-Z]*[A-Z])[A-Za-z0-9+/]{25,}=*$)"
    r"|^[@?][A-Za-z]|^@\.{0,2}/|@(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,40}$|^\w+\$\d+\.|^![A-Za-z_]+$|^(?:arn|urn|h\d):|^--\w|^S-1-\d|^[\w-]+_session_\d{8}_\d{4,6}(?:_\w+)?$"
    r"|^(?:hmac-)?(?:sha\d{1,3}|SHA\d{1,3}|md5)[:=/]|^(?:rsa|dsa|elg|ed|cv)\d{3,5}/[0-9A-F]{8,40}$|^1-[0-9a-f]{8}-[0-9a-f]{24}$|\w\[$|^\w+=https?:|^[0-9a-f]{7,40}\.{2,3}[0-9a-f]{7,40}$|^!*this\.|^!!\w|^[\w$.]+\?\.[A-Za-z]"
    r"|^(?:\d+:)?\d+(?:\.\d+)+[\w.+~]*-\d[\w.+~]*$|:(?:amd64|arm64|i386|all)$|\.so(?:\.\d+)*$|\.(?:dist|egg)-info$|^OpenSSH_[\d.]+p\d$|^Debian-\S+deb|^(?:[A-Za-z]{2,}[-_.]){2,}[0-9a-f]{40,64}$"
    r"|^0x[0-9a-fA-F]{1,40}$|^(?!(?=.{8})(?:[a-f]{2,}\d{3,}|12345\d*[a-f])$)[0-9a-f]{7,12}$|^[0-9A-F]{16}$|^[\w./:-]*:\d+(?::|$)|@[~^]\d|@\d+\.\d|^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-|\\d|[aA]-[zZ]|\(\?[=!:]|^(?!SK)[A-Z]{2}[0-9a-f]{32}$|^pk_(?:live|test)_|^g?v\$|^(?:ami|eni|i|sg|snap|subnet|vol|vpc)-[0-9a-f]{8,17}$"
    r"|^(?:[\w.-]+/)*[\w.-]+\.(?:[a-z]{1,4}|mp[34]|html5?|swift|tfstate)(?:[:-]\d+){0,2}[:-]?$"
)
_DOTTED_WORDS = re.compile(
    r"(?!.*(?i:pass|secret|token|key|code|conf|valid|sha|base))(?=.*\b[A-Z][a-z])(?=.*[a-z]\d+\b)"
    r"[A-Za-z][a-z]+\d*\.[A-Za-z][a-z]+\d*|[a-z]+\.[a-z]+\d{3,4}"
)  # Reindeer.moss5, teddy.bear1011
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![.\w])")  # user.token
_NAME = re.compile(  # OAuth2Client, user_table_2
    r"(?!\d{3})(?:[a-z](?=[A-Z][a-z]))?(?:[A-Z][a-z]++|[a-z]{2,}+|[A-Z]{2,}+|[A-Z]\d+(?=[A-Z][a-z])|[Vv]?\d{1,3}+|[_.:-])++"
)
_BROKEN = re.compile(
    r"[A-Za-z]\d+(?=[A-Za-z]).*[A-Za-z]\d+[A-Za-z]|[a-z]\d{2,}[a-z]|[a-z]0[a-z]{2}"
)  # no name has so many numbers
_TECHNICAL = re.compile(  # an algorithm, a product with its version, a model's number
    r"(?:(?:sha|aes|rsa|hs|rs|es|utf|latin|base|b|ipv|md|oauth|http|argon|pbkdf|ed|cv|pkcs|tls|rfc|[bs]crypt|hmac|gcm|cbc|modp)[-_]?\d{0,5}"
    r"(?:id?|d)?[-_/]?)+(?:(?:en|de)c(?:od\w{1,8})?)?"
    r"|(?-i:(?!0\d)[\d.,:-]{1,6}(?:[a-z]{1,2}|[km]?bps|[fd]p[si]|[kmg]hz|mah|rpm|rem|sec|hrs"
    r"|(?:bit|byte|char(?:acter)?|digit|letter|word|line|row|user|time|second|min|minute|hour|day|week|month|year|token"
    r"|page|item|file|step|unit|password|factor)s?|[A-Z]{1,4}|[kMG](?:Hz|bps))"
    r"|(?:[A-Z][A-Za-z]*-)+[A-Z]{1,3}\d{2,4}[a-z]{0,3})"
    r"|(?-i:[A-Z]+)[-#]\d+|(?-i:[A-Z]{1,5}\d{2,5}[A-Z]{0,3}\d{0,4}[a-z]{0,2}|[A-Z]{2,10}\d)|[a-z]\d{2,3}|\d\dH[12]|[a-z]{2,4}\d[a-z]\d?"
    r"|\d+(?:\.\d+)?(?:eur|usd|krw|/[a-z]+)|[A-Z]{0,2}\$[\d.,]+[kKmM]?|esp\d{2,4}|1password|\d{3}-\d{2,3}[A-Z]?|ssh2|fail2ban|log2ram|i18n|l10n|a11y|pg\d\d"
    r"|(?:amd|arm)64|x86_64|(?:firefox|chrome|edge|safari|android|wlan|eth|stm|nrf|php|jdk|node|vue|react|django)\d{1,3}"
    r"|fritz!\S*|(?:iphone|ipad|galaxy|pixel|office|windows|python|윈도우|아이폰|아이패드|갤럭시|오피스|엑셀|한글|정부)\d+(?:,\d)?|(?:[a-z]+-?v?|7z)\d{1,2}(?:\.\d+)+"
    r"|[a-z]{1,3}OS[ -]?\d+|wpa\d?(?:-?(?:psk|personal|enterprise|eap))?",
    re.IGNORECASE,
)
_CONSONANT, _VOWEL = "[qwertasdfgzxcvQWERT]", "(?:h[kol]|n[jpl]|ml|[yuiophjklbnmOP])"
_TYPED_KOREAN = re.compile(  # syllables of a Korean keyboard, with groups of letters that English does not have
    r"(?=[a-z]*(?:q[hjklnosp]|[wtdfzxgv]k|[wtrsfzgqec]j|dm|(?<![aeou])dh|(?<![aeo])rm|gks|tjd|dks|z[lmno]|x[ln]|v[lnm]|w[lm]|[qwrtsdfgzxcv]n[jpl]"
    "|[xj][jqr]|[lo]q|[dt]lf|eh[ld]|emf|gh[kl]|pd[ly]|rh[kd]|fdl|fmf|lrk|rud|dyd|mff|ak[fw]|tmx|cnf|lsr|ek[df]|whd|quf))"
    f"(?:{_CONSONANT}{_VOWEL}{_CONSONANT}{{0,2}})+"
)
_UNMISTAKABLE = re.compile(  # Summer2019!, L0ckness_Monday
    r"(?!\S*#(?:\d+$|\w+-))(?!\S*\w!\$?[A-Z]{1,3}\$?\d)(?!\d+!)(?=[^\s/]{8,64}$)(?=\S*\d)"
    r"(?:\S*[A-Za-z0-9][!#$][A-Za-z0-9]|\S*\d{3}!|(?=\S*[A-Z])[A-Za-z0-9]{3,}[&*^][A-Za-z0-9]{3,}(?![\w=&*^])"
    r"|(?=\S*[A-Z])(?=\S*[a-z]{2})\S*[A-Za-z][013457]{1,2}(?:[a-z]{2,}|[a-z][013457][a-z]+)(?![a-z0-9]))"
)
_WORD = re.compile(r"(?!(?:pass|secret|token|user|admin)\w*$)[a-z]{2,24}")
_REMARK = re.compile(  # tells something about a password
    r"[a-z_-]{3,}ed|used|need|[a-z_-]*(?:ing|[ai]ble|ive|ory|ary|ent|ant|ly|onal|ous|ful|less|self|where|thing|body)"
    r"|invalid|valid|public|static|generic|local|global|manual|normal|wrong|right|weak|strong|short|empty|blank|unknown|safe|secure"
    r"|unique|random|plain|common|sorry|please|correct|incorrect|falsch|there|these|those|yours|mine|still|again|about|above|below|same|that|this|them|it|now|help|thanks|what|why|how|simple|complex|easy|clear|true|false"
    r"|string|array|bytes|characters|numbers?|letters?|default|visible|ready|complete|shown|reset|fails?|works?|exists?|matters?|expires?"
    r"|broken|hidden|forgotten|success|failure|strength|length"
    r"|null|none|base|fine|good|best|worst|hard|basic|digest|[bs]crypt|argon|login|email|phone|field|form|label|message|mismatch|validation|column|table|value|name|error"
    r"|hash|regex|config|text|varchar|m(?:in|ax)(?:length)?|confirm\w*|stdin|prompt|version|options?|page|step"
    r"|given|taken|chosen|written|typed|kept|sent|gone|cut|case|half|never|always|also|else|than|which|whatever|where|instead|because"
    r"|without|should|would|could|after|before|while|since|using|flags?|arguments?|parameters?|switch|words?|digits?|chars?|policy"
    r"|[a-z]+(?::\w+)?(?:\|[a-z]+(?::\w+)?)+|ugfzc3dvcmq6|vxnlcm5hbwu6"
)
_FIELD = re.compile("[a-z](?:Password|Passwd|Token|Secret)$")  # challengePassword
_SMALL = re.compile(  # words of a sentence
    r"\b(?:the|an?|and|or|of|to|in|for|with|your?|secret|token|that|this|must|should|was|not|is|are|can|will|from|has|have|when|then"
    r"|but|any|all|used?|via|key|file|passe|passwort|contraseña|password|passphrase"
    r"|new|old|enter|too|very|being|if|on|at|by|as|it|no)\b"
)


def entropy(text: str) -> float:
    """Return the bits for each character, by how often each occurs."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values())


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder: `${TOKEN}`, `your-key`, `***`."""
    found = _PLACEHOLDER.search(value[:LONGEST_CHOSEN])
    return found is not None and len(set(re.findall(r"[^\w\s]", value))) < 9  # WordPress makes keys of all signs


def is_code(value: str) -> bool:
    """Return whether a value without quotes is an expression, an address, a path, or a line of a file."""
    if len(value) > 2 * LONGEST_CHOSEN:
        return False
    dotted = _DOTTED.match(value) if not _PARTS.fullmatch(value) and not _DOTTED_WORDS.fullmatch(value) else None
    is_path = dotted is not None and all(
        len(part) < 4 or (is_name(part) and not re.search(r"[a-z]\d[a-z]{2}", part) and not is_typed_korean(part))
        for part in dotted[0].split(".")
    )
    return is_path or _CODE.search(value) is not None


def is_name(value: str) -> bool:
    """Return whether a value is written like a name in code: `OAuth2Client`."""
    is_short = len(value) <= 2 * LONGEST_CHOSEN
    return is_short and _NAME.fullmatch(value) is not None and not _BROKEN.search(value)


def is_random(value: str) -> bool:
    """Return whether a value is made by a machine: letters and digits of more than 3 bits each, unlike words."""
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return (is_mixed and not is_placeholder(value) and entropy(value) > 3) or is_jumbled(value)


def is_made(value: str) -> bool:
    """Return whether a word can be nothing but made by a machine."""
    has_digits = sum(map(str.isdigit, value[:200])) > 2
    return is_jumbled(value) or (has_digits and not is_code(value) and not is_name(value) and is_random(value))


_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def is_jumbled(value: str) -> bool:
    """Return whether letters and digits are mixed as in no name: often changing, or without a vowel for long."""
    return (
        len(value) >= 16
        and value.isalnum()
        and value.isascii()
        and (
            0.4 * len(value) < len(_PART.findall(value))
            or (not value.isalpha() and _UNSPOKEN.search(value) is not None)  # German words have as many consonants
        )
        and not is_placeholder(value)
        and not is_code(value)
    )


def is_password(value: str) -> bool:
    """Return whether a person may have chosen a value in quotes: letters with digits, or with signs no name has."""
    if len(value) > LONGEST_CHOSEN:
        return is_random(value)
    kinds = any(map(str.isalpha, value)) + any(map(str.isdigit, value)) + bool(re.search(r"[!@#^&*+=?~|]", value))
    return kinds > 1 and not is_remark(value) and not is_placeholder(value)


@lru_cache(2048)
def form(value: str) -> Form:
    """Return how odd a value is where no quotes say that it is one."""
    if _SEED.fullmatch(value):
        return Form.MADE
    if value.isalpha() and (value[1:].islower() or value.isupper()):
        if len(value) > 9 and len(set(value)) > 6 and _UNSPOKEN.search(value):
            return Form.ODD
        return Form.WORD if is_word(value) else Form.NONE
    if _DIGITS.fullmatch(value):
        return Form.NUMBERED
    if _TYPED_WITH_SIGNS.match(value) and is_typed_korean(value):
        return Form.STRANGE
    if len(value) < 4 or is_placeholder(value) or is_code(value) or is_remark(value):
        return Form.NONE
    is_address = _ADDRESS.search(value) is not None
    if len(value) >= 16 and is_made(value) and not (is_address and (entropy(value) < 4 or value.islower())):
        return Form.MADE
    has_digits = any(map(str.isdigit, value))
    if is_address or len(value) > LONGEST_CHOSEN or not any(map(str.isalpha, value)):
        return Form.NONE
    points = (
        has_digits
        + (3 - has_digits if _SIGN.search(value) else 0)
        + (_WITHIN.search(value) is not None)
        + (_CAPITAL.search(value) is not None and (has_digits or 2 * (len(value) > 7)))
        + (has_digits and not value.islower() and not value.isupper())
    )
    if _PARTS.fullmatch(value):
        points = 2
    elif is_name(value) and not _DATED.fullmatch(value):
        points = min(points, has_digits)
    if points == 0:
        return Form.WORD if is_word(value) else Form.NUMBERED if is_typed_korean(value) else Form.NONE
    most = Form.STRANGE if len(value) > 5 else Form.NUMBERED  # what is short is odd by chance: "v2.1!"
    return Form(min(points + Form.WORD, most))


def is_unmistakable(value: str) -> bool:
    """Return whether a word is a password even where nothing tells of one: Summer2019!, L0ckness_Monday."""
    value = value.strip("\"'`“”‘’()[],;:.")
    is_likely = _UNMISTAKABLE.match(value) or (_TYPED_WITH_SIGNS.match(value) and is_typed_korean(value))
    return bool(is_likely) and form(value) is Form.STRANGE


_ADDRESS = re.compile(  # a path, an e-mail address, a prompt, an option, a date
    r"^[\w.-]*/|/[\w-]+[./]|[\w)]@[\w-]+\.\w|^[\w.-]+@[\w.-]+:|://|=$|[A-Za-z]@$|^-|^\d{4}-\d\d-\d\d|=[^=]*&|&\w+=|&(?:nbsp|[lg]t|amp|quot)|\|.*\||^[a-z]+@[a-z]+$|\w\[\w+\]$"
)
_DIGITS = re.compile(r"(?!\d{1,3}(?:_\d{3})+$)(?=(?:\D*\d){4})[\d_!@#$^&*]*(?:\d[_!@#$^&*]|[!@#$^&*]\d)[\d_!@#$^&*]*")
_PARTS = re.compile(  # Hydrant-Bishop-19, Marigold_1979_kettle
    r"(?=[^A-Z]*[A-Z])(?=\D*\d)[A-Za-z]{3,}([._-])(?:[A-Za-z]{3,}\1\d{1,4}|\d{1,4}\1[A-Za-z]{3,})"
)
_DATED = re.compile(r"[A-Z][a-z]{2,}(?:\d{4,}|[._-]\d{3,}(?:\.\d)?)")  # Neptune2023, Dewey-398.2
_TYPED_WITH_SIGNS = re.compile(r"(?!.{40})\D*\d.*[@#$^&*.]")
_UNSPOKEN = re.compile("[bcdfghjklmnpqrstvwxyz]{7}")
_SEED = re.compile("(?=.*[BCDFGHJKLMNPQRSTVWXZ]{4})[A-Z2-7]{16,}")  # of one-time passwords, in base32
_SIGN = re.compile(r"[\w!][!#$%^&*?=~@]\w|[\d!#$%^&*?@][!#$^*?@]$|[A-Za-z][#$^]$|^[!$&]\w*\d")
_CAPITAL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
_WITHIN = re.compile(r"[A-Za-z]\d+[A-Za-z]|^\d+[A-Za-z]{2}")


@lru_cache(2048)
def is_typed_korean(value: str) -> bool:
    """Return whether Korean was typed with Latin letters (비밀 becomes `qlalf`), as many Korean passwords are."""
    value = value[:1].lower() + re.sub(r"(?<=[a-z])-(?=[a-z])", "", value[1:].rstrip("0123456789!@#$^&*.~"))
    value = value[value.find("_") + 1 :]
    return 4 < len(value) < 24 and _TYPED_KOREAN.fullmatch(value) is not None


def is_word(value: str) -> bool:
    """Return whether words may be a password, and tell nothing about it."""
    parts = re.split("[-_]|(?<=[a-z])(?=[A-Z])", re.sub(r"[_-]\d+$", "", value))
    return (
        len(value) > 4
        and not is_placeholder(value)
        and all(_WORD.fullmatch(part) and not _REMARK.fullmatch(part) for part in map(str.lower, parts))
    )


def is_remark(value: str) -> bool:
    """Return whether a word tells something about a password: "expired", "bcrypt", "iPhone13"."""
    value = re.sub(r"[!?]{2,}$|\?$", "", value)
    return _REMARK.fullmatch(value.lower()) is not None or _TECHNICAL.fullmatch(value) is not None


def is_short_hex(value: str) -> bool:
    """Return whether a value is a password of a router's label: like a commit, so only right behind its name."""
    return re.fullmatch(r"(?=\D*\d)(?=\d*[a-f])[0-9a-f]{8,12}", value) is not None


def is_scrambled(value: str) -> bool:
    """Return whether letters are mixed at random: a name's capitals begin words that can be spoken."""
    humps = re.findall("[A-Z]?[a-z]+|[A-Z]+", value)
    unlike = [hump for hump in humps if len(hump) < 4 or not re.search("[aeiouyAEIOUY]", hump)]
    return len(humps) > 2 and 2 * len(unlike) >= len(humps) and not is_placeholder(value)


def is_argument(value: str) -> bool:
    """Return whether an argument of a command is a password, and no variable, option, file or default."""
    defaults = "password", "passwd", "pass", "pwd", "secret", "token", "mypassword", "username", "postgres", "foobared"
    return len(set(value)) > 2 and not is_placeholder(value) and value.lower() not in (*defaults, "비밀번호")


def is_value(value: str) -> bool:
    """Return whether the value behind a prompt or in a field is a password, and no type, remark, path or message."""
    is_other = (
        _CODE.search(value) or is_remark(value) or (" " in value[:50] and len(value) < 50 and not is_phrase(value))
    )
    return is_argument(value) and not is_other and not _FIELD.search(value)


def is_phrase(value: str) -> bool:
    """Return whether words are chosen by chance: a sentence has small words, a remark tells about the password."""
    words = re.split("[ -]", value.lower())
    return not _SMALL.search(value.lower()) and (len(words) > 3 or not any(map(_REMARK.fullmatch, words)))


def is_pin(value: str) -> bool:
    """Return whether digits are no year and no example."""
    return not re.match(r"(?:19|20)\d\d$|(\d)\1{3,}$|12345?6?7?8?$", value)


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


TESTS: dict[str, Callable[[str], bool]] = {
    "any": lambda value: True,
    "argument": is_argument,
    "value": is_value,
    "chosen": lambda value: form(value) >= Form.NUMBERED or is_short_hex(value),
    "odd": lambda value: form(value) >= Form.ODD,
    "made": is_made,
    "random": is_random,
    "scrambled": is_scrambled,
    "word": is_word,
    "phrase": is_phrase,
    "encoded": lambda value: len(value) % 4 == 0 and not value.isalpha(),
    "encoded-key": is_encoded_key,
    "resident-number": is_resident,
    "card-number": is_card,
}
"""By the names that `looks` has in a file of rules."""
