"""Test restricted tokens: every answer is the same as if the other channels did not exist."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from backoffice.pages.routes import ROUTERS
from cli.running.serve import build_app
from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.domain import new_id, parse_time
from registry.settings import Settings
from registry.storage.exchange.change_feed import FeedPosition, Listener, UpdatedChannels
from registry.storage.safety.tokens import create_token
from tests.backoffice.application import with_known_routes

pytestmark = pytest.mark.anyio

WORDS = ("login", "cache", "token", "fibonacci", "memoize", "sign-in", "latency", "queue", "worker", "로그인", "캐시")
START = "2025-09-{:02}T10:{:02}:00Z"


BY_NAME = Access("a", Level.ADMIN, ("a_*",))
BY_OWNER = Access("a", Level.WRITE, owner="a")
COUNTING = (
    *("/", "/insights"),
    *("/bo/channels", "/bo/usage", "/bo/ao/statistics", "/bo/conversations", "/bo/extracts"),
)


@dataclass
class World:
    """A registry of two people: `ids` and `runs` by person."""

    app: FastAPI
    http: httpx.AsyncClient
    access: Access
    ids: dict[str, list[str]] = field(default_factory=lambda: {"a": [], "b": []})
    runs: dict[str, list[str]] = field(default_factory=lambda: {"a": [], "b": []})
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def orchestrator(self) -> Orchestrator:
        orchestrator: Orchestrator = self.app.state.orchestrator
        return orchestrator

    async def ask(self, method: str, path: str, **given: Any) -> str:
        """Return the status and body of an answer to A's token, without values that differ each time."""
        headers = {**self.headers, **given.pop("headers", {})}
        answer = await self.http.request(method, path, headers=headers, **given)
        is_json = "json" in answer.headers.get("content-type", "")
        text = _ordered(answer.json()) if is_json else answer.text
        return f"{answer.status_code} {_bare(text)}"

    async def rpc(self, method: str, **params: Any) -> str:
        accept = {"accept": "application/json, text/event-stream"}
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.ask("POST", "/mcp", json=call, headers=accept)


_ID = re.compile(r"\b(conv|ext|exec|brief|snap|tok)_[0-9a-z]{16}\b")
_TIMES = re.compile(r"20[23]\d-\d\d-\d\d[T ]\d\d:\d\d(:[\d.]+)?(Z|\+00:00)?")
_MEASURES = r"duration_ms|last_accessed|mean_ms|p\d\d_ms|at|start|bucket_s|next_cursor|place|registry|from|to"
_FIGURES = re.compile(rf'"({_MEASURES})":\s*("[^"]*"|[\d.]+|null)')
_CURSORS = re.compile(r"((cursor|after|before)=|data-place=\")[\w%.-]+")
_MEASURED = re.compile(r"[\d.,]+\s*(ms|s)\b|20\d\d-\d\d-\d\dT\d\d%3A\d\d%3A[\d.]+Z|(?<=width=\")\d+")
_RUNS = re.compile(r'(?:<li class="run".*?</li>\s*)+', re.DOTALL)
"""Runs are ordered by duration, which varies."""


def _ordered(value: object) -> str:
    """Return JSON with sorted keys; PostgreSQL keeps another order than SQLite."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _bare(text: str) -> str:
    for pattern, instead in (
        (_ID, r"\1_"),
        (_TIMES, "TIME"),
        (_FIGURES, r'"\1": 0'),
        (_CURSORS, r"\1"),
        (_MEASURED, "TOOK"),
    ):
        text = pattern.sub(instead, text.replace("\\u003d", "="))
    return _RUNS.sub(lambda runs: "\n".join(sorted(re.split(r"(?<=</li>)\s*", runs[0]))), text)


class People:
    """The messages of A and B, of the same words except B's canaries."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.canaries: list[str] = []
        self.of_b: dict[str, str] = {}
        """A canary of each kind."""
        self.conversations = list(self._made())

    def _canary(self, of: str) -> str:
        word = f"zq{of}{self._random.randrange(26**6):06d}"
        self.canaries.append(word)
        self.of_b[of] = f"b_{word}" if of == "channel" else word
        return word

    def _said(self) -> str:
        return " ".join(self._random.choices(WORDS, k=self._random.randint(3, 12)))

    def _made(self) -> Iterator[dict[str, Any]]:
        for number in range(self._random.randint(8, 14)):
            is_b = number % 2 == 1
            mark = self._canary if is_b else f"my{{}}{number}".format
            name = f"b_{mark('channel')}" if is_b else f"a_session_{number}"
            day = self._random.randint(1, 28)
            texts = [self._said() + (f" {mark('text')}" if is_b else "") for _ in range(self._random.randint(1, 6))]
            yield {
                "is_b": is_b,
                "channel": name,
                "source": mark("source") if is_b else "cursor",
                "messages": [
                    {"role": "assistant" if i % 2 else "user", "text": text, "timestamp": START.format(day, i)}
                    for i, text in enumerate(texts)
                ],
                "metadata": {"title": f"{self._said()} {mark('title')}", "project": f"/home/us/{mark('project')}"},
                "names": {"nickname": mark("nickname"), "tags": [mark("tag"), "shared"]},
            }


