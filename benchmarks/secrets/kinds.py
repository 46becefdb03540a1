"""Generate secrets of each kind in their issuers' formats, and texts that contain them."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_CHANCE = random.Random(20261122)
_WORD = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
_BASE64 = _WORD + "+/"
_BASE32 = string.ascii_uppercase + "234567"


def _random(signs: str, count: int) -> str:
    """Return random characters, with at least one digit and one letter."""
    while True:
        made = "".join(_CHANCE.choices(signs, k=count))
        if any(map(str.isdigit, made)) and any(map(str.isalpha, made)):
            return made


def _card() -> str:
    """Return a card number with its check digit."""
    digits = "4539" + "".join(_CHANCE.choices(string.digits, k=11))
    doubled = [int(digit) * (2 - at % 2) for at, digit in enumerate(reversed(digits))]
    return digits + str(-sum(value - 9 if value > 9 else value for value in doubled) % 10)


def _resident() -> str:
    """Return a Korean resident number with its check digit."""
    digits = f"{_CHANCE.randint(60, 99)}{_CHANCE.randint(1, 12):02}{_CHANCE.randint(1, 28):02}1"
    digits += "".join(_CHANCE.choices(string.digits, k=5))
    weights = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
    check = (11 - sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True)) % 11) % 10
    return f"{digits[:6]}-{digits[6:]}{check}"


def _uuid() -> str:
    return "-".join(_random(_HEX, count) for count in (8, 4, 4, 4, 12))


def _password() -> str:
    return _random(_WORD, 9) + "Q!7"


def _lines() -> str:
    return "\n".join(_random(_BASE64, 64) for _ in range(6))


Kind = tuple[Callable[[], str], str]
"""A generator of secrets, and a template of the usual notation with `{}` for the secret."""

KINDS: dict[str, Kind] = {
    "OpenAI, of a project": (lambda: "sk-proj-" + _random(_WORD, 48), "{}"),
    "OpenAI": (lambda: "sk-" + _random(_WORD, 48), "{}"),
    "Anthropic": (lambda: f"sk-ant-api03-{_random(_WORD, 93)}-{_random(_WORD, 6)}AA", "{}"),
    "OpenRouter": (lambda: "sk-or-v1-" + _random(_HEX, 64), "{}"),
    "AWS access key": (lambda: "AKIA" + _random(_BASE32, 16), "{}"),
    "AWS secret key": (lambda: _random(_BASE64, 40), "aws_secret_access_key = {}"),
    "GitHub": (lambda: "ghp_" + _random(_WORD, 36), "{}"),
    "GitHub, fine-grained": (lambda: f"github_pat_{_random(_WORD, 22)}_{_random(_WORD, 59)}", "{}"),
    "GitLab": (lambda: "glpat-" + _random(_WORD, 20), "{}"),
    "Google API key": (lambda: "AIza" + _random(_WORD, 35), "{}"),
    "Google client secret": (lambda: "GOCSPX-" + _random(_WORD, 28), "{}"),
    "Google access token": (lambda: "ya29." + _random(_WORD, 60), "{}"),
    "Slack": (lambda: f"xoxb-{_CHANCE.randrange(10**11, 10**12)}-{_random(_WORD, 24)}", "{}"),
    "Slack webhook": (lambda: _random(_WORD, 24), "https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/{}"),
    "Stripe": (lambda: "sk_live_" + _random(_WORD, 24), "{}"),
    "Stripe webhook": (lambda: "whsec_" + _random(_WORD, 32), "{}"),
    "npm": (lambda: "npm_" + _random(_WORD, 36), "{}"),
    "PyPI": (lambda: "pypi-AgEIcHlwaS5vcmc" + _random(_WORD, 120), "{}"),
    "Hugging Face": (lambda: "hf_" + _random(_WORD, 34), "{}"),
    "SendGrid": (lambda: f"SG.{_random(_WORD, 22)}.{_random(_WORD, 43)}", "{}"),
    "Telegram": (lambda: f"{_CHANCE.randrange(10**9, 10**10)}:AA{_random(_WORD, 33)}", "{}"),
    "Shopify": (lambda: "shpat_" + _random(_HEX, 32), "{}"),
    "DigitalOcean": (lambda: "dop_v1_" + _random(_HEX, 64), "{}"),
    "Groq": (lambda: "gsk_" + _random(_WORD, 52), "{}"),
    "xAI": (lambda: "xai-" + _random(_WORD, 80), "{}"),
    "Docker Hub": (lambda: "dckr_pat_" + _random(_WORD, 27), "{}"),
    "Vault": (lambda: "hvs." + _random(_WORD, 90), "{}"),
    "Supabase": (lambda: "sbp_" + _random(_HEX, 40), "{}"),
    "Tailscale": (lambda: f"tskey-auth-{_random(_WORD, 12)}-{_random(_WORD, 32)}", "{}"),
    "Tavily": (lambda: "tvly-dev-" + _random(_WORD, 32), "{}"),
    "LangSmith": (lambda: f"lsv2_pt_{_random(_HEX, 32)}_{_random(_HEX, 10)}", "{}"),
    "Pinecone": (lambda: f"pcsk_{_random(_WORD, 6)}_{_random(_WORD, 60)}", "{}"),
    "Figma": (lambda: "figd_" + _random(_WORD, 40), "{}"),
    "Sentry": (lambda: "sntryu_" + _random(_HEX, 64), "{}"),
    "PlanetScale": (lambda: "pscale_pw_" + _random(_WORD, 43), "{}"),
    "Azure storage": (lambda: _random(_BASE64, 86), "AccountName=shop;AccountKey={}=="),
    "JWT": (lambda: f"eyJ{_random(_WORD, 33)}.eyJ{_random(_WORD, 60)}.{_random(_WORD, 43)}", "{}"),
    "PostgreSQL address": (lambda: _random(_WORD, 14), "postgresql://app:{}@db.internal:5432/shop"),
    "Redis address": (lambda: _random(_WORD, 14), "redis://:{}@cache:6379/0"),
    "bearer header": (lambda: _random(_WORD, 40), "Authorization: Bearer {}"),
    "basic header": (lambda: _random(_WORD, 32), "Authorization: Basic {}"),
    "named key": (lambda: _random(_HEX, 32), 'KAKAO_REST_API_KEY="{}"'),
    "named secret": (lambda: _random(_WORD, 50), "SECRET_KEY = '{}'"),
    "named password": (lambda: _random(_WORD, 9) + "!7", "DB_PASSWORD={}"),
    "password in Korean": (lambda: _random(_WORD, 9) + "!7", "비밀번호는 {}"),
    "PGPASSWORD": (lambda: _random(_WORD, 12), "PGPASSWORD={} psql -h db shop"),
    "--password": (lambda: _random(_WORD, 12), "deploy --user app --password {}"),
    "curl -u": (lambda: _random(_WORD, 14), "curl -u admin:{} https://shop.internal/stock"),
    "netrc": (lambda: _random(_WORD, 14), "machine shop.internal login ann password {}"),
    "resident number": (_resident, "{}"),
    "card": (_card, "{}"),
    "RSA private key": (_lines, "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----"),
    "OpenSSH private key": (_lines, "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----"),
    "age": (lambda: "AGE-SECRET-KEY-1" + _random(_BASE32, 58), "{}"),
    "Airtable": (lambda: f"pat{_random(_WORD, 14)}.{_random(_HEX, 64)}", "{}"),
    "Alibaba": (lambda: "LTAI5t" + _random(_WORD, 18), "{}"),
    "Azure secret": (lambda: f"{_random(_WORD, 3)}8Q~{_random(_WORD, 34)}", "{}"),
    "Brevo": (lambda: f"xkeysib-{_random(_HEX, 64)}-{_random(_WORD, 16)}", "{}"),
    "Cerebras": (lambda: "csk-" + _random(string.ascii_lowercase + string.digits, 48), "{}"),
    "Cursor": (lambda: "key_" + _random(_HEX, 64), "{}"),
    "Discord": (lambda: f"MTk4NjIyNDgzNDcxOTI1MjQ4.{_random(_WORD, 6)}.{_random(_WORD, 38)}", "{}"),
    "Doppler": (lambda: "dp.pt." + _random(_WORD, 43), "{}"),
    "E2B": (lambda: "e2b_" + _random(_HEX, 40), "{}"),
    "ElevenLabs": (lambda: "sk_" + _random(_HEX, 48), "{}"),
    "Firecrawl": (lambda: "fc-" + _random(_HEX, 32), "{}"),
    "Gemini, new": (lambda: "AQ." + _random(_WORD, 50), "{}"),
    "Google refresh token": (lambda: "1//0g" + _random(_WORD, 60), "{}"),
    "HubSpot": (lambda: "pat-na1-" + _uuid(), "{}"),
    "Langfuse": (lambda: "sk-lf-" + _uuid(), "{}"),
    "Mailchimp": (lambda: _random(_HEX, 32) + "-us14", "{}"),
    "Mailgun": (lambda: "key-" + _random(_HEX, 32), "{}"),
    "Mapbox": (lambda: f"sk.eyJ1Ijoi{_random(_WORD, 60)}.{_random(_WORD, 22)}", "{}"),
    "Neon": (lambda: "napi_" + _random(_WORD, 60), "{}"),
    "Netlify": (lambda: "nfp_" + _random(_WORD, 36), "{}"),
    "New Relic": (lambda: "NRAK-" + _random(_BASE32, 27), "{}"),
    "Notion": (lambda: "ntn_" + _random(_WORD, 46), "{}"),
    "NVIDIA": (lambda: "nvapi-" + _random(_WORD, 64), "{}"),
    "Postman": (lambda: f"PMAK-{_random(_HEX, 24)}-{_random(_HEX, 34)}", "{}"),
    "Resend": (lambda: f"re_{_random(_WORD, 8)}_{_random(_WORD, 24)}", "{}"),
    "RubyGems": (lambda: "rubygems_" + _random(_HEX, 48), "{}"),
    "Sonar": (lambda: "sqp_" + _random(_HEX, 40), "{}"),
    "Toss": (lambda: "live_sk_" + _random(_WORD, 29), "{}"),
    "Twilio": (lambda: "SK" + _random(_HEX, 32), "{}"),
    "Vercel": (lambda: "vcp_" + _random(_WORD, 56), "{}"),
    "Voyage": (lambda: "pa-" + _random(_WORD, 43), "{}"),
    "Discord webhook": (lambda: _random(_WORD, 68), "https://discord.com/api/webhooks/1234567890123456789/{}"),
    "token in an address": (lambda: _random(_HEX, 40), "https://{}@github.com/ann/shop.git"),
    "key in an address": (lambda: _random(_WORD, 39), "https://maps.example/tiles?zoom=2&key={}"),
    "cookie": (lambda: _random(_WORD, 40), "Cookie: theme=dark; session={}"),
    "key of the environment": (lambda: _random(_HEX, 32), "KAKAO_ADMIN_KEY={}"),
    "ENV": (lambda: _random(_WORD, 24), "ENV SHOP_TOKEN {}"),
    "YAML": (_password, "db:\n  user: app\n  password: {}"),
    "XML": (_password, "<server><password>{}</password></server>"),
    "Terraform": (_password, 'variable "db_password" {{\n  default = "{}"\n}}'),
    "table": (_password, "| DB_PASSWORD | `{}` |"),
    "bold": (_password, "**Password:** {}"),
    "mysql -p": (_password, "mysql -u root -p{} shop"),
    "docker login": (_password, "docker login -u ann -p {}"),
    "sshpass": (_password, "sshpass -p {} ssh ann@shop.internal"),
    "pgpass": (_password, "db.internal:5432:shop:app:{}"),
    "password hash": (lambda: "$2b$12$" + _random(_WORD, 53), "{}"),
    "in a sentence": (_password, "use the password {} for staging"),
    "Korean, changed to": (_password, "DB 비밀번호를 {}로 바꿨어"),
    "Korean, bare": (_password, "아이디 ann 비번 {} 로 로그인해"),
    "Korean API key": (lambda: _random(_WORD, 32), "API 키는 {}야"),
    "Korean token": (lambda: _random(_WORD, 32), "토큰: {}"),
}
"""Generated in each run, so that no secret is real and none is in this repository."""

PLACES: dict[str, str] = {
    "sentence": "Could you try it with {} and tell me why the shop does not answer?",
    "Korean sentence": "이 값 {}를 넣고 다시 배포해 줘. 안 되면 로그를 보자.",
    "code": "```sh\n# the old way\n{}\nrun --all\n```",
    "JSON": "JSON",
    "JSON in JSON": "JSON in JSON",
    "tool": "echo start; {}; echo end",
    "tool answer": "1\t{}\n2\tdone",
    "title": "Try {} once more",
    "file path": "/home/ann/shop/{}.bak",
    "attachment": "{}.txt",
}
"""Templates of the texts that contain a secret, by place."""
HOOK_PLACES = ("sentence", "Korean sentence", "code", "JSON", "JSON in JSON", "attachment")
"""Places that a client's hooks report."""
FILES = ("file path", "attachment")


