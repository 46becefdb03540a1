"""Formats of secrets, by what their givers publish and by what stands beside them. The table; pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import starmap
from typing import NamedTuple

from registry.text.privacy.key_formats import STARTING
from registry.text.privacy.likeness import (
    RANDOM,
    entropy,
    is_bot,
    is_card,
    is_chosen,
    is_command_password,
    is_header,
    is_option,
    is_random,
    is_resident,
    is_strong,
    is_thrown,
    is_url_password,
)


class Secret(NamedTuple):
    """A secret in a text: what it is, and where it stands."""

    kind: str
    start: int
    end: int


class Rule(NamedTuple):
    """A format of a secret. The group `secret` is masked, else the whole match."""

    kind: str
    pattern: str
    hints: tuple[str, ...] = ()
    """One of these stands in the long words of every text that holds one."""
    beside: tuple[str, ...] = ()
    """The same of all words, in lower case, each with a space behind it. A rule with neither is about digits."""
    is_one: Callable[[str], bool] | None = None
    """What the pattern cannot say."""
    needs: tuple[str, ...] = ()
    """One of these stands in the text as it is written, too: asked where the words beside it are common ones."""


SHORTEST_KEY = 20
"""Characters: no key that is known by its own signs is shorter."""
_START, _END = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"


def _starting(kind: str, beginnings: tuple[str, ...], rest: str) -> Rule:
    """A key that is known by how it begins."""
    return Rule(kind, f"{_START}(?:{'|'.join(map(re.escape, beginnings))}){rest}", beginnings)


_PEM = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_PEM_BODY = r"(?:[A-Za-z0-9+/=\s\"',]|\\+[nr]|(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]{1,200})"

_OF_KEYS = ("sk", "rk", "key", "pat", "token", "tok", "secret", "live", "prod", "oauth", "priv", "admin", "api")
"""What keys begin with whose giver is not in the table."""
_OPTION = r"[\"']?(?P<secret>[^\s\"'`$-][^\s\"'`]{3,200})"

_COMMANDS = (
    *((name, r"[\w-]*\b[^\n|;]{0,200}?\s-p") for name in ("mysql", "mariadb")),
    *((name, r"\w*\b[^\n|;]{0,200}?\s-p\s+") for name in ("login", "mongo")),
    ("sshpass", r"\s+-p\s*"),
    ("redis-cli", r"\b[^\n|;]{0,200}?\s-a\s+"),
    ("htpasswd", r"\s+-\w*b\w*\s+\S+\s+\S+\s+"),
    ("openssl", r"\b[^\n|;]{0,200}?\s-k\s+"),
    ("secret", r"\s+set\b[^\n|;]{0,200}?\s--body[\s=]"),
    ("ldap", r"\w+\b[^\n|;]{0,200}?\s-w\s+"),
    ("zip", r"\b[^\n|;]{0,200}?\s-P\s+"),
    ("7z", r"\s[^\n|;]{0,200}?\s-p"),
    *((f"add-{what}-password", r"\b[^\n|;]{0,200}?\s-w\s+") for what in ("generic", "internet")),
    ("vncpasswd", r"\s+<<<\s+"),
)
"""Commands, and what stands between their names and a password."""


def _command(name: str, between: str) -> str:
    """A word from its beginning. That letters come first lets a text without them be passed over quickly."""
    return rf"{name}(?<!\w{name}){between}"


RULES: tuple[Rule, ...] = (
    Rule(
        "private-key",
        rf"{_PEM}{_PEM_BODY}{{40,20000}}(?:-----END [A-Z0-9 ]{{1,60}}-----)?",
        beside=("-----begin",),
    ),
    *starmap(_starting, STARTING),
    Rule("openai-key", rf"{_START}sk-(?:(?:proj|svcacct|admin|None)-[\w-]{{16,}}|[A-Za-z0-9]{{32,}}{_END})", ("sk-",)),
    Rule("aws-access-key", rf"{_START}(?:AKIA|ASIA)[A-Z2-7]{{16}}{_END}", ("AKIA", "ASIA")),
    Rule(
        "aws-secret-key",
        r"(?i:aws[\w.-]{0,20}secret|secret[_ ]?access[_ ]?key|(?-i:\b(?:AKIA|ASIA)[A-Z2-7]{16}\b))[\s\S]{0,40}?"
        r"(?<![A-Za-z0-9/+=])(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        beside=("aws", "accesskey", "access_key", "akia", "asia"),
        is_one=lambda value: entropy(value) > RANDOM,
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
    Rule("telegram-token", r"(?<!\d)\d{8,10}:AA[\w-]{32,}", (":AA",)),
    Rule(
        "discord-token",
        rf"{_START}[MNO][A-Za-z0-9_-]{{22,27}}\.[\w-]{{6}}\.[\w-]{{27,}}",
        ("MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        is_one=is_bot,
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
        is_one=is_thrown,
    ),
    Rule("ctxr-token", rf"{_START}ctxr_[\w-]{{43}}(?![\w-])", ("ctxr_",), is_one=is_random),  # our own
    Rule(
        "azure-key",
        r"(?:Account|SharedAccess)Key=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})",
        ("AccountKey=", "SharedAccessKey="),
    ),
    Rule("jwt", rf"{_START}eyJ[\w-]{{10,}}\.eyJ[\w-]{{8,}}\.[\w-]{{8,}}", ("eyJ",)),
    Rule(
        "url-password",
        r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^\s:/@'\"`<>]{0,100}:(?P<secret>[^\s/@'\"`<>]{3,200}@{0,3})@[\w\[]",
        beside=("://",),
        is_one=is_url_password,
    ),
    Rule("url-token", r"://(?P<secret>[\w-]{20,200})(?::x-oauth-basic)?@[\w.-]", ("://",), is_one=is_random),
    Rule(
        "url-token",
        r"(?i:[?&;](?:api[_-]?key|key|token|sig|signature|secret|access_?token|auth|client_secret|x-amz-signature"
        r"|x-amz-security-token)|\bservicekey)=(?P<secret>[^&\s\"'<>#`),;]{16,2000})",
        beside=("key=", "token=", "sig=", "signature=", "secret=", "auth="),
        is_one=is_random,
    ),
    Rule(
        "cookie",
        r"(?i:\bcookie[\"']?\s{0,2}[:=])[^\n]{0,300}?(?i:sess|sid|auth|token|jwt)[\w.-]{0,30}=(?P<secret>[^;,\s\"'`]{16,2000})",
        beside=("cookie",),
        is_one=is_random,
    ),
    Rule(
        "bearer-token",
        r"(?i:\bbearer|\bssws|\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"'`]?[\w-]{2,16})\s+"
        r"(?P<secret>[A-Za-z0-9._~+/-]{16,}={0,2})",
        beside=("bearer ", "ssws", "authorization"),
        is_one=is_header,
    ),
    Rule(
        "password",
        r"\bcurl\s[^\n]{0,300}?(?<=\s)(?:-u|--user)[\s=]\s{0,3}[\"']?[^\s:\"'`]{1,100}:(?P<secret>[^\s\"'`]{3,200})",
        beside=("curl ",),
        is_one=is_url_password,
    ),
    Rule(
        "password",
        r"(?:-(?<!\S-)-?[\w-]{0,24}(?:password|passwd|token|secret|api-?key)|l(?<!\w.)ogin\s{1,3}\S{1,100}\s{1,3}password)\s{1,3}"
        r"(?P<secret>[^\s\"'`-][^\s\"'`]{5,200})",
        beside=("password", "passwd", "token", "secret", "apikey", "api-key"),
        is_one=is_option,
        needs=("-", "login"),
    ),
    Rule(
        "password",
        rf"(?:{'|'.join(starmap(_command, _COMMANDS))}){_OPTION}",
        beside=tuple(name for name, _ in _COMMANDS),
        is_one=is_command_password,
    ),
    Rule(
        "password",
        r"[Ii](?<!\w.)(?i:dentified\s+by\s+)" + _OPTION,
        beside=("identified ",),
        is_one=is_command_password,
    ),
    Rule(
        "password",
        r"(?<!\S)-(?:pass(?:in|out)?\s+pass:|(?:store|key)pass\s+)" + _OPTION,
        beside=("pass:", "storepass", "keypass"),
        is_one=is_command_password,
    ),
    Rule(
        "secret",
        r"\becho\s+(?:-n\s+)?[\"']?(?P<secret>[^\s\"'`|$]{8,300})[\"']?\s*\|[^\n]{0,200}?(?:--with-token|--password-stdin|sudo\s+-S)",
        beside=("--with-token", "--password-stdin", "sudo "),
        is_one=is_option,
    ),
    Rule(
        "secret",
        r"(?:ENV(?<!\wENV)|ARG(?<!\wARG)|set(?<!\wset)(?:x|env)?|export(?<!\wexport))\s+(?:-[A-Za-z]{1,3}\s+)?[A-Z][A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD|KEY|PAT)\s+"
        + _OPTION,
        beside=("token", "secret", "pass", "pwd", "key", "_pat"),
        is_one=is_strong,
        needs=("TOKEN", "SECRET", "PASS", "PWD", "KEY", "PAT"),
    ),
    Rule(
        "secret",
        r"\b(?!\w*(?:PUBLIC|PRIMARY|FOREIGN|CACHE|SORT|PARTITION)_)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|PAT|AUTH|CREDENTIALS?)"
        r"\\*[\"'\]]{0,2}\s?[:=]\s?\\*[\"']?(?P<secret>[A-Za-z0-9+/_.:=-]{16,300})",
        beside=("_key", "_pat", "_auth", "_credential"),
        is_one=is_thrown,
    ),
    Rule(
        "secret",
        r"(?<![\w.])_auth(?:Token)?\s?=\s?(?P<secret>[A-Za-z0-9+/=_-]{12,300})",
        beside=("_auth",),
        is_one=is_random,
    ),
    Rule(
        "password",
        r"(?:(?<![\w.$-])(?i:pw|pass|passcode)|\b(?:admin|root|creds?)\s?[/:])\\*[\"'`*]{0,3}(?:\s{0,2}[:=]|\sis)?[*]{0,2}\s{0,2}"
        r"\\*[\"'`]?(?P<secret>[^\s\"'`,;(){}<>\[\]\\]{8,64})",
        beside=(
            *(f"{name}{sign}" for name in ("pw", "pass") for sign in ":= '\"*`"),
            *("passcode", "admin:", "admin/", "admin ", "root:", "root/", "root ", "cred:", "creds:"),
        ),
        is_one=is_strong,
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
        is_one=is_chosen,
    ),
    Rule(
        "secret",
        r"(?i:<[\w:.-]*(?:password|passwd|secret|token|api-?key)[^<>\n]{0,80}>)(?P<secret>[^<>\s]{6,300})</",
        beside=("password", "passwd", "secret", "token", "key"),
        is_one=is_option,
        needs=("<",),
    ),
    Rule(
        "secret",
        r"[nNkKvV](?i:(?:(?<=n)ame|(?<=k)ey|(?<=v)ariable)[\"']?\s?[=:]?\s?[\"']?[\w.-]*(?:password|passwd|secret|token|api[_-]?key)[\w]{0,4}[\"']?)"
        r"(?:,?\s*[\"']?value[\"']?\s?[=:]\s?|\s*\{[^{}]{0,200}?\bdefault\s?=\s?)[\"']?(?P<secret>[^\s\"']{6,300})",
        beside=("password", "passwd", "secret", "token", "key"),
        is_one=is_option,
        needs=("value", "default"),
    ),
    Rule(
        "bank-account",
        r"계좌[^\d\n]{0,24}(?P<secret>\d{2,6}(?:[ -]\d{2,8}){2,3}|\d{10,16})(?![\d-])",
        beside=("계좌",),
    ),
    Rule(
        "url-password",
        r"jdbc:oracle:\w+:\w{1,64}/(?P<secret>[^\s@/\"']{3,100})@",
        beside=("jdbc:oracle",),
        is_one=is_url_password,
    ),
    Rule(
        "twilio-token",
        rf"{_START}AC[0-9a-f]{{32}}[\"']?\s?[,:]\s{{0,20}}[\"']?(?P<secret>[0-9a-f]{{32}}){_END}",
        ("AC",),
    ),
    Rule(
        "password",
        r"\b(?i:pass|pw)[\"']?\s{0,2}[:=]\s{0,2}(?P<quote>[\"'])(?P<secret>[^\s\"'`]{6,64})(?P=quote)",
        beside=("pass:", "pw:", "pass=", "pw=", "pass'", 'pass"', "pw'", 'pw"'),
        is_one=is_option,
    ),
    Rule(
        "registry-password",
        r"\"auth\\*\"\s?:\s?\\*\"(?P<secret>[A-Za-z0-9+/]{12,400}={0,2})\\*\"",
        beside=("auth",),
        is_one=is_header,
    ),
    Rule(
        "token",
        r"(?i:-D[\w.]{1,40}\.(?:login|token|password|passwd|secret))=(?P<secret>[^\s\"'`]{6,300})",
        beside=(".login=", ".token=", ".password=", ".passwd=", ".secret="),
        is_one=is_option,
    ),
    Rule("resident-number", r"(?<![\d-])\d{6}-[1-8]\d{6}(?![\d-])", is_one=is_resident),
    Rule(
        "resident-number",
        r"주민(?:등록)?\s?번호\D{0,12}(?P<secret>\d{6}(?: ?- ?| )?[1-8]\d{6})(?!\d)",
        beside=("주민",),
        is_one=is_resident,
    ),
    Rule(
        "card-number",
        r"(?<![\w.+/=%-])(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}|3[47]\d\d([ -])\d{6}\2\d{5}|\d{13,19})(?![\w+/=%-]|\.\d)",
        is_one=is_card,
    ),
)
"""The first that finds something keeps it from those below; passwords and keys behind a name come last (`named.py`)."""