@asynccontextmanager
async def world(
    url: str, home: Path, people: People, *, with_b: bool, access: Access = BY_NAME
) -> AsyncIterator[World]:
    app = with_known_routes(lambda: build_app(Settings(home=home, database_url=url)))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as http,
    ):
        here = World(app, http, access)
        for one in people.conversations:
            if one["is_b"] and not with_b:
                continue
            kept = {name: one[name] for name in ("channel", "source", "messages", "metadata")}
            by = (
                replace(access, name="b", owner="b")
                if access.owner and one["is_b"]
                else access
                if access.owner
                else None
            )
            done = await here.orchestrator.run({"operation": "conversation_log", **kept}, access=by)
            assert done["success"], done
            here.ids["b" if one["is_b"] else "a"] += done["stored_ids"]
            named = {"operation": "tag", "channel": one["channel"], "query": one["names"]}
            assert (await here.orchestrator.run(named))["success"]
            run = new_id("exec")
            here.runs["b" if one["is_b"] else "a"].append(run)
            asked = {"operation": "extract", "channel": one["channel"], "query": {"text": one["messages"][0]["text"]}}
            await here.orchestrator.run(asked, None, run)
        made = await here.orchestrator.registry.write(lambda tx: create_token(tx, "a", access.level, access.channels))
        here.headers = {"authorization": f"Bearer {made.secret}"}
        yield here


def _values(here: World, theirs: World, people: People) -> dict[str, list[str]]:
    """Return values for each parameter of an address: A's own ones, and those that only B has."""
    b = people.of_b
    return {
        "channel": ["a_session_0", b["channel"], b["nickname"]],
        "id": [here.ids["a"][0], theirs.ids["b"][0]],
        "execution_id": [here.runs["a"][0], theirs.runs["b"][0]],
        "kind": ["project", "tag"],
        "name": ["none.zip"],
    }


def _addresses(here: World, values: dict[str, list[str]]) -> Iterator[str]:
    """Yield every address that can be read."""
    api = (path for path, operations in here.app.openapi()["paths"].items() if "get" in operations)
    pages = (route for page in ROUTERS for route in page.router.routes if isinstance(route, APIRoute))
    paths = [*api, *(route.path for route in pages if "GET" in (route.methods or ())), "/docs", "/openapi.json"]
    assert len(paths) > 25
    for path in (path.replace(":path", "") for path in paths if path != "/bo/events"):
        names = re.findall(r"{(\w+)}", path)
        for value in values[names[0]] if names else [""]:
            yield path.replace(f"{{{names[0]}}}", value) if names else path


def _searches(people: People) -> Iterator[str]:
    """Yield every list and search, filtered by words of A and B, and by those of B alone."""
    b = people.of_b
    for words in ("login", "lgoin", "tag:shared", b["text"][:-1], b["title"]):
        for path in ("/bo/search", "/bo/channels", "/bo/conversations"):
            yield f"{path}?q={words}"
    for words in ("lgoin", b["text"]):
        yield f"/?q={words}"
        yield f"/channels/a_session_0?q={words}"
    for name in ("source", "project", "tag", "channel"):
        for path in ("/bo/channels", "/bo/conversations", "/bo/search?q=login&", "/bo/extracts", "/bo/ao/executions"):
            yield f"{path}{'' if '?' in path else '?'}{name}={b[name]}"
    yield "/bo/conversations?limit=3&include_deleted=true"
    yield "/bo/ao/statistics?bucket=day"


