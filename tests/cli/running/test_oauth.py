"""Test `/mcp` with tokens of the authorization server in the settings, and of no other."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from cli.running.serve import build_app
from registry.settings import Settings

pytestmark = pytest.mark.anyio

RESOURCE = "https://memory.example.org/mcp"


class AuthorizationServer:
    """A small authorization server: it publishes its metadata and key, and makes tokens."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = outer.documents().get(self.path)
                self.send_response(200 if found else 404)
                self.end_headers()
                self.wfile.write(found if isinstance(found, bytes) else json.dumps(found).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.keys = ""
        self.others: dict[str, Any] = {}
        """Answers at some addresses instead of its documents."""

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[AuthorizationServer]:
        one = cls()
        thread = threading.Thread(target=one.server.serve_forever, args=(0.05,))
        thread.start()
        yield one
        one.server.shutdown()
        thread.join()
        one.server.server_close()

    def documents(self) -> dict[str, Any]:
        algorithm = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256)
        key = {**algorithm.to_jwk(self._key.public_key(), as_dict=True), "kid": "1", "use": "sig", "alg": "ES256"}
        metadata = {"issuer": self.address, "jwks_uri": self.keys or f"{self.address}/keys"}
        return {"/.well-known/oauth-authorization-server": metadata, "/keys": {"keys": [key]}, **self.others}

    def token(self, *, key: Any = None, algorithm: str = "ES256", **claims: Any) -> str:
        usual = {"iss": self.address, "aud": RESOURCE, "sub": "me", "exp": time.time() + 600, "scope": "registry:write"}
        wanted = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        return jwt.encode(wanted, key or self._key, algorithm, headers={"kid": "1"})


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    with AuthorizationServer.running() as server:
        yield server


@pytest.fixture
async def http(issuer: AuthorizationServer, sqlite_url: str, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(
        home=tmp_path, database_url=sqlite_url, public_url=RESOURCE.removesuffix("/mcp"), oauth_issuer=issuer.address
    )
    app = build_app(settings)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://memory.example.org") as client,
    ):
        yield client


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


async def asked(http: httpx.AsyncClient, token: str, body: dict[str, Any]) -> httpx.Response:
    headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    return await http.post("/mcp", json=body, headers=headers)


async def test_a_request_without_a_token_is_told_where_to_get_one(
    http: httpx.AsyncClient, issuer: AuthorizationServer
) -> None:
    refused = await http.post("/mcp", json=call("list_sessions"))
    assert refused.status_code == 401
    url = "https://memory.example.org/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{url}"' in refused.headers["www-authenticate"]
    document = (await http.get(url)).json()
    assert document["resource"] == RESOURCE
    assert [one.rstrip("/") for one in document["authorization_servers"]] == [issuer.address]
    assert document["scopes_supported"] == ["registry:read", "registry:write", "registry:admin"]


async def test_a_token_of_the_issuer_has_the_rights_of_its_scopes(
    http: httpx.AsyncClient, issuer: AuthorizationServer
) -> None:
    log = call("conversation_log", channel="cursor_1", messages=[{"role": "user", "text": "memoize fibonacci"}])
    stored = await asked(http, issuer.token(), log)
    assert stored.json()["result"]["structuredContent"]["ok"], stored.text
    refused = await asked(http, issuer.token(scope="openid registry:read"), log)
    assert refused.json()["result"]["structuredContent"]["error"]["code"] == "UNAUTHORIZED"
    others = issuer.token(sub="you"), issuer.token(registry_channels=["codex_*"])
    for token, total in ((issuer.token(), 1), *((other, 0) for other in others)):
        listed = await asked(http, token, call("list_sessions", project="all"))
        assert listed.json()["result"]["structuredContent"]["result"]["pagination"]["total"] == total


async def test_a_chat_continued_under_another_persons_name_gets_its_own_channel(
    http: httpx.AsyncClient, issuer: AuthorizationServer
) -> None:
    log = call("conversation_log", channel="cursor_1", messages=[{"role": "user", "text": "memoize fibonacci"}])
    told = [await asked(http, issuer.token(sub=person), log) for person in ("me", "you")]
    mine, theirs = (answer.json()["result"]["structuredContent"]["result"] for answer in told)
    assert mine["channel"] == "cursor_1"
    assert theirs["channel"] != "cursor_1"
    assert theirs["note"] == (
        f"cursor_1 is a chat of another person: these messages are in {theirs['channel']}. Pass that from now on."
    )


@pytest.mark.parametrize("keys", ["http://localhost:{port}/keys", "http://10.0.0.1/keys", "file:///etc/passwd"])
async def test_a_redirect_of_an_issuer_is_not_followed_into_a_private_network(
    http: httpx.AsyncClient,
    issuer: AuthorizationServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    keys: str,
) -> None:
    monkeypatch.setattr(issuer, "keys", keys.format(port=issuer.server.server_port))
    assert not (await asked(http, issuer.token(), call("list_sessions"))).is_success
    assert "is a private address" in caplog.text or "is not a web address" in caplog.text


async def test_any_other_token_is_refused(http: httpx.AsyncClient, issuer: AuthorizationServer) -> None:
    other_key = ec.generate_private_key(ec.SECP256R1())
    bad = [
        issuer.token(key=other_key),
        issuer.token(key="a" * 32, algorithm="HS256"),
        issuer.token(aud="https://elsewhere.example.org/mcp"),
        issuer.token(iss="https://elsewhere.example.org"),
        issuer.token(exp=time.time() - 600),
        issuer.token(exp=None),
        issuer.token(scope="openid"),
        issuer.token(registry_channels="codex_*"),
        issuer.token(registry_channels=[]),
        issuer.token()[:-4] + "AAAA",
        "a.b.c",
        "",
    ]
    for token in bad:
        assert (await asked(http, token, call("list_sessions"))).status_code == 401, token
