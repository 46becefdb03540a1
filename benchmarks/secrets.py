"""Secrets planted by all three ways in, and looked for on the disk: python -m benchmarks.secrets [--code FILES]

A registry of its own takes conversations in which each kind of secret stands in each place: from a client's hooks
(which leave them in the spool first), from an MCP client over stdio that is killed in the middle, and from the files
of a client. Then it is asked for them, exported and backed up, and every file there is read, also inside of archives.
`left` counts the secrets whose own words, in whatever case, are in one of them; it should be 0. The second table is of
the rules' mistakes: pieces of 40 lines of the packages installed here in which they find anything.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import signal
import sqlite3
import string
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from benchmarks.figures import table
from benchmarks.setup import servers
from registry.text.privacy.secrets import find_secrets
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write

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
}
"""Made anew by their givers' formats, so that none of them opens anything, and none stands in a file of ours."""

PLACES: dict[str, str] = {
    "sentence": "Could you try it with {} and tell me why the shop does not answer?",
    "Korean sentence": "이 값 {}를 넣고 다시 배포해 줘. 안 되면 로그를 보자.",
    "code": "```sh\n# the old way\n{}\nrun --all\n```",
    "JSON": "JSON",
    "tool": "echo start; {}; echo end",
    "tool answer": "1\t{}\n2\tdone",
    "title": "Try {} once more",
    "file path": "/home/ann/shop/{}.bak",
    "attachment": "{}.txt",
}
"""Where a secret stands."""
OF_A_HOOK = ("sentence", "Korean sentence", "code", "JSON", "attachment")
"""What a client's hooks tell."""
FILES = ("file path", "attachment")
_PIECE = 40
"""Lines."""


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


class Registry:
    """One in a folder of its own, with a user's home beside it."""

    def __init__(self, folder: Path) -> None:
        self.home, self.user, self.out = folder / "registry", folder / "user", folder / "out"
        self.out.mkdir()
        self.user.mkdir()
        inherited = {name: value for name, value in servers.environment(self.home).items() if "PROXY" not in name}
        own = {"HOME": str(self.user), "CTXR_EMBED_MODEL": "off", "CLAUDE_CONFIG_DIR": str(self.user / ".claude")}
        self.env = inherited | own
        self.planted: list[Planted] = []

    def plant(self, way: str, kind: str, places: Sequence[str]) -> dict[str, Planted]:
        """Secrets to be said; they are looked for later."""
        made = planted(way, kind, places)
        self.planted += made.values()
        return made

    def run(self, *words: str, given: str = "") -> str:
        """One of the program's commands."""
        done = subprocess.run(
            [servers.CTXR, *words], env=self.env, cwd=self.user, input=given, text=True, capture_output=True, check=True
        )
        return done.stdout

    def left(self) -> list[tuple[Planted, str]]:
        """The planted secrets that are in a file, and in which."""
        found: dict[Planted, str] = {}
        for name, content in self._files():
            lowered = content.lower()
            for each in self.planted:
                if each not in found and any(trace in lowered for trace in each.traces):
                    found[each] = name
        return list(found.items())

    def _files(self) -> Iterator[tuple[str, bytes]]:
        for path in sorted(itertools.chain(self.home.rglob("*"), self.out.rglob("*"))):
            if path.is_file():
                yield path.name, path.read_bytes()
                yield from _within(path)


def _within(path: Path) -> Iterator[tuple[str, bytes]]:
    """What an archive or a database holds, in one piece: in the file a text may be cut in two by the end of a page."""
    if is_zipfile(path):
        with ZipFile(path) as archive:
            yield from ((f"{path.name}: {name}", archive.read(name)) for name in archive.namelist())
    elif path.suffix == ".db":
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for name in names:
                rows = database.execute(f'SELECT * FROM "{name}"')  # noqa: S608, a table's name
                yield f"{path.name}: {name}", "\n".join(map(str, itertools.chain.from_iterable(rows))).encode()


