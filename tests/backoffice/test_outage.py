"""Test a database that is unavailable for a while: answers to probes, and the server's log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from mcp.types import JSONRPCError, jsonrpc_message_adapter
from psycopg.sql import SQL, Identifier

from backoffice.admission import AdmissionRules
from orchestrator.service import Orchestrator
from orchestrator.views import events
from registry.access import Access, Level
from registry.errors import StorageError
from registry.storage.exchange import change_feed
from registry.storage.safety.tokens import create_token
from tests.backoffice.application import application, client_of
from tests.backoffice.conftest import Log, problem_of
from tests.backoffice.event_stream import Open

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]
on_a_server = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
"""An SQLite file that is open stays readable after it is moved."""

LISTENERS = 3


@contextmanager
def unreachable_database(url: str) -> Iterator[None]:
    """Make the database unreachable."""
    if url.startswith("sqlite"):
        file = Path(url.removeprefix("sqlite:///"))
        elsewhere = file.rename(file.with_suffix(".away"))
        yield
        elsewhere.rename(file)
        return
    name = psycopg.conninfo.conninfo_to_dict(url)["dbname"]
    allow = SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(url, dbname="postgres", autocommit=True) as connection:
        connection.execute(allow.format(Identifier(str(name)), SQL("false")))
        connection.execute(ended, [name])
        yield
        connection.execute(allow.format(Identifier(str(name)), SQL("true")))


def log_subjects(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message.partition(":")[0] for record in caplog.records]


async def test_during_an_outage_ready_answers_503_and_health_200(http: httpx.AsyncClient, database_url: str) -> None:
    assert (await http.get("/ready")).json() == {"status": "ready"}
    with unreachable_database(database_url):
        problem = problem_of(await http.get("/ready"), 503)
        assert (await http.get("/health")).json() == {"status": "ok"}
    assert (await http.get("/ready")).json() == {"status": "ready"}
    assert problem["code"] == "STORAGE_ERROR"


async def test_an_anonymous_caller_does_not_see_where_the_database_is(
    http: httpx.AsyncClient, database_url: str
) -> None:
    await http.get("/ready")
    with unreachable_database(database_url):
        problem = problem_of(await http.get("/ready"), 503)
    place = database_url.partition("host=")[2] or database_url.removeprefix("sqlite:///")
    assert place not in " ".join(problem.values())


@on_a_server
async def test_an_unknown_caller_on_another_machine_does_not_see_where_the_database_is(
    orchestrator: Orchestrator, database_url: str
) -> None:
    place = database_url.partition("host=")[2]
    for is_open in (True, False):
        app = application(orchestrator, rules=AdmissionRules(is_open=is_open))
        async with client_of(app) as http:
            with unreachable_database(database_url):
                problem = problem_of(await http.get("/bo/channels", headers={"Authorization": "Bearer guessed"}), 500)
        assert (problem["code"], place in problem["details"]) == ("STORAGE_ERROR", is_open)


async def test_the_reason_why_tokens_cannot_be_checked_is_logged_once(
    orchestrator: Orchestrator, caplog: pytest.LogCaptureFixture
) -> None:
    async with client_of(application(orchestrator, rules=AdmissionRules(is_open=False))) as http:
        made = await orchestrator.registry.write(lambda tx: create_token(tx, "mine", Level.READ))
        shown = {"Authorization": f"Bearer {made.secret}"}
        async with without_tokens(orchestrator):
            for _ in range(2):
                problem = problem_of(await http.get("/bo/channels", headers=shown), 500)
                assert problem["details"] == "The server's log says why."
        assert (await http.get("/bo/channels", headers=shown)).status_code == 200
    assert log_subjects(caplog) == [
        "Tokens cannot be checked, because the registry does not answer",
        "Tokens can be checked again",
    ]
    assert "token" in caplog.messages[0]


async def test_an_unreachable_token_issuer_is_logged_once(
    orchestrator: Orchestrator, caplog: pytest.LogCaptureFixture
) -> None:
    async def verify(token: str) -> Access | None:
        if token == "away":
            raise StorageError("The issuer cannot be reached.", "no route")
        return Access("oauth:me", Level.READ) if token == "good" else None

    async with client_of(application(orchestrator, rules=AdmissionRules(is_open=False, verify=verify))) as http:
        seen = [
            (await http.get("/bo/channels", headers={"Authorization": f"Bearer {token}"})).status_code
            for token in ("away", "guessed", "away", "good")
        ]
    assert seen == [500, 401, 500, 200]
    assert caplog.messages == [
        "The issuer of tokens does not answer: The issuer cannot be reached. no route",
        "The issuer of tokens answers again",
    ]


@asynccontextmanager
async def without_tokens(orchestrator: Orchestrator) -> AsyncIterator[None]:
    """Keep the database reachable, but let its table of tokens fail."""
    await orchestrator.registry.write(lambda tx: tx.exec_driver_sql("ALTER TABLE token RENAME TO hidden"))
    yield
    await orchestrator.registry.write(lambda tx: tx.exec_driver_sql("ALTER TABLE hidden RENAME TO token"))


async def test_an_address_that_only_begins_like_that_of_mcp_is_answered_as_json(
    http: httpx.AsyncClient, orchestrator: Orchestrator
) -> None:
    for path, is_mcp in [("/mcp", True), ("/mcp/x", True), ("/mcpx", False)]:
        async with without_tokens(orchestrator):
            answer = (await http.post(path, json={})).json()
        assert ("jsonrpc" in answer) == is_mcp


@on_a_server
async def test_an_mcp_client_gets_the_reason_of_an_outage(http: httpx.AsyncClient, database_url: str) -> None:
    with unreachable_database(database_url):
        answer = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert answer.status_code == 500
    told = jsonrpc_message_adapter.validate_json(answer.content, by_name=False)
    assert isinstance(told, JSONRPCError)
    assert told.error.message.startswith("STORAGE_ERROR: Could not read the registry. ")


async def test_a_known_metrics_token_still_reads_the_metrics_during_an_outage(
    http: httpx.AsyncClient, orchestrator: Orchestrator, database_url: str
) -> None:
    shown = {}
    for name in ("watching", "new"):
        made = await orchestrator.registry.write(lambda tx, name=name: create_token(tx, name, Level.METRICS))  # type: ignore[misc]
        shown[name] = {"Authorization": f"Bearer {made.secret}"}
    assert (await http.get("/metrics", headers=shown["watching"])).status_code == 200
    with unreachable_database(database_url):
        assert (await http.get("/ready")).status_code == 503
        assert (await http.get("/bo/channels", headers=shown["watching"])).status_code == 500
        assert (await http.get("/metrics", headers=shown["new"])).status_code == 500
        assert (await http.get("/metrics")).status_code == 500
        figures = (await http.get("/metrics", headers=shown["watching"])).text
    assert 'ctxr_http_requests_total{route="/ready",status="503"} 1.0' in figures


async def test_during_an_outage_no_one_reads_the_metrics_by_another_persons_sign_in(
    http: httpx.AsyncClient, orchestrator: Orchestrator, database_url: str
) -> None:
    made = await orchestrator.registry.write(lambda tx: create_token(tx, "browser", Level.ADMIN))
    await http.post("/login", data={"token": made.secret})
    assert (await http.get("/metrics")).status_code == 200
    http.cookies.clear()
    with unreachable_database(database_url):
        assert (await http.get("/metrics")).status_code == 500


@on_a_server
async def test_an_outage_and_its_end_are_each_logged_once(
    log: Log,
    http: httpx.AsyncClient,
    listening: Open,
    database_url: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module, name in ((events, "RETRY_S"), (change_feed, "POLL_S")):
        monkeypatch.setattr(module, name, 0.01)
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(listening()) for _ in range(LISTENERS)]
        with unreachable_database(database_url):
            for _ in range(LISTENERS):
                assert (await http.get("/ready")).status_code == 503
        await log("c", "after the outage")
        for stream in streams:
            assert (await stream.next())[2]["text"] == "after the outage"
    assert log_subjects(caplog) == ["The registry's database does not answer", "The registry's database answers again"]


@contextmanager
def read_only_database(url: str) -> Iterator[None]:
    """Make the database refuse writes, as a replica or a former primary does."""
    name = Identifier(str(psycopg.conninfo.conninfo_to_dict(url)["dbname"]))
    ended = (
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
        connection.execute(ended)
        yield
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name))
        connection.execute(ended)


@on_a_server
async def test_a_write_during_a_failover_is_told_when_to_retry(
    http: httpx.AsyncClient, orchestrator: Orchestrator, database_url: str
) -> None:
    said = {"channel": "c", "messages": [{"role": "user", "text": "hello"}]}
    made = await orchestrator.registry.write(lambda tx: create_token(tx, "kim", Level.WRITE))
    headers = {"Authorization": f"Bearer {made.secret}"}
    for outage in (unreachable_database, read_only_database):
        with outage(database_url):
            answer = await http.post("/bo/conversations", json=said, headers=headers)
            problem = problem_of(answer, 503)
            assert (problem["code"], answer.headers["Retry-After"]) == ("STORAGE_ERROR", "5")
            listed = await http.get("/bo/channels", headers=headers)
            assert (listed.status_code, "Retry-After" in listed.headers) == (
                500 if outage is unreachable_database else 200,
                False,
            )
    assert problem["message"] == "The registry cannot store anything at the moment."
    stored = await http.post("/bo/conversations", json=said, headers=headers)
    assert (stored.status_code, stored.json()["new_count"]) == (201, 1)
