"""Secrets of each kind, made anew by their givers' formats, and where they stand in what is said."""

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


def _any(signs: str, count: int) -> str:
    """Some signs of chance, a digit and a letter among them."""
    while True:
        made = "".join(_CHANCE.choices(signs, k=count))
        if any(map(str.isdigit, made)) and any(map(str.isalpha, made)):
            return made


def _card() -> str:
    """A card's number with its check digit."""
    digits = "4539" + "".join(_CHANCE.choices(string.digits, k=11))
    doubled = [int(digit) * (2 - at % 2) for at, digit in enumerate(reversed(digits))]
    return digits + str(-sum(value - 9 if value > 9 else value for value in doubled) % 10)


def _resident() -> str:
    """A Korean resident number with its check digit."""
    digits = f"{_CHANCE.randint(60, 99)}{_CHANCE.randint(1, 12):02}{_CHANCE.randint(1, 28):02}1"
    digits += "".join(_CHANCE.choices(string.digits, k=5))
    weights = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
    check = (11 - sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True)) % 11) % 10
    return f"{digits[:6]}-{digits[6:]}{check}"


def _uuid() -> str:
    return "-".join(_any(_HEX, count) for count in (8, 4, 4, 4, 12))


def _password() -> str:
    return _any(_WORD, 9) + "Q!7"


def _lines() -> str:
    return "\n".join(_any(_BASE64, 64) for _ in range(6))


Kind = tuple[Callable[[], str], str]
"""What is secret, and how it is usually written, with `{}` for it."""

