"""Secrets in a text: keys, passwords, cards and resident numbers, by the formats that their givers publish. Pure.

A key is a long word: only of these is it asked whether they hold the hint of a rule, so that most texts cost little.
"""

from __future__ import annotations

import math
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from functools import cache
from hashlib import blake2b
from itertools import chain, starmap
from typing import NamedTuple

from registry.text.privacy.escapes import ESCAPING, unescaped
from registry.text.privacy.key_formats import STARTING

MARK = re.compile(r"\[secret:[a-z-]+:[0-9a-f]{2}\]")
"""What stands in a secret's place."""


class Secret(NamedTuple):
    """A secret in a text: what it is, and where it stands."""

    kind: str
    start: int
    end: int


class Rule(NamedTuple):
    """One format. A group called `secret` is what is masked, else the whole match."""

    kind: str
    pattern: str
    hints: tuple[str, ...] = ()
    """One of these stands in the long words of every text that holds one."""
    beside: tuple[str, ...] = ()
    """The same of the whole text, in lower case. A rule with neither is about digits."""
    is_one: Callable[[str], bool] | None = None
    """What the pattern cannot say."""


SHORTEST_KEY = 20
"""Characters: no key that is known by its own signs is shorter."""
_START, _END = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"


def _starting(kind: str, beginnings: tuple[str, ...], rest: str) -> Rule:
    """A key that is known by how it begins."""
    return Rule(kind, f"{_START}(?:{'|'.join(map(re.escape, beginnings))}){rest}", beginnings)


_PEM = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_PEM_BODY = r"(?:[A-Za-z0-9+/=\s\"',]|\\+[nr]|(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]{1,200})"


_DIGITS = re.compile(r"[0-9]{4}(?:[ -][0-9]{4}|[0-9]{9}|[0-9]{2}-[0-9]{7}| [0-9]{6})")
"""Where nothing like it stands, there is neither a card nor a resident."""


def _is_resident(number: str) -> bool:
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


def _is_card(number: str) -> bool:
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
_SHORTEST_SECRET = 12
_RANDOM = 3.0
"""Bits for each character; English words have fewer, what a machine throws has more."""
_TECHNICAL = re.compile(
    r"(?:sha|aes|rsa|hs|rs|es|utf|base|ipv|md|oauth|http|argon|pbkdf|[bs]crypt)[-_]?\d{1,4}", re.IGNORECASE
)
"""What passwords are spoken of with."""
_DEFAULTS = frozenset({"password", "passwd", "pass", "pwd", "pw", "secret", "username", "user"})


def entropy(text: str) -> float:
    """Bits for each character, by how often each occurs."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values())


def _is_random(value: str) -> bool:
    """Letters and digits as a machine throws them."""
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return is_mixed and not _PLACEHOLDER.search(value) and not _WORDS.fullmatch(value) and entropy(value) > _RANDOM


def _is_chosen(value: str) -> bool:
    """A password as a person chooses one: letters with digits, or with signs that no name has."""
    kinds = any(map(str.isalpha, value)) + any(map(str.isdigit, value)) + bool(re.search(r"[!@#^&*+=?~|]", value))
    return kinds > 1 and not _PLACEHOLDER.search(value) and not _TECHNICAL.fullmatch(value)


_CAMEL = re.compile(r"(?:[A-Z]?[a-z]{2,}|[A-Z]{2,}|\d{1,3}|[_.:-])+")
"""A name of code's, with digits or without: `OAuth2Client`."""


def _is_strong(value: str) -> bool:
    """A password that can be nothing else: for where it stands beside a name and no sign says that it is one."""
    is_mixed = any(map(str.islower, value)) and any(map(str.isupper, value))
    is_made = any(map(str.isdigit, value)) and (is_mixed or bool(re.search(r"[!#$%^&*?~+=]", value)))
    is_name = _CAMEL.fullmatch(value) or "@" in value or "/" in value
    return is_made and not is_name and 7 < len(value) <= _LONGEST_CHOSEN and _is_option(value)


def _is_thrown(value: str) -> bool:
    """What only a machine makes, among names that may be of anything."""
    is_name = _CAMEL.fullmatch(value) or _CODE.search(value)
    return sum(map(str.isdigit, value)) > 2 and not is_name and _is_random(value)