def _calls(here: World, values: dict[str, list[str]], people: People) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every tool call for values of A and of B."""
    b = people.of_b
    for words in ("login", "continue the fibonacci chat", "lgoin", b["text"], b["nickname"]):
        yield "extract", {"query": {"text": words, "also": ["cache", b["text"]]}}
        yield "search_sessions", {"query": words, "project": "all"}
    yield "search_sessions", {"query": "login", "project": b["project"]}
    for session in (*values["channel"], "#1", "#9", b["channel"][:8], b["nickname"][:-1]):
        yield "fetch_session_by_id", {"session_id": session}
        yield "export_session", {"session_id": session}
        yield "extract", {"channel": session}
    for session in values["channel"]:
        yield "search_sessions", {"query": "login", "project": "all", "current_session_id": session}
    for narrowed in ({}, {"project": b["project"]}, {"tag": b["tag"]}, {"tag": "shared"}, {"source": b["source"]}):
        yield "list_sessions", {"project": "all", **narrowed}
    for id_ in values["id"]:
        yield "fetch_session_by_id", {"session_id": "a_session_0", "message_id": id_}


def _runs(values: dict[str, list[str]], people: People) -> Iterator[dict[str, Any]]:
    """Yield every operation without a tool, for values of A and of B."""
    b = people.of_b
    yield BRIEFING
    for kind in ("session", "tag", "source", "project"):
        for begun in ("", "zq", "my", b[kind if kind in b else "nickname"][:-1]):
            yield {"operation": "complete", "query": {"kind": kind, "text": begun}}
    for session in values["channel"]:
        yield {"operation": "resume", "query": {"session_id": session, "in": "codex", "dry_run": True}}
        yield {"operation": "blame", "query": {"session_id": session}}
    for folder in (f"/home/us/{b['project']}", "/home/us/my{}0"):
        yield {"operation": "note", "query": {"folder": folder, "session_id": values["channel"][0]}}
        yield {"operation": "blame", "query": {"file": f"{folder}/login.py:3", "folder": folder}}
    yield {"operation": "list_backups", "query": {}}


def _forms(theirs: World, people: People) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the forms of pages for B's values."""
    b = people.of_b
    for path in ("/pins", "/deletions", "/removals", "/restorations", f"/channels/{b['channel']}"):
        yield path, {"channel": b["channel"], "title": "mine"}
    yield "/selections", {"channel": b["channel"], "do": "tag", "tag": "mine"}
    yield "/views", {"name": "mine", "address": f"/?tag={b['tag']}"}
    yield "/settings/forget", {"channel": b["channel"], "dry_run": "true"}
    yield "/flow/try", {"operation": "extract", "text": b["text"]}
    for id_ in theirs.ids["b"][:1]:
        yield f"/messages/{id_}/deletion", {}
        yield f"/messages/{id_}/restoration", {}
    for step in ("again", "expected", "rating"):
        yield f"/flow/{theirs.runs['b'][0]}/{step}", {"channel": b["channel"], "useful": "true"}


async def _answers(here: World, theirs: World, people: People) -> AsyncIterator[tuple[str, str]]:
    """Yield each request of A and its answer; `theirs` is the registry whose values of B are asked for.

    A token for some channels asks every address; an owner only those that count, as all pass the token on alike.
    """
    values = _values(here, theirs, people)
    asked = [path for path in _addresses(here, values) if here.access.channels or path.partition("?")[0] in COUNTING]
    for path in [*asked, *_searches(people)]:
        accept = "application/json" if path.startswith("/bo/") else "text/html"
        yield f"GET {path}", await here.ask("GET", path, headers={"accept": accept})
    for tool, arguments in _calls(here, values, people):
        yield f"{tool} {arguments}", await here.rpc("tools/call", name=tool, arguments=arguments)
    for part in ("", *(f"/{channel}{what}" for channel in values["channel"] for what in ("", "/summary"))):
        uri = f"registry://channels{part}"
        yield uri, await here.rpc("resources/read", uri=uri)
    for id_ in theirs.ids["b"][:2]:
        yield f"DELETE {id_}", await here.ask("DELETE", f"/bo/conversations/{id_}")
        yield f"restore {id_}", await here.ask("POST", f"/bo/conversations/{id_}/restore")
    named = people.of_b["channel"]
    taken = (
        named if here.access.channels else "a_new"
    )  # A's messages for a name that B has are stored under another one
    log = {"channel": taken, "messages": [{"role": "user", "text": "mine"}]}
    yield "log", await here.ask("POST", "/bo/conversations", json=log)
    yield f"delete {named}", await here.ask("DELETE", f"/bo/channels/{named}")
    yield f"tag {named}", await here.ask("PATCH", f"/bo/channels/{named}", json={"title": "mine"})
    for run in _runs(values, people):
        yield f"run {run}", await here.ask("POST", "/bo/ao/run", json=run)
    for path, form in _forms(theirs, people):
        yield f"POST {path} {form}", await here.ask("POST", path, data=form)
    answers = {"items": [{"channel": named, "name": "title", "value": "mine", "done_at": START.format(2, 0)}]}
    yield f"edits {answers}", await here.ask("POST", "/bo/edits", json=answers)
    yield "rating", await here.ask("POST", f"/bo/ao/executions/{theirs.runs['b'][0]}/rating", json={"rating": 1})
    for method in ("resources/list", "resources/templates/list", "prompts/list", "tools/list"):
        yield method, await here.rpc(method)
    for prompt, arguments in PROMPTS.items():
        yield f"prompt {prompt}", await here.rpc("prompts/get", name=prompt, arguments=arguments)
    for reference in ({"type": "ref/prompt", "name": "load"}, {"type": "ref/resource", "uri": CHANNEL_TEMPLATE}):
        for name, begun in (("nickname", "zq"), ("nickname", "my"), ("channel", "b_"), ("channel", "")):
            argument = {"name": name, "value": begun}
            yield (
                f"complete {reference} {argument}",
                await here.rpc("completion/complete", ref=reference, argument=argument),
            )
    seen = here.orchestrator.registry.seen_by(here.access)
    since = parse_time(START.format(1, 0))
    yield "subscriptions", str(sorted(await seen.read(lambda tx: UpdatedChannels(tx, since).names(tx))))
    events = await seen.read(Listener(FeedPosition()).news)
    yield "after all events", str([(event.kind, _bare(_ordered(event.item))) for event in events])
    for path in ("/bo/ao/executions?limit=1000", "/bo/extracts?limit=1000", "/bo/ao/statistics", "/bo/channels"):
        yield f"after all {path}", await here.ask("GET", path)


