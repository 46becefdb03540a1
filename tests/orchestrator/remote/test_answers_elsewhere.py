"""Test answers that are no registry's, or that refuse one message: nothing is lost or delayed."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import timedelta
from functools import partial

import anyio
import httpx
import pytest

from orchestrator.background import running
from orchestrator.remote import background_exchange
from orchestrator.remote.background_exchange import keep_exchanging, local_copy_note
from orchestrator.remote.client import RemoteRegistry, Unreachable
from orchestrator.service import Orchestrator
from registry.access import CHANNEL_REFUSED
from registry.domain import now
from registry.registry import Registry
from registry.settings import Settings
from registry.storage.exchange import remote
from registry.storage.exchange.remote import exchange_counts, resend_refused_messages
from tests.orchestrator.remote.laptops import URL, Laptops, Line, body_of, texts_by_channel

pytestmark = pytest.mark.anyio


def channel_refused() -> httpx.Response:
    error = {"code": "UNAUTHORIZED", "message": CHANNEL_REFUSED, "details": "token 'laptop' is for channels 'cursor_*'"}
    return httpx.Response(401, json={"ok": False, "error": error})


def proxy_error() -> httpx.Response:
    return httpx.Response(413, html="<html><h1>413 Request Entity Too Large</h1></html>")


@pytest.mark.parametrize(
    ("answer", "why"), [(channel_refused, CHANNEL_REFUSED), (proxy_error, "413 Request Entity Too Large")]
)
async def test_a_refused_message_delays_no_other_and_can_be_sent_again(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, answer: Callable[[], httpx.Response], why: str
) -> None:
    one, _ = laptops
    await one.log("diary", "Where is the key?", "Under the mat.")
    await one.log("basket", "Why does the basket lose items?")
    with line.answered_by(answer, lambda request: b'"diary"' in body_of(request)):
        done = await one.push()
    assert (done.sent, done.refused) == (1, 2)
    assert why in str(done.why)
    assert await texts_by_channel(elsewhere) == {"basket": ["Why does the basket lose items?"]}
    await one.orchestrator.registry.write(lambda tx: resend_refused_messages(tx, URL))
    assert (await one.push()).sent == 2
    assert (await texts_by_channel(elsewhere))["diary"] == ["Where is the key?", "Under the mat."]


async def test_messages_marked_to_be_sent_again_while_another_process_pushes_are_sent(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "SETTLED", timedelta(0))
    one, _ = laptops
    await one.log("diary", "Where is the key?")
    with line.answered_by(proxy_error, lambda request: b'"diary"' in body_of(request)):
        assert (await one.push()).refused == 1
    await one.log("basket", "Why does the basket lose items?")
    answering = line.handle_async_request

    async def meanwhile(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            await one.orchestrator.registry.write(lambda tx: resend_refused_messages(tx, URL))
        return await answering(request)

    with monkeypatch.context() as patch:
        patch.setattr(line, "handle_async_request", meanwhile)
        assert (await one.push()).sent == 1
    assert (await one.push()).sent == 1
    assert (await texts_by_channel(elsewhere))["diary"] == ["Where is the key?"]


async def test_messages_sent_alone_after_a_refusal_or_again_late_keep_their_places(
    laptops: Laptops, elsewhere: Orchestrator, line: Line
) -> None:
    one, _ = laptops
    refused = "x" * 500
    texts = ["Why does the basket lose items?", "continue", "It expires.", "continue", refused, "continue", "Done."]
    await one.log("basket", *texts)
    with line.answered_by(proxy_error, lambda request: b"xxxxx" in body_of(request)):
        assert (await one.push()).refused == 1
    assert await texts_by_channel(elsewhere) == {"basket": [text for text in texts if text != refused]}
    await one.orchestrator.registry.write(lambda tx: resend_refused_messages(tx, URL))
    assert (await one.push()).sent == 1
    assert await texts_by_channel(elsewhere) == {"basket": texts}


STRANGERS = {
    "another service": lambda: httpx.Response(404, json={"detail": "Not Found"}),
    "another service's envelope": lambda: httpx.Response(400, json={"error": {"code": "bad_request", "message": ""}}),
    "a longer address": lambda: httpx.Response(404, json={"error": {"code": "NOT_FOUND", "message": "No such page"}}),
    "a page to sign in": lambda: httpx.Response(200, html="<html>Welcome to the hotel</html>"),
    "another answer": lambda: httpx.Response(200, json=[1]),
    "a new address": lambda: httpx.Response(301, headers={"Location": "https://memory.example.org"}),
}


async def test_an_answer_of_another_service_refuses_nothing_for_good(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, subtests: pytest.Subtests
) -> None:
    one, _ = laptops
    await one.log("basket", "Why does the basket lose items?")
    for who, stranger in STRANGERS.items():
        for way in (one.push, one.pull) if who == "another answer" else (one.push,):
            with subtests.test(who):
                with line.answered_by(stranger), pytest.raises(Unreachable, match="is CTXR_REMOTE_URL right"):
                    await way()
                standing = await one.orchestrator.registry.read(lambda tx: exchange_counts(tx, URL))
                assert (standing["refused"], standing["waiting"], standing["answered_at"]) == (0, 1, None)
    assert (await one.push()).sent == 1
    assert await texts_by_channel(elsewhere) == {"basket": ["Why does the basket lose items?"]}


async def test_a_machine_with_a_read_only_token_pulls_without_growing_pauses(
    laptops: Laptops, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = laptops
    await one.log("basket", "Why does the basket lose items?")
    await two.log("phone", "And on the phone?")

    def read_only() -> httpx.Response:
        error = {"code": "UNAUTHORIZED", "message": "This token may not do that.", "details": "given scope read"}
        return httpx.Response(401, json={"error": error})

    answering, often, come = line.handle_async_request, anyio.Event(), anyio.Event()

    async def watched(request: httpx.Request) -> httpx.Response:
        answer = read_only() if b"phone" in body_of(request) else await answering(request)
        if line.requests.count("GET /bo/changes") == 15:
            often.set()
        if "GET /bo/channels/basket" in line.requests and request.url.path == "/bo/edits":
            come.set()
        return answer

    monkeypatch.setattr(line, "handle_async_request", watched)
    monkeypatch.setattr(background_exchange, "RemoteRegistry", partial(RemoteRegistry, transport=line))
    monkeypatch.setattr(background_exchange, "INTERVAL_S", 0.01)
    async with running(keep_exchanging(two.orchestrator, Settings(remote_url=URL))):
        with anyio.fail_after(60):
            await often.wait()  # takes minutes if the pauses grow
            await one.push()
            await come.wait()
    assert "basket" in await texts_by_channel(two.orchestrator)


async def test_an_exchange_continues_when_a_clock_that_was_a_day_ahead_is_corrected(
    laptops: Laptops, elsewhere: Orchestrator, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = laptops
    monkeypatch.setattr(background_exchange, "RemoteRegistry", partial(RemoteRegistry, transport=line))
    answering, arrived = line.handle_async_request, anyio.Event()

    async def watched(request: httpx.Request) -> httpx.Response:
        answer = await answering(request)
        if request.method == "POST":
            arrived.set()
        return answer

    monkeypatch.setattr(line, "handle_async_request", watched)
    with monkeypatch.context() as ahead, anyio.fail_after(60):
        for module in (background_exchange, remote):
            ahead.setattr(module, "now", lambda: now() + timedelta(days=1))
        await one.log("basket", "Why does the basket lose its items?")
        async with running(keep_exchanging(one.orchestrator, Settings(remote_url=URL))):
            await arrived.wait()
        await one.pull()
    assert await local_copy_note(one.orchestrator.registry, URL)
    await one.pull()  # finds nothing new
    assert await local_copy_note(one.orchestrator.registry, URL) is None
    arrived = anyio.Event()
    await one.log("phone", "And on the phone?")
    with anyio.fail_after(60):
        async with running(keep_exchanging(one.orchestrator, Settings(remote_url=URL))):
            await arrived.wait()
    assert (await texts_by_channel(elsewhere)).keys() == {"basket", "phone"}


async def test_huge_messages_are_sent_one_by_one(laptops: Laptops, elsewhere: Orchestrator, line: Line) -> None:
    one, two = laptops
    texts = [f"Log {at}: " + "line " * 60_000 for at in range(4)]
    await one.log("basket", *texts)
    await one.push()
    assert [path for path in line.requests if path.startswith("POST")] == ["POST /bo/conversations"] * 4
    line.requests.clear()
    assert (await two.pull()).received == 4
    assert line.requests.count("GET /bo/changes") == 4
    assert [await texts_by_channel(each) for each in (elsewhere, two.orchestrator)] == 2 * [{"basket": texts}]


async def test_messages_after_a_gap_in_the_numbers_are_sent_later(postgres_url: str) -> None:
    with closing(Registry(postgres_url)) as registry:
        keeper = Orchestrator(registry)
        await registry.write(lambda tx: tx.exec_driver_sql("SELECT nextval('conversation_number_seq')"))
        messages = [{"role": "user", "text": f"Log {at}: " + "line " * 60_000} for at in range(4)]
        given = {"operation": "conversation_log", "channel": "basket", "messages": messages}
        assert (await keeper.run(given))["success"]
        async with RemoteRegistry(URL, transport=Line(keeper)) as remote:
            changes = await remote.changes(0)
    assert (changes.items, changes.is_all) == ([], True)


class Packed(httpx.AsyncByteStream):
    """100 MB of spaces in a few kilobytes of gzip, with a count of the parts read."""

    def __init__(self) -> None:
        packing = zlib.compressobj(wbits=31)
        packed = b"".join([*(packing.compress(b" " * 10**6) for _ in range(100)), packing.flush()])
        self.parts = [packed[at : at + 4096] for at in range(0, len(packed), 4096)]
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            self.read += 1
            yield part


async def test_a_compressed_answer_is_unpacked_up_to_64_mib() -> None:
    packed = Packed()

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=packed)

    async with RemoteRegistry(URL, transport=httpx.MockTransport(answer)) as remote:
        with pytest.raises(Unreachable, match="answers with more than 64 MiB"):
            await remote.changes(0)
    assert packed.read < len(packed.parts)