KINDS: dict[str, Kind] = {
    "OpenAI, of a project": (lambda: "sk-proj-" + _any(_WORD, 48), "{}"),
    "OpenAI": (lambda: "sk-" + _any(_WORD, 48), "{}"),
    "Anthropic": (lambda: f"sk-ant-api03-{_any(_WORD, 93)}-{_any(_WORD, 6)}AA", "{}"),
    "OpenRouter": (lambda: "sk-or-v1-" + _any(_HEX, 64), "{}"),
    "AWS access key": (lambda: "AKIA" + _any(_BASE32, 16), "{}"),
    "AWS secret key": (lambda: _any(_BASE64, 40), "aws_secret_access_key = {}"),
    "GitHub": (lambda: "ghp_" + _any(_WORD, 36), "{}"),
    "GitHub, fine-grained": (lambda: f"github_pat_{_any(_WORD, 22)}_{_any(_WORD, 59)}", "{}"),
    "GitLab": (lambda: "glpat-" + _any(_WORD, 20), "{}"),
    "Google API key": (lambda: "AIza" + _any(_WORD, 35), "{}"),
    "Google client secret": (lambda: "GOCSPX-" + _any(_WORD, 28), "{}"),
    "Google access token": (lambda: "ya29." + _any(_WORD, 60), "{}"),
    "Slack": (lambda: f"xoxb-{_CHANCE.randrange(10**11, 10**12)}-{_any(_WORD, 24)}", "{}"),
    "Slack webhook": (lambda: _any(_WORD, 24), "https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/{}"),
    "Stripe": (lambda: "sk_live_" + _any(_WORD, 24), "{}"),
    "Stripe webhook": (lambda: "whsec_" + _any(_WORD, 32), "{}"),
    "npm": (lambda: "npm_" + _any(_WORD, 36), "{}"),
    "PyPI": (lambda: "pypi-AgEIcHlwaS5vcmc" + _any(_WORD, 120), "{}"),
    "Hugging Face": (lambda: "hf_" + _any(_WORD, 34), "{}"),
    "SendGrid": (lambda: f"SG.{_any(_WORD, 22)}.{_any(_WORD, 43)}", "{}"),
    "Telegram": (lambda: f"{_CHANCE.randrange(10**9, 10**10)}:AA{_any(_WORD, 33)}", "{}"),
    "Shopify": (lambda: "shpat_" + _any(_HEX, 32), "{}"),
    "DigitalOcean": (lambda: "dop_v1_" + _any(_HEX, 64), "{}"),
    "Groq": (lambda: "gsk_" + _any(_WORD, 52), "{}"),
    "xAI": (lambda: "xai-" + _any(_WORD, 80), "{}"),
    "Docker Hub": (lambda: "dckr_pat_" + _any(_WORD, 27), "{}"),
    "Vault": (lambda: "hvs." + _any(_WORD, 90), "{}"),
    "Supabase": (lambda: "sbp_" + _any(_HEX, 40), "{}"),
    "Tailscale": (lambda: f"tskey-auth-{_any(_WORD, 12)}-{_any(_WORD, 32)}", "{}"),
    "Tavily": (lambda: "tvly-dev-" + _any(_WORD, 32), "{}"),
    "LangSmith": (lambda: f"lsv2_pt_{_any(_HEX, 32)}_{_any(_HEX, 10)}", "{}"),
    "Pinecone": (lambda: f"pcsk_{_any(_WORD, 6)}_{_any(_WORD, 60)}", "{}"),
    "Figma": (lambda: "figd_" + _any(_WORD, 40), "{}"),
    "Sentry": (lambda: "sntryu_" + _any(_HEX, 64), "{}"),
    "PlanetScale": (lambda: "pscale_pw_" + _any(_WORD, 43), "{}"),
    "Azure storage": (lambda: _any(_BASE64, 86), "AccountName=shop;AccountKey={}=="),
    "JWT": (lambda: f"eyJ{_any(_WORD, 33)}.eyJ{_any(_WORD, 60)}.{_any(_WORD, 43)}", "{}"),
    "PostgreSQL address": (lambda: _any(_WORD, 14), "postgresql://app:{}@db.internal:5432/shop"),
    "Redis address": (lambda: _any(_WORD, 14), "redis://:{}@cache:6379/0"),
    "bearer header": (lambda: _any(_WORD, 40), "Authorization: Bearer {}"),
    "basic header": (lambda: _any(_WORD, 32), "Authorization: Basic {}"),
    "named key": (lambda: _any(_HEX, 32), 'KAKAO_REST_API_KEY="{}"'),
    "named secret": (lambda: _any(_WORD, 50), "SECRET_KEY = '{}'"),
    "named password": (lambda: _any(_WORD, 9) + "!7", "DB_PASSWORD={}"),
    "password in Korean": (lambda: _any(_WORD, 9) + "!7", "비밀번호는 {}"),
    "PGPASSWORD": (lambda: _any(_WORD, 12), "PGPASSWORD={} psql -h db shop"),
    "--password": (lambda: _any(_WORD, 12), "deploy --user app --password {}"),
    "curl -u": (lambda: _any(_WORD, 14), "curl -u admin:{} https://shop.internal/stock"),
    "netrc": (lambda: _any(_WORD, 14), "machine shop.internal login ann password {}"),
    "resident number": (_resident, "{}"),
    "card": (_card, "{}"),
    "RSA private key": (_lines, "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----"),
    "OpenSSH private key": (_lines, "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----"),
    "age": (lambda: "AGE-SECRET-KEY-1" + _any(_BASE32, 58), "{}"),
    "Airtable": (lambda: f"pat{_any(_WORD, 14)}.{_any(_HEX, 64)}", "{}"),
    "Alibaba": (lambda: "LTAI5t" + _any(_WORD, 18), "{}"),
    "Azure secret": (lambda: f"{_any(_WORD, 3)}8Q~{_any(_WORD, 34)}", "{}"),
    "Brevo": (lambda: f"xkeysib-{_any(_HEX, 64)}-{_any(_WORD, 16)}", "{}"),
    "Cerebras": (lambda: "csk-" + _any(string.ascii_lowercase + string.digits, 48), "{}"),
    "Cursor": (lambda: "key_" + _any(_HEX, 64), "{}"),
    "Discord": (lambda: f"MTk4NjIyNDgzNDcxOTI1MjQ4.{_any(_WORD, 6)}.{_any(_WORD, 38)}", "{}"),
    "Doppler": (lambda: "dp.pt." + _any(_WORD, 43), "{}"),
    "E2B": (lambda: "e2b_" + _any(_HEX, 40), "{}"),
    "ElevenLabs": (lambda: "sk_" + _any(_HEX, 48), "{}"),
    "Firecrawl": (lambda: "fc-" + _any(_HEX, 32), "{}"),
    "Gemini, new": (lambda: "AQ." + _any(_WORD, 50), "{}"),
    "Google refresh token": (lambda: "1//0g" + _any(_WORD, 60), "{}"),
    "HubSpot": (lambda: "pat-na1-" + _uuid(), "{}"),
    "Langfuse": (lambda: "sk-lf-" + _uuid(), "{}"),
    "Mailchimp": (lambda: _any(_HEX, 32) + "-us14", "{}"),
    "Mailgun": (lambda: "key-" + _any(_HEX, 32), "{}"),
    "Mapbox": (lambda: f"sk.eyJ1Ijoi{_any(_WORD, 60)}.{_any(_WORD, 22)}", "{}"),
    "Neon": (lambda: "napi_" + _any(_WORD, 60), "{}"),
    "Netlify": (lambda: "nfp_" + _any(_WORD, 36), "{}"),
    "New Relic": (lambda: "NRAK-" + _any(_BASE32, 27), "{}"),
    "Notion": (lambda: "ntn_" + _any(_WORD, 46), "{}"),
    "NVIDIA": (lambda: "nvapi-" + _any(_WORD, 64), "{}"),
    "Postman": (lambda: f"PMAK-{_any(_HEX, 24)}-{_any(_HEX, 34)}", "{}"),
    "Resend": (lambda: f"re_{_any(_WORD, 8)}_{_any(_WORD, 24)}", "{}"),
    "RubyGems": (lambda: "rubygems_" + _any(_HEX, 48), "{}"),
    "Sonar": (lambda: "sqp_" + _any(_HEX, 40), "{}"),
    "Toss": (lambda: "live_sk_" + _any(_WORD, 29), "{}"),
    "Twilio": (lambda: "SK" + _any(_HEX, 32), "{}"),
    "Vercel": (lambda: "vcp_" + _any(_WORD, 56), "{}"),
    "Voyage": (lambda: "pa-" + _any(_WORD, 43), "{}"),
    "Discord webhook": (lambda: _any(_WORD, 68), "https://discord.com/api/webhooks/1234567890123456789/{}"),
    "token in an address": (lambda: _any(_HEX, 40), "https://{}@github.com/ann/shop.git"),
    "key in an address": (lambda: _any(_WORD, 39), "https://maps.example/tiles?zoom=2&key={}"),
    "cookie": (lambda: _any(_WORD, 40), "Cookie: theme=dark; session={}"),
    "key of the environment": (lambda: _any(_HEX, 32), "KAKAO_ADMIN_KEY={}"),
    "ENV": (lambda: _any(_WORD, 24), "ENV SHOP_TOKEN {}"),
    "YAML": (_password, "db:\n  user: app\n  password: {}"),
    "XML": (_password, "<server><password>{}</password></server>"),
    "Terraform": (_password, 'variable "db_password" {{\n  default = "{}"\n}}'),
    "table": (_password, "| DB_PASSWORD | `{}` |"),
    "bold": (_password, "**Password:** {}"),
    "mysql -p": (_password, "mysql -u root -p{} shop"),
    "docker login": (_password, "docker login -u ann -p {}"),
    "sshpass": (_password, "sshpass -p {} ssh ann@shop.internal"),
    "pgpass": (_password, "db.internal:5432:shop:app:{}"),
    "password hash": (lambda: "$2b$12$" + _any(_WORD, 53), "{}"),
    "in a sentence": (_password, "use the password {} for staging"),
    "Korean, changed to": (_password, "DB 비밀번호를 {}로 바꿨어"),
    "Korean, bare": (_password, "아이디 ann 비번 {} 로 로그인해"),
    "Korean API key": (lambda: _any(_WORD, 32), "API 키는 {}야"),
    "Korean token": (lambda: _any(_WORD, 32), "토큰: {}"),
}
"""Made anew by their givers' formats, so that none of them opens anything, and none stands in a file of ours."""

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
"""Where a secret stands."""
OF_A_HOOK = ("sentence", "Korean sentence", "code", "JSON", "JSON in JSON", "attachment")
"""What a client's hooks tell."""
FILES = ("file path", "attachment")