CHANNEL_TEMPLATE = "registry://channels/{channel}"
PROMPTS = {
    "continue": {"text": "login"},
    "recent": {},
    "search": {"query": "login"},
    "load": {"nickname": "x"},
    "tag": {"nickname": "x", "tags": "y"},
    "briefing": {"date": "2025-09-14"},
}
BRIEFING = {"operation": "daily_briefing", "query": {"date": "2025-09-14"}}


@pytest.mark.timeout(480)
async def test_answers_to_a_token_for_some_channels_are_those_of_a_registry_without_the_others(
    sqlite_template: Path, postgres_url: str, tmp_path: Path
) -> None:
    await assert_same_without_b(postgres_url, sqlite_template, tmp_path, BY_NAME)


async def test_answers_to_an_owner_are_those_of_a_registry_without_other_owners(
    sqlite_url: str, sqlite_template: Path, tmp_path: Path
) -> None:
    await assert_same_without_b(sqlite_url, sqlite_template, tmp_path, BY_OWNER)


async def assert_same_without_b(url: str, sqlite_template: Path, tmp_path: Path, access: Access) -> None:
    """Compare A's answers from a registry with B to those from one without B.

    Read to its end, A's feed of changes has no more news either.
    """
    people = People(seed=7)
    alone = f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'alone.db')}"
    async with (
        world(url, tmp_path / "full", people, with_b=True, access=access) as here,
        world(alone, tmp_path / "alone", people, with_b=False, access=access) as without_b,
    ):
        expected = [answer async for _, answer in _answers(without_b, here, people)]
        answers = {asked: answer async for asked, answer in _answers(here, here, people)}
        pairs = zip(answers.items(), expected, strict=True)
        other = {asked: (answer, without) for (asked, answer), without in pairs if answer != without}
        assert other == {}
        assert_nothing_of_b(answers, people)
        changes = (await here.http.get("/bo/changes", headers=here.headers)).json()
        again = await here.http.get("/bo/changes", params={"after": changes["place"]}, headers=here.headers)
        about = {name: changes[name] for name in ("place", "registry", "owner")}
        assert again.json() == {"items": [], **about, "is_all": True, "starts_over": False}


def assert_nothing_of_b(answers: dict[str, str], people: People) -> None:
    """Check that no answer holds a canary of B, and that answers are complete."""
    for asked, answer in answers.items():
        assert "after all" in asked or not [word for word in people.canaries if word in answer and word not in asked]
    assert sum("login" in answer for answer in answers.values()) > 20
    assert {asked: answer[:200] for asked, answer in answers.items() if answer.startswith("5")} == {}
    pages = {asked: answer for asked, answer in answers.items() if "<html" in answer}
    assert [asked for asked in pages if asked.startswith("GET /insights")]
    assert [asked for asked, answer in pages.items() if not answer.rstrip().endswith("</html>")] == []


async def test_a_token_of_scope_metrics_opens_only_the_metrics(sqlite_url: str, tmp_path: Path) -> None:
    people = People(seed=7)
    async with world(sqlite_url, tmp_path / "here", people, with_b=True) as here:
        made = await here.orchestrator.registry.write(lambda tx: create_token(tx, "prometheus", Level.METRICS))
        here.headers = {"authorization": f"Bearer {made.secret}"}
        answers = {asked: answer async for asked, answer in _answers(here, here, people)}
        events = await here.http.get("/bo/events", headers=here.headers)
        signed_in = await here.http.post("/login", data={"token": made.secret})
    opened = {asked for asked, answer in answers.items() if not answer.startswith(("401 ", "303 "))}
    assert opened == {"GET /metrics", "GET /health", "GET /ready", "subscriptions", "after all events"}
    assert "ctxr_operations_total" in answers["GET /metrics"]
    assert (events.status_code, signed_in.status_code) == (401, 401)
