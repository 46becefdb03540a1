"""Test tokens: without a valid one nothing is answered; with one, what it allows."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import httpx
import pytest
from fastapi import FastAPI

from backoffice import admission
from backoffice.admission import AdmissionRules, sign_in_code
from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.domain import now
from registry.storage.safety.page_sessions import begin_session, renew_sessions
from registry.storage.safety.tokens import create_token, list_people, list_tokens, revoke_token
from tests.backoffice.application import application, client_of
from tests.backoffice.conftest import Log, problem_of
from tests.backoffice.event_stream import Stream

pytestmark = pytest.mark.anyio

Make = Callable[..., Awaitable[dict[str, str]]]


@pytest.fixture
def make(orchestrator: Orchestrator) -> Make:
    """Return a function that makes a token and returns its header."""

    async def made(name: str, level: Level = Level.READ, *channels: str, **given: Any) -> dict[str, str]:
        token = await orchestrator.registry.write(lambda tx: create_token(tx, name, level, channels, **given))
        return {"authorization": f"Bearer {token.secret}"}

    return made


async def test_without_tokens_this_machine_has_access(http: httpx.AsyncClient) -> None:
    assert (await http.get("/bo/channels")).status_code == 200


async def test_with_tokens_a_valid_one_is_needed(http: httpx.AsyncClient, make: Make) -> None:
    expired = await make("old", expires_at=now() - timedelta(seconds=1))
    for headers in ({}, {"authorization": "Bearer ctxr_guess"}, {"authorization": "Basic eDp5"}, expired):
        for path in ("/bo/channels", "/bo/ao/executions", "/metrics", "/docs", "/nonsense", "/bo/events"):
            answer = await http.get(path, headers=headers)
            assert problem_of(answer, 401)["code"] == "UNAUTHORIZED"
            assert answer.headers["www-authenticate"].startswith('Bearer realm="context-registry"')
    for path in ("/health", "/ready", "/login"):
        assert (await http.get(path)).status_code == 200


@pytest.mark.both_databases
async def test_a_revoked_token_is_refused_at_once(
    http: httpx.AsyncClient, make: Make, orchestrator: Orchestrator
) -> None:
    await make("other")
    shown = await make("phone")
    assert (await http.get("/bo/channels", headers=shown)).status_code == 200
    await orchestrator.registry.write(lambda tx: revoke_token(tx, "phone"))
    assert (await http.get("/bo/channels", headers=shown)).status_code == 401


@pytest.mark.both_databases
async def test_only_a_digest_of_a_token_is_stored_and_its_last_use(
    http: httpx.AsyncClient, make: Make, orchestrator: Orchestrator
) -> None:
    shown = await make("phone")
    await http.get("/bo/channels", headers=shown)
    for _ in range(1000):
        listed = await orchestrator.registry.read(list_tokens)
        if listed[0]["used_at"]:
            break
        await anyio.sleep(0.01)
    assert listed[0]["used_at"]
    secret = shown["authorization"].removeprefix("Bearer ")
    assert secret not in str(listed)
    rows = await orchestrator.registry.read(lambda tx: tx.exec_driver_sql("SELECT * FROM token").all())
    assert secret not in str(rows)


async def test_a_token_has_the_rights_of_its_scope(http: httpx.AsyncClient, make: Make) -> None:
    _, read, write, admin = [await make(level.value, level) for level in Level]
    log = {"channel": "cursor_1", "messages": [{"role": "user", "text": "hello"}]}
    assert problem_of(await http.post("/bo/conversations", json=log, headers=read), 401)["code"] == "UNAUTHORIZED"
    assert (await http.post("/bo/conversations", json=log, headers=write)).status_code == 201
    resume = {"operation": "resume", "query": {"session_id": "cursor_1", "in": "codex", "dry_run": True}}
    for headers in (read, write):
        assert problem_of(await http.post("/bo/ao/run", json=resume, headers=headers), 401)["code"] == "UNAUTHORIZED"
    for headers, status in ((read, 401), (write, 401), (admin, 200)):
        assert (await http.delete("/bo/channels/cursor_1?soft=false", headers=headers)).status_code == status


async def test_a_token_has_the_same_rights_in_the_playground(http: httpx.AsyncClient, make: Make, log: Log) -> None:
    await log("cursor_1", "Hello")
    read = await make("reader", Level.READ, "codex_*")
    found = (await http.post("/flow/try", data={"operation": "search", "text": "hello"}, headers=read)).headers[
        "location"
    ]
    assert (await http.get(f"/bo/ao{found.replace('/flow', '/executions')}", headers=read)).json()["delivered"] == 0
    everything = await make("me", Level.ADMIN)
    for headers in (read, everything):
        form = {"operation": "delete", "channel": "cursor_1"}
        assert (await http.post("/flow/try", data=form, headers=headers)).status_code == 400
    assert (await http.get("/bo/channels", headers=everything)).json()["total"] == 1


async def test_a_token_runs_only_the_test_cases_of_its_own_conversations(
    http: httpx.AsyncClient, make: Make, log: Log
) -> None:
    [message_id] = await log("cursor_1", "The kettle whistles")
    run = (await http.post("/flow/try", data={"operation": "search", "text": "kettle"})).headers["location"]
    await http.post(f"{run}/expected", data={"message": message_id})
    restricted, everything = await make("a", Level.WRITE, "codex_*"), await make("me", Level.ADMIN)
    assert "kettle" not in (await http.post("/flow/cases/run", headers=restricted)).text
    assert "kettle" in (await http.post("/flow/cases/run", headers=everything)).text


async def test_the_settings_page_shows_the_scope_of_each_token(http: httpx.AsyncClient, make: Make) -> None:
    await make("prometheus", Level.METRICS)
    page = await http.get("/settings/access", headers=await make("me", Level.ADMIN))
    assert re.findall(r'data-label="Level">(\w*)<', page.text) == ["admin", "metrics"]


@pytest.mark.both_databases
async def test_a_channel_that_a_token_may_not_touch_is_refused_and_not_changed(
    http: httpx.AsyncClient, make: Make, log: Log
) -> None:
    await log("codex_1", "theirs", title="Theirs")
    await log("cursor_1", "mine")
    shown = await make("a", Level.ADMIN, "cursor_*")
    written = {"channel": "codex_1", "messages": [{"role": "user", "text": "mine"}]}
    for answer in (
        await http.post("/bo/conversations", json=written, headers=shown),
        await http.post("/bo/conversations", json={**written, "channel": "codex_2"}, headers=shown),
        await http.patch("/bo/channels/codex_1", json={"title": "mine"}, headers=shown),
        await http.delete("/bo/channels/codex_1", headers=shown),
        await http.get("/settings", headers=shown),
        await http.get("/metrics", headers=shown),
    ):
        assert problem_of(answer, 401)["code"] == "UNAUTHORIZED"
    everything = await make("all")
    channels = (await http.get("/bo/channels", headers=everything)).json()["items"]
    assert {one["channel"]: (one["title"], one["message_count"]) for one in channels} == {
        "codex_1": ("Theirs", 1),
        "cursor_1": (None, 1),
    }


@pytest.mark.both_databases
@pytest.mark.parametrize("what", ["channel", "message"])
async def test_a_forgotten_channel_is_announced_to_tokens_that_could_see_it(
    http: httpx.AsyncClient, make: Make, log: Log, what: str
) -> None:
    said, _ = await log("cursor_1", "hello", "again", project="/home/me/shop")
    shown = {
        "all": await make("all", Level.ADMIN),
        "its channel": await make("a", Level.ADMIN, "cursor_*"),
        "its project": await make("b", projects=["shop"]),
        "its channel elsewhere": await make("c", Level.READ, "cursor_*", projects=["/srv/other"]),
        "another channel": await make("d", Level.READ, "codex_*"),
        "another project": await make("e", projects=["/srv/other"]),
        "nothing any more": await make("f", Level.READ, "cursor_*", expires_at=now() - timedelta(days=1)),
    }
    address = f"/bo/conversations/{said}" if what == "message" else "/bo/channels/cursor_1"
    assert (await http.delete(address, params={"soft": False}, headers=shown["all"])).is_success
    told = {}
    for who, header in shown.items():
        edits = (await http.get("/bo/edits", headers=header)).json().get("items", [])
        told[who] = sum(len(one["value"]["ids"]) for one in edits)
    count = 1 if what == "message" else 2
    assert told == dict.fromkeys(shown, 0) | {"all": count, "its channel": count, "its project": count}


@pytest.mark.both_databases
async def test_a_project_token_writes_only_into_its_project(http: httpx.AsyncClient, make: Make, log: Log) -> None:
    await log("theirs", "hello", project="/home/me/other")
    shown = await make("a", Level.WRITE, projects=["/home/me/mine"])

    async def written(channel: str, **meta: str) -> int:
        body = {"channel": channel, "messages": [{"role": "user", "text": "hello"}], "meta": meta}
        return (await http.post("/bo/conversations", json=body, headers=shown)).status_code

    assert await written("new") == 401
    assert await written("new", project="/home/me/mine") == 201
    assert await written("new") == 201
    assert await written("new", project="/home/me/other") == 401
    assert await written("theirs", project="/home/me/mine") == 401


@pytest.mark.both_databases
async def test_a_nickname_of_others_is_taken_without_naming_its_channel(
    http: httpx.AsyncClient, make: Make, log: Log
) -> None:
    await log("codex_1", "theirs")
    await http.patch("/bo/channels/codex_1", json={"nickname": "Auth"})
    await log("cursor_1", "mine")
    shown = await make("a", Level.WRITE, "cursor_*")
    for nickname in ("Auth", "auth", "codex_1"):
        problem = problem_of(await http.patch("/bo/channels/cursor_1", json={"nickname": nickname}, headers=shown))
        assert problem["message"] == "The nickname is taken."
        assert "codex_1" not in problem["details"].replace(f"given {nickname!r}", "")


@pytest.mark.both_databases
async def test_executions_say_which_token_read_what(http: httpx.AsyncClient, make: Make, log: Log) -> None:
    await log("cursor_1", "memoize the fibonacci function")
    phone, everything = await make("phone", Level.READ, "cursor_*"), await make("all", Level.ADMIN)
    await http.get("/bo/search?q=fibonacci", headers=phone)
    run = (await http.get("/bo/ao/executions?operation=search", headers=everything)).json()["items"][0]
    assert run["token"] == "phone"
    own = (await http.get("/bo/ao/executions", headers=phone)).json()
    assert [one["id"] for one in own["items"]] == [run["id"]]


@pytest.mark.both_databases
async def test_events_tell_only_what_the_token_may_see(app: FastAPI, make: Make, log: Log) -> None:
    await log("codex_1", "theirs", "theirs too")
    await log("cursor_1", "mine")
    shown = await make("a", Level.READ, "cursor_*")
    stream = Stream(app, "0.0", shown)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.run)
        assert await stream.opened() == 200
        kind, _, item = await stream.next()
        assert (kind, item["text"]) == ("message", "mine")
        stream.leave()


@pytest.mark.both_databases
async def test_an_event_stream_ends_when_its_token_is_revoked(
    app: FastAPI, make: Make, log: Log, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "RECHECK_S", 0.01)
    await make("other")
    stream = Stream(app, "0.0", await make("a"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.run)
        assert await stream.opened() == 200
        await orchestrator.registry.write(lambda tx: revoke_token(tx, "a"))
        with anyio.fail_after(60):
            await stream.ended.wait()


async def test_an_event_stream_ends_when_its_session_gets_other_rights(
    app: FastAPI, make: Make, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "RECHECK_S", 0.01)
    await make("other")
    access = Access("oauth:ann", Level.ADMIN, owner="oauth:ann")
    key = await orchestrator.registry.write(lambda tx: begin_session(tx, None, access, 60))
    stream = Stream(app, "0.0", {"cookie": f"ctxr_session={key}"})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.run)
        assert await stream.opened() == 200
        read_only = replace(access, level=Level.READ)
        await orchestrator.registry.write(lambda tx: renew_sessions(tx, "oauth:ann", read_only))
        with anyio.fail_after(10):
            await stream.ended.wait()


async def test_a_browser_signs_in_with_its_token_and_out_again(http: httpx.AsyncClient, make: Make, log: Log) -> None:
    await log("cursor_1", "hello")
    shown = await make("me", Level.WRITE)
    page = {"accept": "text/html"}
    away = await http.get("/channels/cursor_1?q=hello", headers=page)
    assert (away.status_code, away.headers["location"]) == (303, "/login?next=/channels/cursor_1%3Fq%3Dhello")
    assert (await http.post("/login", data={"token": "ctxr_guess"}, headers=page)).status_code == 401
    token = shown["authorization"].removeprefix("Bearer ")
    signed_in = await http.post("/login", data={"token": token, "next": "/channels/cursor_1"}, headers=page)
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/channels/cursor_1")
    cookie = signed_in.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    assert token not in cookie
    assert (await http.get("/", headers=page)).status_code == 200
    named = {"title": "Mine", "nickname": "", "tags": ""}
    assert problem_of(await http.post("/channels/cursor_1", data=named), 401)["code"] == "UNAUTHORIZED"
    for origin, status in (("https://evil.example", 400), ("http://127.0.0.1:8765", 303)):
        answer = await http.post("/channels/cursor_1", data=named, headers={"origin": origin})
        assert answer.status_code == status
    await http.post("/logout", headers={"origin": "http://127.0.0.1:8765"})
    assert "ctxr_session" not in http.cookies
    assert (await http.get("/", headers=page)).status_code == 303


async def test_signing_in_leads_to_no_other_site(http: httpx.AsyncClient, make: Make) -> None:
    token = (await make("me"))["authorization"].removeprefix("Bearer ")
    for next_page in ("https://evil.example/", "//evil.example", "//[x", "/\\evil.example", "javascript:alert(1)"):
        answer = await http.post("/login", data={"token": token, "next": next_page})
        assert answer.headers["location"] == "/"


@pytest.mark.both_databases
async def test_a_browser_session_ends_when_its_token_is_revoked(
    http: httpx.AsyncClient, make: Make, orchestrator: Orchestrator
) -> None:
    await make("other")
    token = (await make("me"))["authorization"].removeprefix("Bearer ")
    assert "your session ended" not in (await http.get("/login")).text
    await http.post("/login", data={"token": token})
    assert (await http.get("/bo/channels")).status_code == 200
    await orchestrator.registry.write(lambda tx: revoke_token(tx, "me"))
    assert (await http.get("/bo/channels")).status_code == 401
    part = {"accept": "text/html", "hx-request": "true", "referer": "http://127.0.0.1:8765/flow?q=docker"}
    assert (await http.get("/flow?q=dock", headers=part)).headers["hx-redirect"] == "/login?next=/flow%3Fq%3Ddocker"
    page = (await http.get("/today", headers={"accept": "text/html"}, follow_redirects=True)).text
    assert "your session ended, or its token expired or was revoked" in page


@pytest.mark.both_databases
async def test_a_browser_session_is_valid_in_another_process_until_it_ends(orchestrator: Orchestrator) -> None:
    """Two servers of one registry, or one server restarted."""
    rules = AdmissionRules(is_open=False, secret="ours")

    async def signed_in(browser: httpx.AsyncClient) -> bool:
        return (await browser.get("/bo/channels")).status_code == 200

    async with client_of(application(orchestrator, rules=rules)) as here:
        code = sign_in_code("ours")
        await here.post("/login", data={"code": code})
        async with client_of(application(orchestrator, rules=rules)) as there:
            assert (await there.post("/login", data={"code": code})).status_code == 401, "a code is valid once"
            there.cookies = here.cookies
            assert await signed_in(there)
            key = there.cookies["ctxr_session"]
            await there.post("/logout", headers={"origin": "http://127.0.0.1:8765"})
            for other in (key, f"code:{code}"):
                here.cookies.set("ctxr_session", other)
                assert not await signed_in(here), "a copied key is invalid then"
            assert [one["person"] for one in await orchestrator.registry.read(lambda tx: list_people(tx, None))] == []
            here.cookies.clear()
            await here.post("/login", data={"code": sign_in_code("ours")})
            assert await signed_in(here)
            ended = await orchestrator.registry.write(lambda tx: revoke_token(tx, "(this user)"))
            assert ended["sessions"] == 1
            assert not await signed_in(here)


async def test_a_browser_session_lasts_twelve_hours(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client_of(application(orchestrator, rules=AdmissionRules(is_open=False, secret="ours"))) as browser:
        await browser.post("/login", data={"code": sign_in_code("ours")})
        for hours, status in ((11.9, 200), (12.1, 401)):
            later = now() + timedelta(hours=hours)
            monkeypatch.setattr("registry.storage.safety.page_sessions.now", lambda at=later: at)
            assert (await browser.get("/bo/channels")).status_code == status


async def test_a_browser_signs_in_to_a_read_only_registry(
    orchestrator: Orchestrator, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await make("me"))["authorization"].removeprefix("Bearer ")
    orchestrator.registry.is_read_only = True
    async with client_of(application(orchestrator, rules=AdmissionRules(is_open=False, secret="ours"))) as browser:
        for shown in ({"token": token}, {"code": sign_in_code("ours")}):
            await browser.post("/login", data=shown)
            assert (await browser.get("/bo/channels")).status_code == 200
            await browser.post("/logout", headers={"origin": "http://127.0.0.1:8765"})
            assert (await browser.get("/bo/channels")).status_code == 401
        monkeypatch.setattr("backoffice.admission.SESSION_S", 0)
        await browser.post("/login", data={"token": token})
        assert (await browser.get("/bo/channels")).status_code == 401


async def test_a_secret_keeps_other_users_of_this_machine_out(orchestrator: Orchestrator) -> None:
    async with client_of(application(orchestrator, rules=AdmissionRules(is_open=False, secret="ours"))) as http:
        assert (await http.get("/bo/channels")).status_code == 401
        shown = {"authorization": "Bearer ours"}
        assert (await http.get("/settings", headers=shown)).status_code == 200
        code = sign_in_code("ours")
        assert code in (await http.get(f"/login?code={code}")).text
        assert (await http.post("/login", data={"code": code})).status_code == 303
        assert (await http.get("/")).status_code == 200
        http.cookies.clear()
        for wrong in (code, sign_in_code("guessed"), code.replace("1", "2"), "nonsense", "1.x.y"):
            assert (await http.post("/login", data={"code": wrong})).status_code == 401
