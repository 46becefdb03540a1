"""Test every address with a restricted token: it answers, and neither shows nor changes what belongs to others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from fastapi import FastAPI

from registry.access import Level
from tests.backoffice.conftest import Hire

pytestmark = pytest.mark.anyio

THEIRS = "wombat"  # in all that lee stores, and in no request
ASKED = {"q": "report", "words": "wo", "text": "report", "channel": "lee_1", "project": "/srv/lee", "date": "today"}
ENDLESS = "/bo/events"


def addresses(app: FastAPI, named: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each method and path of the application, with `named` as the values of its parameters."""
    for route in app.routes:
        for one in getattr(route, "effective_route_contexts", lambda route=route: [route])():
            methods = getattr(one, "methods", None) or getattr(getattr(one, "route", None), "methods", None) or ()
            path = re.sub(r"\{(\w+)(:\w+)?\}", lambda found: named[found[1]], one.path)
            yield from ((method, path) for method in sorted(methods) if path != ENDLESS)


async def test_a_restricted_token_gets_complete_answers_without_a_word_of_others(app: FastAPI, hire: Hire) -> None:
    lee = await hire("lee")
    [said] = (await lee.log("lee_1", f"the {THEIRS} report", title=f"A {THEIRS}", project="/srv/lee"))["stored_ids"]
    await lee.run("tag", "lee_1", nickname=THEIRS, tags=[THEIRS])
    await lee.run("extract", "lee_1", text=f"{THEIRS} report")
    await lee.ask("POST", "/bo/ao/run", json={"operation": "remember", "query": {"text": f"the {THEIRS} bites"}})
    run = (await lee.ask("GET", "/bo/ao/executions?operation=extract")).json()["items"][0]["id"]
    await lee.ask("POST", f"/flow/{run}/expected", data={"message": said})
    await lee.ask("POST", "/pins", data={"channel": "lee_1"})
    await lee.ask("POST", "/views", data={"name": THEIRS, "query": f"q={THEIRS}"})
    await (await hire("boss", Level.ADMIN)).ask("POST", "/today", data={"date": "today"})
    named = {"channel": "lee_1", "id": said, "execution_id": run, "kind": "tag", "number": "0"}
    named |= {"case_id": "1", "view_id": "1", "name": "codex"}
    before = (await lee.ask("GET", "/bo/channels/lee_1")).json()
    limits: dict[Level, dict[str, Any]] = {
        Level.WRITE: {},
        Level.ADMIN: {"channels": ["kim*"], "projects": ["/srv/kim"]},
    }
    for level, limit in limits.items():
        kim = await hire(f"kim-{level}", level, owner="kim", **limit)
        for method, path in addresses(app, named):
            ways: list[dict[str, Any]] = [{"data": ASKED}, {"json": ASKED}]
            if method == "GET":
                ways = [{}, {"params": ASKED}]
            for way in ways:
                answer = await kim.ask(method, path, **way)
                asked = f"{method} {path} {[*way]} with {level}"
                assert answer.status_code < 500, (asked, answer.text)
                assert THEIRS not in answer.text, asked
                assert answer.text.rstrip().endswith("</html>") or "<html" not in answer.text, asked
    assert (await lee.ask("GET", "/bo/channels/lee_1")).json() == before
