"""Test the commands of docs/team.md: they set up a server, a colleague's sign-in, and a client."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import pytest
import yaml
from click.testing import Result
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.conftest import bare_ctxr, program
from tests.cli.running.test_serve import question, wait_for
from tests.conformance.servers import free_port
from tests.deploy.test_kubernetes import rendered
from tests.identity_provider import running_provider
from tests.sources.claude_code.claude_code_files import write

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "team.md").read_text(encoding="utf-8")
PEOPLE = {"kim": ["staff", "ops"], "lee": ["staff"], "mia": ["staff"]}
ON_SERVER = "docker compose exec server ctxr "
NOT_HERE = ("caddy reverse-proxy ",)
"""Lines that need TLS for a public name."""


def code_lines(section: str, language: str = "sh") -> list[str]:
    """Return the lines of code of a section in a language, as they are typed."""
    [text] = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    blocks = re.findall(rf"^ *```{language}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines()]


class Team:
    """A server as .env and compose.yaml set it up, a laptop, and the page's commands on both."""

    def __init__(self, stack: ExitStack, home: Path, database_url: str) -> None:
        self._stack, self._home, self._database_url = stack, home, database_url
        self.port, self.token = free_port(), ""
        self.address = f"http://127.0.0.1:{self.port}"
        folder = home / "provider"
        folder.mkdir()
        self.provider = stack.enter_context(running_provider(folder, PEOPLE, f"{self.address}/mcp"))
        self.server: dict[str, str] = {}
        self.laptop: dict[str, str] = {}

    def localize(self, text: str) -> str:
        """Replace the page's examples with this machine's values."""
        places = {"https://memory.example.org": self.address, "https://login.example.org": self.provider.address}
        for example, place in {**places, "your-client-secret": "client-secret", "ctxr_…": self.token}.items():
            text = text.replace(example, place)
        return text

    def run(self, section: str) -> list[str]:
        """Run a section's commands; return their outputs."""
        return [self._run(self.localize(line)) for line in code_lines(section) if not line.startswith(NOT_HERE)]

    def _run(self, line: str) -> str:
        words = shlex.split(line.removeprefix(ON_SERVER), comments=True)
        if line.startswith("docker compose up"):
            return self._start()
        if line.startswith("curl "):
            headers = dict(word.split(": ") for word in words if ": " in word)
            return httpx.get(words[-1], headers=headers).raise_for_status().text
        if line.startswith("export "):
            self.laptop |= dict(word.split("=", 1) for word in words[1:])
            return ""
        if line.startswith(ON_SERVER):
            done = self.ctxr(words, self.server)
        else:
            assert words[0] == "ctxr", f"no way to run this: {line}"
            done = self.ctxr(words[1:], self.laptop)
        assert done.exit_code == 0, f"{line}\n{done.output}"
        found = re.search(r"ctxr_[\w-]{43}", done.output)
        self.token = found[0] if found else self.token
        return done.output

    def ctxr(self, words: list[str], environment: dict[str, str]) -> Result:
        """Run a command in this process with the given environment; a separate process takes a second."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            return bare_ctxr(*words)

    def _start(self) -> str:
        given = dict(self.localize(line).split("=", 1) for line in code_lines("2. Start the server", "ini"))
        service = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]["server"]
        assert service["env_file"] == [{"path": ".env", "required": False}]
        fixed = {name: fill_in(str(value), given) for name, value in service["environment"].items()}
        assert given["CTXR_POSTGRES_PASSWORD"] in fixed["CTXR_DATABASE_URL"]
        mine = {"CTXR_DATABASE_URL": self._database_url, "CTXR_HOST": "127.0.0.1", "CTXR_PORT": str(self.port)}
        self.server = {**given, **fixed, **mine, "CTXR_HOME": str(self._home / "server")}
        process = self._stack.enter_context(program("serve", env=self.server))
        self._stack.callback(process.kill)
        wait_for(process, self.port)
        return ""

    def sign_in(self, name: str) -> httpx.Client:
        """Sign a person in; return the browser."""
        browser = self._stack.enter_context(httpx.Client(base_url=self.address, headers={"Accept": "text/html"}))
        button = re.search('href="(/login/oauth[^"]*)"', browser.get("/", follow_redirects=True).text)
        assert button, "no sign-in button"
        there = browser.get(button[1]).headers["location"]
        assert browser.get(self.provider.sign_in(there, name)).status_code == 200
        return browser


def fill_in(value: str, given: dict[str, str]) -> str:
    """Replace `${NAME:-default}` in a value of compose.yaml."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: given.get(found[1], found[2]), value)


