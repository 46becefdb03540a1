"""A registry whose numbers come in steps, as those of one node of several do: nothing counts on the next one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psycopg
import pytest
from mcp import Client
from psycopg.sql import SQL, Identifier

from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from registry.registry import Registry
from registry.storage.exchange import arrivals
from registry.storage.upkeep.copying import copy_registry
from tests.backoffice.conftest import Log
from tests.backoffice.event_stream import Open

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

STEP, NODE = 16, 3
NEVER_S = 1_000.0


@pytest.fixture
def stepping_url(empty_postgres_url: str) -> str:
    Registry(empty_postgres_url).close()
    with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
        for (name,) in connection.execute("SELECT sequencename FROM pg_sequences").fetchall():
            steps = SQL("ALTER SEQUENCE {} INCREMENT BY 16 START WITH 3 RESTART WITH 3")
            connection.execute(steps.format(Identifier(name)))
    return empty_postgres_url


@pytest.fixture
async def orchestrator(stepping_url: str) -> AsyncIterator[Orchestrator]:
    registry = Registry(stepping_url)
    yield Orchestrator(registry)
    registry.close()


def numbers(url: str) -> set[int]:
    """The remainders of all numbers that were given."""
    given = "SELECT number FROM {} UNION SELECT number FROM {} UNION SELECT number FROM {}"
    tables = map(Identifier, ("channel", "conversation", "execution"))
    with psycopg.connect(url) as connection:
        return {number % STEP for (number,) in connection.execute(SQL(given).format(*tables))}


async def test_what_is_stored_is_found_told_and_read(
    orchestrator: Orchestrator, http: httpx.AsyncClient, stepping_url: str
) -> None:
    async with Client(create_server(orchestrator.run)) as client:
        for channel, said in (("first", "The basket loses its items"), ("second", "The invoice has the wrong tax")):
            messages = [{"role": "user", "text": said}, {"role": "assistant", "text": f"Let us see: {said}"}]
            await client.call_tool("conversation_log", {"channel": channel, "messages": messages})
            again = await client.call_tool("conversation_log", {"channel": channel, "messages": messages})
            assert again.structured_content
            assert again.structured_content["result"]["new_count"] == 0
        found = await client.call_tool("extract", {"channel": "first", "query": {"text": "basket"}})
        assert found.structured_content
        assert "basket" in found.structured_content["result"]["messages"][0]["text"]
    listed = (await http.get("/bo/conversations", params={"limit": 3})).json()
    rest = (await http.get("/bo/conversations", params={"cursor": listed["next_cursor"]})).json()
    assert len({item["id"] for item in [*listed["items"], *rest["items"]]}) == 4
    assert numbers(stepping_url) == {NODE}


async def test_the_feed_of_changes_holds_nothing_back(http: httpx.AsyncClient, log: Log) -> None:
    await log("c", "one", "two")
    first = (await http.get("/bo/changes")).json()
    await log("c", "three", start="2025-09-29T15:00")
    second = (await http.get("/bo/changes", params={"after": first["place"]})).json()
    assert [[item["text"] for item in page["items"]] for page in (first, second)] == [["one", "two"], ["three"]]


async def test_a_number_that_another_transaction_holds_is_waited_for(
    http: httpx.AsyncClient, log: Log, stepping_url: str
) -> None:
    await log("c", "one")
    with psycopg.connect(stepping_url) as another:
        another.execute("SELECT nextval('conversation_number_seq')")
        await log("c", "two", start="2025-09-29T15:00")
        page = (await http.get("/bo/changes")).json()
    assert [item["text"] for item in page["items"]] == ["one"]


async def test_a_listener_is_told_and_then_has_all(log: Log, listening: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "BUSY_S", 0.0)
    monkeypatch.setattr(arrivals, "NET_S", NEVER_S)
    async with listening() as stream:
        for number in range(4):
            await log("c", f"Message {number}", start=f"2025-09-29T15:0{number}")
            assert (await stream.next())[2]["text"] == f"Message {number}"
            assert (await stream.next())[0] == "execution"


async def test_a_copy_goes_on_in_the_steps_of_its_own_node(
    log: Log, stepping_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    other = Registry(sqlite_url)
    for channel in ("a", "b", "c"):
        await other.save_conversation(channel, [{"role": "user", "text": channel}], "cursor")
    other.close()
    Registry(stepping_url).close()
    with psycopg.connect(stepping_url, autocommit=True) as connection:
        connection.execute("DELETE FROM channel")
    copy_registry(sqlite_url, stepping_url)
    copied = Registry(stepping_url)
    await copied.save_conversation("d", [{"role": "user", "text": "d"}], "cursor")
    copied.close()
    with psycopg.connect(stepping_url) as connection:
        held = connection.execute("SELECT number FROM conversation ORDER BY number").fetchall()
    assert [number for (number,) in held] == [1, 2, 3, NODE + STEP]
