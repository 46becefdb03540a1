"""Secrets in a text: keys, passwords, cards and resident numbers, by the formats that their givers publish. Pure.

A key is a long word: only of these is it asked whether they hold the hint of a rule, so that most texts cost little.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

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


_START, _END = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"


def _starting(kind: str, *beginnings: str, rest: str) -> Rule:
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
_SHORTEST_KEY = 12
_RANDOM = 3.0
"""Bits for each character; English words have fewer, what a machine throws has more."""
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
    return kinds > 1 and not _PLACEHOLDER.search(value)


def _is_url_password(value: str) -> bool:
    return not _PLACEHOLDER.search(value) and value.lower() not in _DEFAULTS


def _is_option(value: str) -> bool:
    return _is_chosen(value) and not _CODE.search(value)


def _is_header(value: str) -> bool:
    return any(map(str.isdigit, value)) and not _PLACEHOLDER.search(value) and entropy(value) > _RANDOM


RULES: tuple[Rule, ...] = (
    Rule(
        "private-key",
        rf"{_PEM}{_PEM_BODY}{{40,20000}}(?:-----END [A-Z0-9 ]{{1,60}}-----)?",
        beside=("private key",),
    ),
    _starting("anthropic-key", "sk-ant-", rest=r"[\w-]{16,}"),
    _starting("openrouter-key", "sk-or-", rest=r"[\w-]{24,}"),
    Rule("openai-key", rf"{_START}sk-(?:(?:proj|svcacct|admin|None)-[\w-]{{16,}}|[A-Za-z0-9]{{32,}}{_END})", ("sk-",)),
    Rule("aws-access-key", rf"{_START}(?:AKIA|ASIA)[A-Z2-7]{{16}}{_END}", ("AKIA", "ASIA")),
    Rule(
        "aws-secret-key",
        r"(?i:aws[\w.-]{0,20}secret|secret_?access_?key|(?-i:\b(?:AKIA|ASIA)[A-Z2-7]{16}\b))[\s\S]{0,40}?"
        r"(?<![A-Za-z0-9/+=])(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        beside=("aws", "accesskey", "access_key", "akia", "asia"),
        is_one=lambda value: entropy(value) > _RANDOM,
    ),
    _starting("github-token", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", rest=r"\w{30,}"),
    _starting("gitlab-token", "glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-", rest=r"[\w-]{20,}"),
    Rule("google-key", rf"{_START}AIza[\w-]{{35}}(?![\w-])", ("AIza",)),
    _starting("google-secret", "GOCSPX-", "ya29.", rest=r"[\w-]{20,}"),
    Rule("slack-token", rf"{_START}(?:xox[a-z](?:\.xox[a-z])?|xapp)-[A-Za-z0-9-]{{10,}}", ("xox", "xapp-")),
    Rule("slack-webhook", r"hooks\.slack\.com/\w+/(?P<secret>[A-Za-z0-9+/]{20,})", ("hooks.slack.com",)),
    Rule(
        "stripe-key",
        rf"{_START}(?:[srp]k_(?:live|test)_|whsec_)[A-Za-z0-9+/]{{16,}}",
        ("k_live_", "k_test_", "whsec_"),
    ),
    _starting("npm-token", "npm_", rest=rf"[A-Za-z0-9]{{36}}{_END}"),
    _starting("pypi-token", "pypi-", rest=r"[\w-]{40,}"),
    _starting("huggingface-token", "hf_", rest=rf"[A-Za-z0-9]{{30,}}{_END}"),
    Rule("sendgrid-key", rf"{_START}SG\.[\w-]{{16,}}\.[\w-]{{16,}}", ("SG.",)),
    Rule("telegram-token", rf"{_START}\d{{8,10}}:AA[\w-]{{32,}}", (":AA",)),
    Rule("discord-token", rf"{_START}[MNO][A-Za-z0-9_-]{{23,25}}\.[\w-]{{6}}\.[\w-]{{27,}}", beside=("discord",)),
    _starting("shopify-token", "shpat_", "shpca_", "shppa_", "shpss_", rest=r"[0-9a-fA-F]{32}"),
    _starting("digitalocean-token", "dop_v1_", "doo_v1_", "dor_v1_", rest=r"[0-9a-f]{64}"),
    _starting("groq-key", "gsk_", rest=r"[A-Za-z0-9]{40,}"),
    _starting("xai-key", "xai-", rest=r"[A-Za-z0-9]{40,}"),
    _starting("replicate-token", "r8_", rest=r"[A-Za-z0-9]{30,}"),
    _starting("perplexity-key", "pplx-", rest=r"[A-Za-z0-9]{40,}"),
    _starting("docker-token", "dckr_pat_", rest=r"[\w-]{20,}"),
    _starting("vault-token", "hvs.", "hvb.", rest=r"[\w-]{20,}"),
    _starting("atlassian-token", "ATATT3", rest=r"[\w=-]{40,}"),
    _starting("grafana-token", "glsa_", "glc_", rest=r"[A-Za-z0-9_+/=]{32,}"),
    _starting("linear-key", "lin_api_", rest=r"[A-Za-z0-9]{30,}"),
    _starting("notion-token", "ntn_", rest=r"[A-Za-z0-9]{40,}"),
    _starting("supabase-key", "sbp_", "sb_secret_", rest=r"[\w-]{20,}"),
    _starting("tailscale-key", "tskey-", rest=r"[A-Za-z0-9-]{20,}"),
    _starting("tavily-key", "tvly-", rest=r"[\w-]{20,}"),
    _starting("langsmith-key", "lsv2_pt_", "lsv2_sk_", rest=r"\w{32,}"),
    _starting("pinecone-key", "pcsk_", rest=r"\w{30,}"),
    _starting("figma-token", "figd_", rest=r"[\w-]{30,}"),
    _starting("sentry-token", "sntrys_", "sntryu_", rest=r"[\w+/=]{40,}"),
    _starting("planetscale-password", "pscale_", rest=r"(?:pw|tkn|oauth)_[\w.-]{30,}"),
    _starting("databricks-token", "dapi", rest=rf"[0-9a-f]{{32}}{_END}"),
    Rule("ctxr-token", rf"{_START}ctxr_[\w-]{{43}}(?![\w-])", ("ctxr_",), is_one=_is_random),  # our own
    _starting("age-key", "AGE-SECRET-KEY-1", rest=r"[0-9A-Z]{40,}"),
    Rule(
        "azure-key",
        r"(?:Account|SharedAccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})",
        ("AccountKey=", "SharedAccessKey="),
    ),
    Rule("jwt", rf"{_START}eyJ[\w-]{{10,}}\.eyJ[\w-]{{8,}}\.[\w-]{{8,}}", ("eyJ",)),
    Rule(
        "url-password",
        r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^\s:/@'\"`<>]{0,100}:(?P<secret>[^\s/@'\"`<>]{3,200})@[\w\[]",
        ("://",),
        is_one=_is_url_password,
    ),
    Rule(
        "bearer-token",
        r"(?i:\bbearer|\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"'`]?(?:basic|token|apikey))\s+"
        r"(?P<secret>[A-Za-z0-9._~+/-]{16,}={0,2})",
        beside=("bearer ", "authorization"),
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
    r"(?P<more>[\w-]{0,24})\\?[\"'`\])]{0,2}(?:\s{0,3}(?::=|=>|==|=|:)\s{0,3}|\s{1,2}(?:is|are|was)\s{1,2}:?\s?|"
    r"(?:는|은|가)\s{1,2}|\s(?=[\"'`]))"
)
_VALUE = r"(?:\\?(?P<quote>[\"'`])(?P<quoted>[^\s\"'`\\]{6,300})\\?(?P=quote)|(?P<bare>[^\s\"'`,;(){}<>\[\]\\]{6,300}))"
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
        "비": ("비밀번호", "비번"),
        "패스워드": ("패스워드",),
        "암호": ("암호",),
    },
    "secret": {
        "secret": ("secret",),
        "token": ("token",),
        "credential": ("credential",),
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
    """The secrets of a text in their order; none overlaps another."""
    if "[secret:" in text:
        text = MARK.sub(lambda mark: " " * len(mark[0]), text)  # else a mark were a name with a value
    lowered = text.lower()
    taken: list[Secret] = []
    for rule in _rules_for(text, lowered):
        taken += [found for found in _by_rule(rule, text) if _is_free(found, taken)]
    taken += [found for found in _named(text, lowered) if _is_free(found, taken)]
    return sorted(taken, key=lambda found: found.start)


def _rules_for(text: str, lowered: str) -> list[Rule]:
    """Those that may find something, in the order of the table."""
    once = " ".join({*text.split()}) if len(text) > _LONG else text
    places = {at for hint in _BY_HINT if hint in once for at in _BY_HINT[hint]}
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


_LONG = 10_000
"""Characters. Longer texts repeat their words, and no hint goes beyond one."""
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
    return group if _looks_like_one(name, found[group], is_quoted=group == "quoted") else None


def _looks_like_one(name: str, value: str, *, is_quoted: bool) -> bool:
    if MARK.search(value):
        return False
    if name in _PASSWORDS:
        return len(value) <= _LONGEST_CHOSEN and _is_chosen(value) and (is_quoted or not _CODE.search(value))
    return len(value) >= _SHORTEST_KEY and _is_random(value) and (is_quoted or not _CODE.search(value))


_CODE = re.compile(r"^[A-Za-z_]\w*(?:\.|->|::|=)\w|^[-+]?\d[\d._]*$|^(?:https?:)?/|^@")
"""What stands in code without quotes is an expression."""
