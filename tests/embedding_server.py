"""An HTTP endpoint of OpenAI's embeddings API, with a toy model that knows a few synonyms."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONCEPTS = (
    ("cat", "cats", "feline", "kitten", "고양이"),
    ("food", "nutrition", "meals", "kibble", "사료"),
    ("slow", "sluggish", "latency", "느린", "지연"),
    ("database", "postgresql", "데이터베이스"),
    ("holiday", "vacation", "휴가"),
)
_NAMES = {word: names[0] for names in CONCEPTS for word in names}
_SMALL = {
    "a",
    "an",
    "and",
    "as",
    "at",
    "for",
    "i",
    "in",
    "is",
    "it",
    "of",
    "on",
    "or",
    "our",
    "the",
    "to",
    "we",
    "with",
}


def toy_vector(text: str) -> list[float]:
    """Return the sum of one pseudo-random vector for each concept of a text; 256 numbers."""
    concepts = {_NAMES.get(word, word) for word in re.findall(r"\w+", text.lower())} - _SMALL
    digests = [hashlib.sha256(concept.encode()).digest() for concept in sorted(concepts)]
    return [float(sum((d[i // 8] >> i % 8 & 1) * 2 - 1 for d in digests)) for i in range(256)]


class EmbeddingServer:
    """The endpoint's behaviour, which tests change while it runs; `received` has the texts of each request."""

    def __init__(self) -> None:
        self.url = ""
        self.received: list[list[str]] = []
        self.keys: list[str | None] = []
        self.status = 200
        self.dimensions = 256
        self.max_characters = 1_000_000
        self.body: bytes | None = None
        self.fails_after = math.inf
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.has_request = threading.Event()

    def reply(self, request: dict[str, Any]) -> tuple[int, bytes]:
        """Return status and body for a request."""
        texts: list[str] = request["input"]
        self.received.append(texts)
        self.has_request.set()
        self.may_answer.wait(30)
        if len(self.received) > self.fails_after:
            return 503, b"unavailable"
        if max(map(len, texts)) > self.max_characters or not all(texts):
            return 413, b"too long"
        data = [
            {"object": "embedding", "index": i, "embedding": toy_vector(text)[: self.dimensions]}
            for i, text in enumerate(texts)
        ]
        body = json.dumps({"object": "list", "model": request["model"], "data": data[::-1]})
        return self.status, self.body if self.body is not None else body.encode()


@contextmanager
def running_server() -> Iterator[EmbeddingServer]:
    """Run a server on a free local port."""
    toy = EmbeddingServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            toy.keys.append(self.headers["Authorization"])
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, answer = toy.reply(json.loads(body)) if self.path == "/v1/embeddings" else (404, b"")
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
            except OSError:
                pass  # the client is gone

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    toy.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield toy
    finally:
        toy.may_answer.set()
        server.shutdown()
        server.server_close()
        thread.join()