def titles(browser: httpx.Client) -> set[str]:
    return {channel["channel"] for channel in browser.get("/bo/channels").json()["items"]}


@pytest.fixture
def team(empty_home: Path, postgres_url: str) -> Iterator[Team]:
    with ExitStack() as stack:
        yield Team(stack, empty_home, postgres_url)


async def sessions_over_mcp(team: Team, name: str) -> int:
    """Count the chats that a client on the web finds with the person's token of the provider."""
    headers = {"Authorization": f"Bearer {team.provider.access_token(name)}"}
    async with (
        httpx2.AsyncClient(headers=headers) as web,
        Client(streamable_http_client(f"{team.address}/mcp", http_client=web)) as ai,
    ):
        answer = await ai.call_tool("list_sessions", {"project": "all"})
    content: dict[str, Any] = answer.structured_content or {}
    return int(content["result"]["pagination"]["total"])


def test_the_page_leads_to_a_signed_in_colleague_with_a_client(team: Team, empty_home: Path) -> None:
    write(empty_home / ".claude", question("Where is the basket?", 1))
    team.run("2. Start the server")
    lee, mia = team.sign_in("lee"), team.sign_in("mia")
    assert not titles(lee)

    said = team.run("4. Connect a colleague's clients")
    assert team.laptop["CTXR_TOKEN"].startswith("ctxr_")
    assert team.address in said[-1], "ctxr status names the registry"
    entry = (empty_home / ".claude.json").read_text(encoding="utf-8")
    assert team.address in entry, "the client's entry sends to the team's registry"
    assert len(titles(lee)) == 1
    assert not titles(mia)
    assert anyio.run(sessions_over_mcp, team, "lee") == 1
    assert anyio.run(sessions_over_mcp, team, "mia") == 0

    log = {"channel": "auth-design", "messages": [{"role": "user", "text": "Sessions or tokens?"}]}
    (empty_home / "said.json").write_text(json.dumps(log), encoding="utf-8")
    assert team.ctxr(["log", str(empty_home / "said.json")], team.laptop).exit_code == 0
    team.run("5. Share a chat")
    assert titles(mia) == {"auth-design"}
    assert len(titles(lee)) == 2

    doctor, audit, backup, _, figures, tokens, *_ = team.run("6. Keep it running")
    assert "PostgreSQL" in doctor
    assert "share" in audit
    assert ".zip" in backup
    assert "ctxr_operations_total" in figures
    assert {"lee-laptop", "prometheus"} <= set(tokens.split())
    refused = team.ctxr(["push"], team.laptop)
    assert refused.exit_code == 1, "the token of a person who left is refused"
    assert lee.get("/bo/channels").status_code == 401, "their browser session is refused"


def test_the_pages_helm_command_fills_in_the_chart() -> None:
    [install] = [line for line in code_lines("On Kubernetes") if line.startswith("helm install")]
    words = shlex.split(install)
    assert (ROOT / words[3]).joinpath("Chart.yaml").exists()
    values = dict(word.split("=", 1) for before, word in pairwise(words) if before == "--set")
    text = str(rendered(**values))
    assert all(value in text for value in values.values())
    referred = set(re.findall(r"'name': '([\w-]+)', '(?:key|optional)'", text))
    made = {
        line.split(" secret generic ")[1].split()[0]
        for line in code_lines("On Kubernetes")
        if " secret generic " in line
    }
    assert referred - {"database-app"} == made, "the operator makes database-app"
