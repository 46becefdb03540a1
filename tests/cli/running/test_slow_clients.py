"""Test slow clients: one that sends byte by byte is cut off, one that keeps sending data is read to the end."""

from __future__ import annotations

import asyncio

import pytest
import uvicorn

from cli.running import slow_clients
from cli.running.slow_clients import PatientProtocol

pytestmark = pytest.mark.anyio


async def app(scope: dict[str, str], receive: object, send: object) -> None:
    if scope["path"] == "/busy":
        await asyncio.sleep(0.6)  # three windows
    while (await receive()).get("more_body"):  # type: ignore[operator]
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})  # type: ignore[operator]
    await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]


CASES = [
    (b"", b"HTTP/1.1 408"),
    (b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"HTTP/1.1 408"),
    (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nh~a~l~f", b"HTTP/1.1 408"),
    (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfull", b"HTTP/1.1 204"),
    (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 64\r\nConnection: close\r\n\r\n" + b"~".join([b"goes on "] * 8),
        b"HTTP/1.1 204",
    ),
    (
        b"POST /busy HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\n" + b"x" * 1_000_000,
        b"HTTP/1.1 204",
    ),
]


async def test_half_a_request_is_ended_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_clients, "PROGRESS_TIMEOUT_S", 0.2)
    monkeypatch.setattr(slow_clients, "MIN_BYTES", 8)
    config = uvicorn.Config(app, http=PatientProtocol, port=0, log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    serving = asyncio.create_task(server._serve())
    while not server.started:  # noqa: ASYNC110, uvicorn has no event for it
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    answers = await asyncio.gather(*(answer_to(port, sent) for sent, _ in CASES))
    server.should_exit = True
    await serving
    assert [answer[:12] for answer in answers] == [expected for _, expected in CASES]


async def answer_to(port: int, sent: bytes) -> bytes:
    """Send a request, with a pause at each `~`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in sent.split(b"~"):
        writer.write(piece)
        await asyncio.sleep(0.05)
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return answer
