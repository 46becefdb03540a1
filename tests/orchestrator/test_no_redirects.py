"""Test that no redirect of a configured address is followed into a private network."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from orchestrator.outside.language_model import LanguageModel
from orchestrator.outside.writing import WriterUnavailable
from orchestrator.remote.client import RemoteRegistry, Unreachable
from orchestrator.semantic.embedders import Unavailable
from orchestrator.semantic.endpoint import Endpoint

pytestmark = pytest.mark.anyio


@pytest.fixture
def redirecting_server() -> Iterator[tuple[str, list[str]]]:
    """Run a server that redirects everything to its page /private; return its address and the requested pages."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(307)
            self.send_header("Location", f"http://localhost:{self.server.server_port}/private")  # type: ignore[attr-defined]
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


async def test_a_redirect_of_a_model_endpoint_is_not_followed(redirecting_server: tuple[str, list[str]]) -> None:
    address, asked = redirecting_server
    model = LanguageModel(address, "m", pause_s=0.01)
    with pytest.raises(WriterUnavailable):
        await model.write("sum it up", "text", 100)
    await model.close()
    with pytest.raises(Unavailable, match="307"):
        await Endpoint(address, "m").passages(["text"])
    assert "/private" not in asked


async def test_a_redirect_of_a_registry_elsewhere_is_not_followed(redirecting_server: tuple[str, list[str]]) -> None:
    address, asked = redirecting_server
    async with RemoteRegistry(address) as remote:
        with pytest.raises(Unreachable, match="307"):
            await remote.changes(0)
    assert "/private" not in asked