def _is_bot(value: str) -> bool:
    """A bot's number before its first full stop, in base 64."""
    with suppress(ValueError):
        return b64decode(value.partition(".")[0] + "==", b"-_").isdigit()
    return False


def _is_url_password(value: str) -> bool:
    return not _PLACEHOLDER.search(value) and value.lower() not in _DEFAULTS


def _is_command_password(value: str) -> bool:
    return _is_option(value) and any(map(str.isalpha, value))


def _is_option(value: str) -> bool:
    return _is_chosen(value) and not _CODE.search(value)


def _is_header(value: str) -> bool:
    return any(map(str.isdigit, value)) and not _PLACEHOLDER.search(value) and entropy(value) > _RANDOM


_OF_KEYS = ("sk", "rk", "key", "pat", "token", "tok", "secret", "live", "prod", "oauth", "priv", "admin", "api")
"""What keys begin with whose giver is not in the table."""
_OPTION = r"[\"']?(?P<secret>[^\s\"'`$-][^\s\"'`]{3,200})"

RULES: tuple[Rule, ...] = (
    Rule(
        "private-key",
        rf"{_PEM}{_PEM_BODY}{{40,20000}}(?:-----END [A-Z0-9 ]{{1,60}}-----)?",
        beside=("private key",),
    ),
    *starmap(_starting, STARTING),
    Rule("openai-key", rf"{_START}sk-(?:(?:proj|svcacct|admin|None)-[\w-]{{16,}}|[A-Za-z0-9]{{32,}}{_END})", ("sk-",)),
    Rule("aws-access-key", rf"{_START}(?:AKIA|ASIA)[A-Z2-7]{{16}}{_END}", ("AKIA", "ASIA")),
    Rule(
        "aws-secret-key",
        r"(?i:aws[\w.-]{0,20}secret|secret[_ ]?access[_ ]?key|(?-i:\b(?:AKIA|ASIA)[A-Z2-7]{16}\b))[\s\S]{0,40}?"
        r"(?<![A-Za-z0-9/+=])(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        beside=("aws", "accesskey", "access_key", "akia", "asia"),
        is_one=lambda value: entropy(value) > _RANDOM,
    ),
    Rule("google-key", rf"{_START}AIza[\w-]{{35}}(?![\w-])", ("AIza",)),
    Rule("slack-token", rf"{_START}(?:xox[a-z](?:\.xox[a-z])?|xapp)-[A-Za-z0-9-]{{15,}}", ("xox", "xapp-")),
    Rule(
        "webhook",
        r"(?:discord(?:app)?\.com/api/webhooks/\d+|hooks\.zapier\.com/hooks/catch|webhook\.office\.com/webhookb2)/"
        r"(?P<secret>[\w/@-]{12,})",
        ("/api/webhooks/", "hooks.zapier.com", "webhook.office.com"),
    ),
    Rule("slack-webhook", r"hooks\.slack\.com/\w+/(?P<secret>[A-Za-z0-9+/]{20,})", ("hooks.slack.com",)),
    Rule(
        "stripe-key",
        rf"{_START}(?:[srp]k_(?:live|test)_|whsec_)[A-Za-z0-9+/]{{16,}}",
        ("k_live_", "k_test_", "whsec_"),
    ),
    Rule("sendgrid-key", rf"{_START}SG\.[\w-]{{16,}}\.[\w-]{{16,}}", ("SG.",)),
    Rule("telegram-token", rf"{_START}\d{{8,10}}:AA[\w-]{{32,}}", (":AA",)),
    Rule(
        "discord-token",
        rf"{_START}[MNO][A-Za-z0-9_-]{{22,27}}\.[\w-]{{6}}\.[\w-]{{27,}}",
        ("MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        is_one=_is_bot,
    ),
    Rule("azure-key", r"(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~-])", ("Q~",)),
    Rule("mailchimp-key", rf"{_START}[0-9a-f]{{32}}-us\d{{1,2}}{_END}", ("-us",)),
    Rule("mailgun-key", rf"{_START}[0-9a-f]{{32}}-[0-9a-f]{{8}}-[0-9a-f]{{8}}{_END}", beside=("mailgun",)),
    Rule("asana-token", rf"{_START}\d/\d{{10,}}(?:/\d{{10,}})?:[0-9a-f]{{32}}{_END}", beside=("asana",)),
    Rule("terraform-token", rf"{_START}[A-Za-z0-9]{{14}}\.atlasv1\.[\w=-]{{60,}}", (".atlasv1.",)),
    Rule("vault-token", rf"(?<![\w.])s\.[A-Za-z0-9]{{24}}{_END}", beside=("vault",)),
    Rule("wallet-key", rf"{_START}[5KL][1-9A-HJ-NP-Za-km-z]{{50,51}}{_END}", beside=("wif", "wallet", "bitcoin")),
    Rule(
        "wallet-key",
        r"(?i:mnemonic|(?:seed|recovery) phrase|니모닉|시드 ?(?:문구|구문))[\"'`*]{0,3}\s?[:=]\s?[\"'`*]{0,3}"
        r"(?P<secret>(?:[a-z]{3,8}\s){11,23}[a-z]{3,8})",
        beside=("mnemonic", "phrase", "니모닉", "시드"),
    ),
    Rule(
        "password-hash",
        r"(?<!\w)\$(?:2[aby]\$\d\d|5|6|y|apr1|argon2(?:id?|d))\$[./A-Za-z0-9$=,+]{22,}",
        ("$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$apr1$", "$argon2"),
    ),
    Rule("private-key", r"Private-Lines: \d+\r?\n(?P<secret>[A-Za-z0-9+/=\s]{40,})", beside=("private-lines",)),
    Rule(
        "api-key",
        rf"(?<![A-Za-z0-9])(?:{'|'.join(_OF_KEYS)})[_-](?:v\d{{1,2}}[_-])?"
        rf"(?:[a-z]{{2,8}}[_-])?[A-Za-z0-9]{{20,}}{_END}",
        tuple(f"{word}{sign}" for word in _OF_KEYS for sign in "_-"),
        is_one=_is_thrown,
    ),
    Rule("ctxr-token", rf"{_START}ctxr_[\w-]{{43}}(?![\w-])", ("ctxr_",), is_one=_is_random),  # our own
    Rule(
        "azure-key",
        r"(?:Account|SharedAccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})",
        ("AccountKey=", "SharedAccessKey="),
    ),
    Rule("jwt", rf"{_START}eyJ[\w-]{{10,}}\.eyJ[\w-]{{8,}}\.[\w-]{{8,}}", ("eyJ",)),
    Rule(
        "url-password",
        r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^\s:/@'\"`<>]{0,100}:(?P<secret>[^\s/@'\"`<>]{3,200})@[\w\[]",
        beside=("://",),
        is_one=_is_url_password,
    ),
    Rule("url-token", r"://(?P<secret>[\w-]{20,200})(?::x-oauth-basic)?@[\w.-]", ("://",), is_one=_is_random),
    Rule(
        "url-token",
        r"(?i:[?&;](?:api[_-]?key|key|token|sig|signature|secret|access_?token|auth|client_secret|x-amz-signature"
        r"|x-amz-security-token)|\bservicekey)=(?P<secret>[^&\s\"'<>#`),;]{16,2000})",
        beside=("key=", "token=", "sig=", "signature=", "secret=", "auth="),
        is_one=_is_random,
    ),
    Rule(
        "cookie",
        r"(?i:\bcookie[\"']?\s{0,2}[:=])[^\n]{0,300}?(?i:sess|sid|auth|token|jwt)[\w.-]{0,30}=(?P<secret>[^;,\s\"'`]{16,2000})",
        beside=("cookie",),
        is_one=_is_random,
    ),
    Rule(
        "bearer-token",
        r"(?i:\bbearer|\bssws|\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"'`]?[\w-]{2,16})\s+"
        r"(?P<secret>[A-Za-z0-9._~+/-]{16,}={0,2})",
        beside=("bearer ", "ssws", "authorization"),
        is_one=_is_header,
    ),
    Rule(
        "password",
        r"\bcurl\s[^\n]{0,300}?(?<=\s)(?:-u|--user)[\s=]\s{0,3}[\"']?[^\s:\"'`]{1,100}:(?P<secret>[^\s\"'`]{3,200})",
        beside=("curl ",),
        is_one=_is_url_password,
    ),
    Rule(
        "password",
        r"(?:(?<!\S)--?[\w-]{0,24}(?:password|passwd|token|secret|api-?key)|\blogin\s{1,3}\S{1,100}\s{1,3}password)\s{1,3}"
        r"(?P<secret>[^\s\"'`-][^\s\"'`]{5,200})",
        beside=("password", "passwd", "token", "secret", "apikey", "api-key"),
        is_one=_is_option,
    ),
    Rule(
        "password",
        r"\b(?:(?:mysql\w*|mariadb[\w-]*)\b[^\n|;]{0,200}?\s-p|sshpass\s+-p\s*|login\b[^\n|;]{0,200}?\s-p\s+"
        r"|redis-cli\b[^\n|;]{0,200}?\s-a\s+|htpasswd\s+-\w*b\w*\s+\S+\s+\S+\s+|openssl\b[^\n|;]{0,200}?\s-k\s+"
        r"|secret\s+set\b[^\n|;]{0,200}?\s--body[\s=]|ldap\w+\b[^\n|;]{0,200}?\s-w\s+|mongo\w*\b[^\n|;]{0,200}?\s-p\s+"
        r"|zip\b[^\n|;]{0,200}?\s-P\s+|7z\s[^\n|;]{0,200}?\s-p|add-\w+-password\b[^\n|;]{0,200}?\s-w\s+"
        r"|vncpasswd\s+<<<\s+|(?i:identified\s+by\s+))" + _OPTION,
        beside=(
            *("mysql", "mariadb", "sshpass", "login", "redis-cli", "htpasswd", "openssl", "secret set", "ldap"),
            *("mongo", "zip ", "7z ", "-password", "vncpasswd", "identified by"),
        ),
        is_one=_is_command_password,
    ),
    Rule(
        "password",
        r"(?<!\S)-(?:pass(?:in|out)?\s+pass:|(?:store|key)pass\s+)" + _OPTION,
        beside=("pass:", "storepass", "keypass"),
        is_one=_is_command_password,
    ),
    Rule(
        "secret",
        r"\becho\s+(?:-n\s+)?[\"']?(?P<secret>[^\s\"'`|$]{8,300})[\"']?\s*\|[^\n]{0,200}?(?:--with-token|--password-stdin|sudo\s+-S)",
        beside=("--with-token", "--password-stdin", "sudo -s"),
        is_one=_is_option,
    ),
    Rule(
        "secret",
        r"\b(?:ENV|ARG|setx|setenv|set|export)\s+(?:-[A-Za-z]{1,3}\s+)?[A-Z][A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD|KEY|PAT)\s+"
        + _OPTION,
        beside=("token", "secret", "pass", "pwd", "key", "_pat"),
        is_one=_is_strong,
    ),
    Rule(
        "secret",
        r"\b(?!\w*(?:PUBLIC|PRIMARY|FOREIGN|CACHE|SORT|PARTITION)_)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|PAT|AUTH|CREDENTIALS?)"
        r"\\*[\"'\]]{0,2}\s?[:=]\s?\\*[\"']?(?P<secret>[A-Za-z0-9+/_.:=-]{16,300})",
        beside=("_key", "_pat", "_auth", "_credential"),
        is_one=_is_thrown,
    ),
    Rule(
        "secret",
        r"(?<![\w.])_auth(?:Token)?\s?=\s?(?P<secret>[A-Za-z0-9+/=_-]{12,300})",
        beside=("_auth",),
        is_one=_is_random,
    ),
    Rule(
        "password",
        r"(?:(?<![\w.$-])(?i:pw|pass|passcode)|\b(?:admin|root|creds?)\s?[/:])\\*[\"'`*]{0,3}(?:\s{0,2}[:=]|\sis)?[*]{0,2}\s{0,2}"
        r"\\*[\"'`]?(?P<secret>[^\s\"'`,;(){}<>\[\]\\]{8,64})",
        beside=(
            *(f"{name}{sign}" for name in ("pw", "pass") for sign in ":= '\"*`"),
            *("passcode", "admin:", "admin/", "admin /", "root:", "root/", "root /", "cred:", "creds:"),
        ),
        is_one=_is_strong,
    ),
    Rule(
        "password",
        r"(?i:app[\s_-]?password|앱 ?비밀번호)\W{1,4}(?P<secret>[a-z]{4}(?: [a-z]{4}){3})(?![a-z])",
        beside=("app", "앱"),
    ),
    Rule(
        "password",
        r"(?m:^|\s|\")[\w.*-]+:5432:[\w*]+:\w+:(?P<secret>[^\s:\"']{6,100})",
        beside=(":5432:",),
        is_one=_is_chosen,
    ),
    Rule(
        "secret",
        r"(?i:<[\w:.-]*(?:password|passwd|secret|token|api-?key)[^<>\n]{0,80}>)(?P<secret>[^<>\s]{6,300})</",
        beside=("password", "passwd", "secret", "token", "key"),
        is_one=_is_option,
    ),
    Rule(
        "secret",
        r"(?i:(?:name|key|variable)[\"']?\s?[=:]?\s?[\"']?[\w.-]*(?:password|passwd|secret|token|api[_-]?key)[\w]{0,4}[\"']?)"
        r"(?:,?\s*[\"']?value[\"']?\s?[=:]\s?|\s*\{[^{}]{0,200}?\bdefault\s?=\s?)[\"']?(?P<secret>[^\s\"']{6,300})",
        beside=("password", "passwd", "secret", "token", "key"),
        is_one=_is_option,
    ),
    Rule(
        "password",
        r"(?<![^\s\"'`])(?P<secret>[^\s\"'`]{8,64})[\"'`]?\s(?:as|is|for)\s(?:the|my|your|our|its?)\s(?i:password|passphrase|token)",
        beside=("password", "passphrase", "token"),
        is_one=_is_strong,
    ),
    Rule("resident-number", r"(?<![\d-])\d{6}-[1-8]\d{6}(?![\d-])", is_one=_is_resident),
    Rule(
        "resident-number",
        r"주민(?:등록)?\s?번호\D{0,12}(?P<secret>\d{6}[ -]?[1-8]\d{6})(?!\d)",
        beside=("주민",),
        is_one=_is_resident,
    ),
    Rule(
        "card-number",
        r"(?<![\w.+/=%-])(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}|3[47]\d\d([ -])\d{6}\2\d{5}|\d{13,19})(?![\w+/=%-]|\.\d)",
        is_one=_is_card,
    ),
)
"""The first that finds something keeps it from those below; passwords and keys behind a name come last (`_named`)."""

# What follows a name: an equals sign or a colon in any of the usual notations, or what people write.
_GIVEN = (
    r"(?P<more>[A-Za-z0-9_-]{0,24})(?:\s?\([^()\n]{1,20}\))?\\*[\"'`\])*]{0,4}(?:(?:\s{0,3}(?::=|=>|==|=|:|：|→|->|(?<=\s)[|–—](?=\s)|(?:,|\()\s?(?=[\"'])|:\s?[A-Z]\w{2,11}\s?=)\s{0,3}"
    r"|\s{1,2}(?:is|are|was)\s{1,2}:?\s?|['’]s\s|(?:는|은|가|이|를|을|만)(?:\s{1,2}:?\s?|:\s?)|[はが是为]\s?|\s(?=[\"'`]))[*]{0,2}\s{0,2}"
    r"|(?P<loose>(?:\s[a-z]{1,12}){0,4}(?:\s(?:is|are|was|to|as)|:)\s{1,2}|\s{1,2}))"
)
_VALUE = (
    r"(?:\\*(?P<quote>[\"'`])(?P<quoted>[^\s\"'`\\]{6,300})\\*(?P=quote)"
    r"|(?P<bare>[^\s\"'`,;(){}<>\[\]\\\u3000-\u9fff\uac00-\ud7a3]{6,300}))"
)
_BEHIND = re.compile(_GIVEN + _VALUE)
_ABOUT = re.compile(
    r"(?:_|-)?(?:hash(?:er|ed)?|type|name|field|file|path|url|uri|id|length|len|policy|format|algorithm|label|hint"
    r"|regex|pattern|column|endpoint|expir\w*|count|size|version|env|var|header|prefix|dir|class|arn|ring)s?$",
    re.IGNORECASE,
)
"""Of a name: it does not hold the secret but tells of it."""

_NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "password": {
        "pass": ("password", "passwd", "passphrase", "_pass"),
        "pwd": ("pwd",),
        "비": ("비밀번호", "비밀 번호", "비번"),
        "패스워드": ("패스워드",),
        "암호": ("암호",),
        "パスワード": ("パスワード",),
        "密": ("密码", "密碼"),
    },
    "secret": {
        "secret": ("secret",),
        "token": ("token",),
        "credential": ("credential",),
        "토큰": ("토큰",),
        "시크릿": ("시크릿", "시크릿키", "시크릿 키"),
        "키": (
            "api 키",
            "api키",
            "인증키",
            "인증 키",
            "서비스키",
            "서비스 키",
            "비밀키",
            "비밀 키",
            "액세스 키",
        ),
        "key": (
            *("api_key", "apikey", "api-key", "api key", "access_key", "accesskey", "access-key", "private_key"),
            *("privatekey", "auth_key", "signing_key", "encryption_key", "encryptionkey", "master_key"),
            *("account_key", "accountkey", "license_key"),
        ),
    },
}
"""Behind these names a value that looks like one is a secret; looked for only where the text holds what they share."""
_PASSWORDS = frozenset(chain.from_iterable(_NAMES["password"].values()))
_CALLED = re.compile(
    "|".join(re.escape(name) for shared in _NAMES.values() for names in shared.values() for name in names),
    re.IGNORECASE,
)
_LONGEST_CHOSEN = 64


