"""Fixtures: the backoffice in memory over an empty registry, on each database in turn."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from fastapi import FastAPI

from orchestrator.service import Orchestrator
from registry.access import Level
from registry.registry import Registry
from registry.storage.safety.tokens import create_token
from tests.backoffice.application import application, client_of
from tests.backoffice.event_stream import Open, Stream

Log = Callable[..., Awaitable[list[str]]]


@pytest.fixture
async def orchestrator(database_url: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(database_url)
    yield Orchestrator(registry)
    registry.close()


@pytest.fixture
def app(orchestrator: Orchestrator) -> FastAPI:
    return application(orchestrator)


@pytest.fixture
async def http(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


@pytest.fixture
def log(http: httpx.AsyncClient) -> Log:
    """Return a function that stores texts by the API, a second apart from 14:30:00, and returns their ids."""

    async def store(channel: str, *texts: str, start: str = "2025-09-29T14:30", **meta: Any) -> list[str]:
        messages = [
            {"role": "assistant" if i % 2 else "user", "text": text, "timestamp": f"{start}:{i:02}Z"}
            for i, text in enumerate(texts)
        ]
        answer = await http.post("/bo/conversations", json={"channel": channel, "messages": messages, "meta": meta})
        assert answer.status_code == 201, answer.text
        ids: list[str] = answer.json()["stored_ids"]
        return ids

    return store


class Person:
    """A person with a token, and their requests."""

    def __init__(self, http: httpx.AsyncClient, secret: str) -> None:
        self._http, self.headers = http, {"authorization": f"Bearer {secret}"}

    async def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        return await self._http.request(method, path, headers=self.headers, **given)

    async def log(self, channel: str, *texts: str, **meta: str) -> dict[str, Any]:
        messages = [{"role": "user", "text": text} for text in texts]
        answer = await self.ask(
            "POST", "/bo/conversations", json={"channel": channel, "messages": messages, "meta": meta}
        )
        assert answer.status_code == 201, answer.text
        logged: dict[str, Any] = answer.json()
        return logged

    async def sees(self) -> list[str]:
        return sorted(one["channel"] for one in (await self.ask("GET", "/bo/channels")).json()["items"])

    async def run(self, operation: str, channel: str, **query: Any) -> httpx.Response:
        return await self.ask("POST", "/bo/ao/run", json={"operation": operation, "channel": channel, "query": query})


Hire = Callable[..., Awaitable[Person]]


@pytest.fixture
def hire(http: httpx.AsyncClient, orchestrator: Orchestrator) -> Hire:
    """Return a function that gives a person a token."""

    async def hired(name: str, level: Level = Level.WRITE, **given: Any) -> Person:
        made = await orchestrator.registry.write(lambda tx: create_token(tx, name, level, **given))
        return Person(http, made.secret)

    return hired


@pytest.fixture
def listening(app: FastAPI) -> Open:
    """Return a function that opens the event stream: `async with listening() as stream`."""

    @asynccontextmanager
    async def connected(last_event_id: str | None = None, query: str = "") -> AsyncIterator[Stream]:
        stream = Stream(app, last_event_id, query=query)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stream.run)
                assert await stream.opened() == 200
                yield stream
                stream.leave()

    return connected


def problem_of(answer: httpx.Response, status: int = 400) -> dict[str, str]:
    """Return the error of an answer, after checking that it is a failure envelope and nothing else."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert (body.keys(), body["ok"], body["error"].keys()) == ({"ok", "error"}, False, {"code", "message", "details"})
    error: dict[str, str] = body["error"]
    return error
