"""Test that pages of other sites in a browser on this machine can do nothing here."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from backoffice.admission import AdmissionRules
from backoffice.middleware import Guard
from orchestrator.service import Orchestrator
from registry.settings import Settings
from tests.backoffice.application import application, client_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def inner() -> FastAPI:
    app = FastAPI()

    @app.api_route("/", methods=["GET", "POST", "DELETE"])
    async def passed() -> str:
        return "passed"

    return app


async def status(inner: FastAPI, method: str = "GET", *, listening: str = "127.0.0.1", **headers: str) -> int:
    transport = httpx.ASGITransport(Guard(inner, listening))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8765") as client:
        answer = await client.request(method, "/", headers=headers)
        if answer.status_code == 400:
            assert answer.json()["error"]["code"] == "INVALID_REQUEST"
        return answer.status_code


async def test_only_this_servers_own_names_are_answered(inner: FastAPI) -> None:
    cases: list[tuple[str, str, int]] = [
        ("127.0.0.1", "localhost:8765", 200),
        ("127.0.0.1", "LOCALHOST", 200),
        ("127.0.0.1", "127.0.0.1:8765", 200),
        ("127.0.0.1", "[::1]:8765", 200),
        ("127.0.0.1", "evil.example", 400),
        ("127.0.0.1", "127.0.0.1.evil.example:8765", 400),
        ("127.0.0.1", "192.168.0.7:8765", 400),
        ("127.0.0.1", "", 400),
        ("127.0.0.1", "[::1", 400),
        ("registry.lan", "registry.lan:8765", 200),
        ("registry.lan", "127.0.0.1:8765", 200),
        ("192.168.0.7", "192.168.0.7:8765", 200),
        ("192.168.0.7", "192.168.0.8:8765", 400),
        ("0.0.0.0", "192.168.0.7:8765", 200),
        ("0.0.0.0", "localhost:8765", 200),
        ("0.0.0.0", "evil.example:8765", 400),
        ("::", "[fd00::7]:8765", 200),
    ]
    for listening, host, expected in cases:
        assert await status(inner, listening=listening, Host=host) == expected


async def test_a_page_of_another_site_may_not_change_anything(inner: FastAPI) -> None:
    for method in ("POST", "DELETE"):
        assert await status(inner, method) == 200, "no browser, no origin"
        assert await status(inner, method, Origin="http://localhost:8765") == 200
        for foreign in ("http://localhost:3000", "https://evil.example", "null", "http://["):
            assert await status(inner, method, Origin=foreign) == 400
    assert await status(inner, "GET", Origin="https://evil.example") == 200, "it cannot read the answer"


async def test_the_whole_application_is_protected(http: httpx.AsyncClient) -> None:
    for path in ("/", "/docs", "/bo/channels", "/bo/events", "/health", "/nowhere"):
        assert (await http.get(path, headers={"Host": "evil.example"})).status_code == 400
    foreign = {"Origin": "https://evil.example"}
    assert (await http.delete("/bo/channels/c", headers=foreign)).status_code == 400


async def test_only_scripts_of_an_allowed_origin_read_and_change_data(
    orchestrator: Orchestrator,
) -> None:
    rules = AdmissionRules(
        origins=Settings(allowed_origins="https://editor.example, http://localhost:3000").allowed_origins
    )
    sent = {"channel": "c", "messages": [{"role": "user", "text": "hello"}]}
    asked = {"Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "authorization,content-type"}
    async with client_of(application(orchestrator, rules=rules)) as client:
        for origin, allowed in (
            ("https://editor.example", True),
            ("http://localhost:3000", True),
            ("http://localhost:3001", False),
            ("https://editor.example.evil.example", False),
            ("null", False),
        ):
            headers = {"Origin": origin}
            answers = [
                await client.options("/bo/channels/c", headers={**headers, **asked}),
                await client.get("/bo/channels", headers=headers),
            ]
            stored = await client.post("/bo/conversations", json=sent, headers=headers)
            assert stored.status_code == (201 if allowed else 400)
            for answer in answers:
                assert answer.headers.get("access-control-allow-origin") == (origin if allowed else None)
                assert "access-control-allow-credentials" not in answer.headers


async def test_an_invalid_origin_cannot_be_allowed() -> None:
    for wrong in ("*", "editor.example", "https://editor.example/", "file://"):
        with pytest.raises(ValueError, match="not an origin"):
            Settings(allowed_origins=(wrong,))