def find_secrets(text: str) -> list[Secret]:
    """The secrets of a text in their order, also of what it holds with escapes; none overlaps another."""
    if "[secret:" in text:
        text = MARK.sub(lambda mark: " " * len(mark[0]), text)  # else a mark were a name with a value
    taken = _found_in(text)
    if any(sign in text for sign in ESCAPING):
        plain, places = unescaped(text)
        for kind, start, end in _found_in(plain):
            found = Secret(kind, places[start], places[end])
            taken += [found] if _is_free(found, taken) else []
    return sorted(taken, key=lambda found: found.start)


def _found_in(text: str) -> list[Secret]:
    lowered = text.lower()
    taken: list[Secret] = []
    for rule in _rules_for(text, lowered):
        taken += [found for found in _by_rule(rule, text) if _is_free(found, taken)]
    taken += [found for found in _named(text, lowered) if _is_free(found, taken)]
    return taken


def _rules_for(text: str, lowered: str) -> list[Rule]:
    """Those that may find something, in the order of the table."""
    long_words = " ".join({word for word in _LONG_WORD.findall(text) if _MADE.search(word)})
    places = {at for hint in _BY_HINT if hint in long_words for at in _BY_HINT[hint]} if long_words else set()
    places.update(at for word in _BY_WORD if word in lowered for at in _BY_WORD[word])
    if _DIGITS.search(text):
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
_BY_HINT, _BY_WORD = _places(lambda rule: rule.hints), _places(lambda rule: rule.beside)
_NUMBERS = [at for at, rule in enumerate(RULES) if not rule.hints and not rule.beside]