@dataclass(frozen=True)
class Planted:
    """A secret, and the input and place where it was planted."""

    way: str
    kind: str
    place: str
    secret: str

    @property
    def text(self) -> str:
        """Return the text that contains the secret."""
        written = KINDS[self.kind][1].format(self.secret)
        if self.place == "JSON":
            return json.dumps({"env": [{"name": "x", "value": written}], "n": 1}, ensure_ascii=False, indent=1)
        if self.place == "JSON in JSON":
            return json.dumps({"arguments": json.dumps({"said": written, "n": 1})})
        return PLACES[self.place].format(written)

    @property
    def traces(self) -> list[bytes]:
        """Return the longest parts of the secret in lower case: a file with one of them contains the secret."""
        words = [line for line in self.secret.splitlines() if line]
        longest = [max(re.split(r"[-_.:+/!]", word), key=len) if len(words) == 1 else word for word in words]
        return [word.lower().encode() for word in longest if len(word) > 5] or [self.secret.lower().encode()]


def text_in(made: dict[str, Planted], place: str) -> str:
    """Return the text in a place; a harmless name if no secret of this kind is planted there."""
    return made[place].text if place in made else "notes.md"


def planted(way: str, kind: str, places: Sequence[str]) -> dict[str, Planted]:
    """Make a different secret of one kind for each place. Kinds with a space in their template get no file names."""
    if " " in KINDS[kind][1]:
        places = [place for place in places if place not in FILES]
    return {place: Planted(way, kind, place, KINDS[kind][0]()) for place in places}