def from_hooks(registry: Registry, kind: str, number: int) -> None:
    """What Cursor's hooks tell: a question with a file, and the answer to it."""
    made = registry.plant("hook", kind, OF_A_HOOK)
    about = {"conversation_id": f"c-{number}", "generation_id": f"g-{number}", "cursor_version": "3.16.2"}
    asked = "\n\n".join(made[place].said for place in ("sentence", "Korean sentence"))
    attached = [{"type": "file", "file_path": said_in(made, "attachment")}]
    answered = "\n\n".join(made[place].said for place in ("code", "JSON"))
    for event, said in (
        ("beforeSubmitPrompt", {"prompt": asked, "attachments": attached}),
        ("afterAgentResponse", {"text": answered}),
    ):
        registry.run("hook", "cursor", event, given=json.dumps({**about, **said}))


async def from_tool(client: Client, registry: Registry, kind: str, number: int) -> None:
    """What an MCP client logs."""
    made = registry.plant("tool", kind, list(PLACES))
    asked: list[dict[str, Any]] = [
        {"role": "user", "text": made[place].said} for place in ("sentence", "Korean sentence", "code", "JSON")
    ]
    asked[0]["attachments"] = [{"name": said_in(made, "attachment")}]
    asked[1]["context"] = {"file": said_in(made, "file path")}
    answered = {
        "role": "assistant",
        "text": f"I see.\n{made['tool answer'].said}",
        "tool": {"name": "Bash", "params": {"command": made["tool"].said, "env": {"x": made["tool"].said}}},
    }
    meta = {"title": made["title"].said}
    told = {"channel": f"claude_session_{number}", "messages": [*asked, answered], "meta": meta}
    answer = await client.call_tool("conversation_log", told)
    if answer.is_error:
        raise RuntimeError(f"not logged: {answer.content}")


def from_files(registry: Registry, kind: str, number: int) -> None:
    """What Claude Code keeps of a session."""
    made = registry.plant("reader", kind, list(PLACES))
    talk = Dialogue(session_id(number), cwd=str(registry.user))
    talk.aside("custom-title", customTitle=made["title"].said, sessionId=talk.session_id)
    for place in ("sentence", "Korean sentence", "code"):
        talk.user(made[place].said, promptSource="typed")
    talk.user(
        [{"type": "text", "text": made["JSON"].said}, {"type": "text", "text": f"@{said_in(made, 'attachment')}"}]
    )
    talk.calls("Read", {"file_path": said_in(made, "file path")}, "toolu_1", "msg_1")
    talk.calls("Bash", {"command": made["tool"].said}, "toolu_2", "msg_1")
    talk.result("toolu_2", made["tool answer"].said)
    talk.says("Done.", "msg_2")
    write(registry.user / ".claude", talk, project=str(registry.user))


async def _ask(client: Client, registry: Registry) -> None:
    """Questions with the secrets themselves in them: what was asked is kept, too."""
    for each in registry.planted[::7]:
        await client.call_tool("extract", {"query": {"text": each.said[:2000]}})


async def _talk(registry: Registry) -> None:
    command = StdioServerParameters(command=servers.CTXR, args=["mcp"], env=registry.env, cwd=registry.user)
    async with Client(command) as client:
        for number, kind in enumerate(KINDS):
            await from_tool(client, registry, kind, number)
        await _ask(client, registry)


def _talk_and_be_killed(registry: Registry) -> None:
    """The last call's server is killed (-9) in the middle of its work, with what it wrote beside the file."""
    messages = []
    for number, kind in enumerate(KINDS):
        made = registry.plant("tool, killed", kind, ["sentence"])["sentence"]
        messages.append({"role": "user", "text": f"{number}: {made.said}"})
    told = {"channel": "claude_session_killed", "messages": messages}
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "killed", "version": "1"}}
    calls: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "conversation_log", "arguments": told}},
        {"id": 3, "method": "tools/call", "params": {"name": "conversation_log", "arguments": told}},
    ]
    server = subprocess.Popen(
        [servers.CTXR, "mcp"], env=registry.env, cwd=registry.user, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    if server.stdin is None or server.stdout is None:
        raise RuntimeError("it has no pipes")
    for call in calls:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **call}).encode() + b"\n")
        server.stdin.flush()
    while b'"id":2' not in server.stdout.readline():
        pass
    os.kill(server.pid, signal.SIGKILL)
    server.wait()