@dataclass(frozen=True)
class Planted:
    """A secret where it was said."""

    way: str
    kind: str
    place: str
    secret: str

    @property
    def said(self) -> str:
        """What is said, with the secret in it."""
        written = KINDS[self.kind][1].format(self.secret)
        if self.place == "JSON":
            return json.dumps({"env": [{"name": "x", "value": written}], "n": 1}, ensure_ascii=False, indent=1)
        if self.place == "JSON in JSON":
            return json.dumps({"arguments": json.dumps({"said": written, "n": 1})})
        return PLACES[self.place].format(written)

    @property
    def traces(self) -> list[bytes]:
        """What a file holds that holds it: its longest words, without regard to case."""
        words = [line for line in self.secret.splitlines() if line]
        longest = [max(re.split(r"[-_.:+/!]", word), key=len) if len(words) == 1 else word for word in words]
        return [word.lower().encode() for word in longest if len(word) > 5] or [self.secret.lower().encode()]


def said_in(made: dict[str, Planted], place: str) -> str:
    """What is said in a place in which not every kind stands."""
    return made[place].said if place in made else "notes.md"


def planted(way: str, kind: str, places: Sequence[str]) -> dict[str, Planted]:
    """A secret of one kind in each place, each another one; no file is called like a line of words."""
    if " " in KINDS[kind][1]:
        places = [place for place in places if place not in FILES]
    return {place: Planted(way, kind, place, KINDS[kind][0]()) for place in places}
