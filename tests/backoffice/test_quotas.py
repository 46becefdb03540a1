"""Test rate limits: a token over its limit gets the time to retry, and delays no others."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI

from backoffice import quotas
from backoffice.admission import AdmissionRules
from orchestrator.service import Orchestrator
from registry.access import Level
from tests.backoffice.application import application
from tests.backoffice.conftest import Hire, problem_of

pytestmark = pytest.mark.anyio
SECRET = "this-users-secret"


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(quotas, "time", clock)
    return clock


@pytest.fixture
def app(orchestrator: Orchestrator) -> FastAPI:
    return application(orchestrator, rules=AdmissionRules(secret=SECRET, per_minute=3))


async def test_a_token_that_asks_too_often_is_told_when_to_ask_again(hire: Hire, clock: Clock) -> None:
    kim = await hire("kim")
    for _ in range(3):
        assert (await kim.ask("GET", "/bo/channels")).status_code == 200
    refused = await kim.ask("GET", "/bo/channels")
    assert problem_of(refused, 429) == {
        "code": "INVALID_REQUEST",
        "message": "This token has reached its request limit.",
        "details": "token 'kim': allowed 3 requests a minute; ask again in 20 s",
    }
    assert refused.headers["retry-after"] == "20"
    clock.now += 19.9
    assert (await kim.ask("GET", "/bo/channels")).status_code == 429
    clock.now += 0.2
    assert [(await kim.ask("GET", "/bo/channels")).status_code for _ in range(2)] == [200, 429]
    clock.now += 3600
    assert [(await kim.ask("GET", "/bo/channels")).status_code for _ in range(4)] == [200, 200, 200, 429]


async def test_each_token_has_its_own_minute_and_may_have_its_own_limit(
    hire: Hire, http: httpx.AsyncClient, clock: Clock
) -> None:
    for per_minute, answered in ((None, 3), (1, 1), (0, 5)):
        person = await hire(f"for {per_minute}", per_minute=per_minute)
        assert [(await person.ask("GET", "/bo/channels")).status_code for _ in range(5)].count(200) == answered
    this_user = {"authorization": f"Bearer {SECRET}"}
    assert {(await http.get("/bo/channels", headers=this_user)).status_code for _ in range(9)} == {200}


async def test_a_write_over_the_limit_is_refused_and_not_stored(hire: Hire, clock: Clock) -> None:
    robot = await hire("robot", per_minute=1)
    await robot.log("notes", "one")
    said = {"channel": "notes", "messages": [{"role": "user", "text": "two"}]}
    assert (await robot.ask("POST", "/bo/conversations", json=said)).status_code == 429
    clock.now += 60
    assert (await robot.ask("GET", "/bo/channels/notes")).json()["message_count"] == 1


async def test_a_page_and_an_mcp_client_get_the_limit_in_their_own_format(
    hire: Hire, http: httpx.AsyncClient, clock: Clock
) -> None:
    kim = await hire("kim", Level.ADMIN, per_minute=1)
    await kim.ask("GET", "/bo/channels")
    page = await http.get("/", headers={**kim.headers, "accept": "text/html"})
    assert (page.status_code, page.headers["retry-after"]) == (429, "60")
    assert "<h1>" in page.text
    assert "This token has reached its request limit." in page.text
    told = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=kim.headers)
    assert (told.status_code, told.headers["retry-after"]) == (429, "60")
    assert told.json()["error"]["message"].startswith(
        "INVALID_REQUEST: This token has reached its request limit. token 'kim': "
    )