def plant_all(folder: Path) -> tuple[Registry, list[tuple[Planted, str, str]]]:
    """Plant them; what was left, where, and after which step."""
    registry, found = Registry(folder), dict[Planted, tuple[str, str]]()

    def look(step: str) -> None:
        for each, where in registry.left():
            found.setdefault(each, (where, step))
        print(f"{step}: {len(found)} left of {len(registry.planted)}", file=sys.stderr, flush=True)

    for number, kind in enumerate(KINDS):
        from_hooks(registry, kind, number)
    look("in the spool")
    asyncio.run(_talk(registry))
    look("after the tools")
    _talk_and_be_killed(registry)
    look("killed")
    for number, kind in enumerate(KINDS):
        from_files(registry, kind, number)
    registry.run("sync")
    look("after the files")
    channels = [item["channel"] for item in json.loads(registry.run("list", "--json", "--limit", "200"))["sessions"]]
    for form in ("json", "markdown"):
        registry.run("export", *channels, "--format", form, "--output", str(registry.out / form))
    registry.run("backup", "create", str(registry.out / "backup.zip"), "--no-stores")
    look("exported and backed up")
    return registry, [(each, where, step) for each, (where, step) in found.items()]


def false_hits(files: Sequence[Path]) -> tuple[int, Counter[str]]:
    """Pieces of code, and in how many of them each kind of secret is found."""
    pieces, hits = 0, Counter[str]()
    for path in files:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for start in range(0, len(lines), _PIECE):
            pieces += 1
            hits.update({found.kind for found in find_secrets("\n".join(lines[start : start + _PIECE]))})
    return pieces, hits


def _print_left(registry: Registry, left: Sequence[tuple[Planted, str, str]], *, is_long: bool) -> None:
    counted = Counter((each.way, each.place) for each in registry.planted)
    found = Counter((each.way, each.place) for each, _, _ in left)
    rows = [(way, place, str(count), str(found[way, place])) for (way, place), count in counted.items()]
    rows += [("all", "", str(len(registry.planted)), str(len(left)))]
    print(table(("way", "place", "planted", "left"), rows))
    kinds = Counter(each.kind for each, _, _ in left)
    print("\nleft by kind:", ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) or "none")
    for each, where, step in left if is_long else ():
        print(f"  {each.way}, {each.place}, {each.kind}: {each.said!r} in {where}, {step}")


def main() -> None:
    """Plant, look, and print the two tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secrets", description=__doc__)
    parser.add_argument("--code", type=int, default=2000, metavar="FILES", help="files of code that are looked through")
    parser.add_argument("--long", action="store_true", help="say of each that is left where it is")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ctxr-secrets-") as folder:
        registry, left = plant_all(Path(folder))
    _print_left(registry, left, is_long=options.long)
    packages = Path(json.__file__).parents[1], Path(next(path for path in sys.path if path.endswith("site-packages")))
    for packed in packages:
        files = sorted(packed.rglob("*.py"))
        files = [path for path in files if packed.name == "site-packages" or "site-packages" not in path.parts]
        files = files[:: max(1, len(files) // max(1, options.code))]
        pieces, hits = false_hits(files)
        of = ", ".join(f"{kind} {count}" for kind, count in hits.most_common())
        print(f"{packed.name}: {pieces} pieces, {1000 * hits.total() / max(1, pieces):.1f} hits per 1000: {of}")


if __name__ == "__main__":
    main()