def is_secret_value(name: str, value: str) -> bool:
    """Whether a value is a secret by the name of its field and by how it looks."""
    called = _CALLED.search(name)
    return called is not None and not _ABOUT.search(name) and _looks_like_one(called[0].lower(), value, is_quoted=True)


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


def _named(text: str, lowered: str) -> Iterator[Secret]:
    """Values behind a name such as `SECRET_KEY =`."""
    if len(lowered) != len(text):  # a few letters grow when they are lowered: places would not agree
        lowered = text
    for kind, shared in _NAMES.items():
        for name in chain.from_iterable(names for part, names in shared.items() if part in lowered):
            at = lowered.find(name)
            while at >= 0:
                found = _BEHIND.match(text, at + len(name))
                if found and not _ABOUT.search(found["more"]) and (value := _value(found, name)):
                    yield Secret(kind, found.start(value), found.end(value))
                at = lowered.find(name, at + len(name))


def _value(found: re.Match[str], name: str) -> str | None:
    """The group that holds the secret, if it looks like one."""
    group = "quoted" if found["quoted"] else "bare"
    if found["loose"] is not None:
        return group if _is_strong(found[group]) else None
    return group if _looks_like_one(name, found[group], is_quoted=group == "quoted") else None


def _looks_like_one(name: str, value: str, *, is_quoted: bool) -> bool:
    if MARK.search(value):
        return False
    if name in _PASSWORDS:
        return len(value) <= _LONGEST_CHOSEN and _is_chosen(value) and (is_quoted or not _CODE.search(value))
    return len(value) >= _SHORTEST_SECRET and _is_random(value) and (is_quoted or not _CODE.search(value))


_CODE = re.compile(r"^[A-Za-z_]\w*(?:\.|->|::|=)\w|^[-+]?\d[\d._]*$|^(?:https?:)?/|^@")
"""What stands in code without quotes is an expression."""
