"""Texts to vectors: by an endpoint that speaks OpenAI's embeddings API, or by a small model in this process."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import httpx

if TYPE_CHECKING:
    from model2vec import StaticModel

Vectors = Sequence[Sequence[float]]


class Unavailable(Exception):
    """No vectors now: the endpoint is gone, slow, refuses us or talks nonsense; or the model cannot be loaded."""


class Refused(Exception):
    """These texts are not taken, most likely because one is too long."""


class Embedder(Protocol):
    """A model of one name: the same name gives the same vectors."""

    name: str
    patience_s: float
    """A search waits no longer."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector a text, all of the same length; Unavailable or Refused if not."""

    async def close(self) -> None:
        """Let go of what it holds."""


SLOWEST_S = 120.0
"""No answer is waited for longer; those who ask have shorter limits."""
_TOO_MUCH = (400, 413, 422)


class Endpoint:
    """`POST {base_url}/embeddings`, as OpenAI, Ollama, llama.cpp, vLLM, LM Studio and others answer it."""

    patience_s = 2.0

    def __init__(self, base_url: str, model: str, api_key: str = "") -> None:
        self.name = model
        self._url = base_url.rstrip("/") + "/embeddings"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client: httpx.AsyncClient | None = None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Time limits are the caller's."""
        self._client = self._client or httpx.AsyncClient(timeout=SLOWEST_S, headers=self._headers)
        try:
            answer = await self._client.post(self._url, json={"model": self.name, "input": list(texts)})
            if answer.is_success:
                return _vectors_in(answer.json(), len(texts))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
            raise Unavailable(f"{self._url}: {str(exc) or type(exc).__name__}") from exc
        except ValueError as exc:
            raise Unavailable(f"{self._url} answered what is not JSON") from exc
        if answer.status_code in _TOO_MUCH:
            raise Refused(f"{self._url} answered {answer.status_code}")
        raise Unavailable(f"{self._url} answered {answer.status_code} {answer.reason_phrase}")

    async def close(self) -> None:
        """Close the connections."""
        if self._client:
            await self._client.aclose()


def _vectors_in(answer: Any, count: int) -> Vectors:
    try:
        found = {item.get("index", place): item["embedding"] for place, item in enumerate(answer["data"])}
        vectors: list[list[float]] = [found[place] for place in range(count)]
        lengths = {len(vector) for vector in vectors}
        is_sound = len(lengths) == 1 and 0 not in lengths and all(map(math.isfinite, chain(*vectors)))
    except (TypeError, KeyError, AttributeError) as exc:
        raise Unavailable(f"the endpoint did not answer with {count} embeddings") from exc
    if not is_sound:
        raise Unavailable("the endpoint answered with embeddings that are not vectors of one length")
    return vectors


class LocalModel:
    """A static model of model2vec, by its folder or its name on the Hugging Face hub; loaded at the first need."""

    patience_s = 10.0

    def __init__(self, name: str) -> None:
        self.name = name
        self._loading: asyncio.Future[StaticModel] | None = None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """In a thread: the loop goes on. A caller who stops waiting does not stop the loading."""
        if self._loading is None or _has_failed(self._loading):
            self._loading = _loaded(self.name)
        model = await asyncio.shield(self._loading)
        return await asyncio.to_thread(lambda: list(model.encode(texts, use_multiprocessing=False)))

    async def close(self) -> None:
        """Nothing is open."""


def _has_failed(loading: asyncio.Future[Any]) -> bool:
    return loading.done() and loading.exception() is not None


def _loaded(name: str) -> asyncio.Future[StaticModel]:
    """The model, as soon as it is there. A program that ends meanwhile does not wait for a long download."""
    loop = asyncio.get_running_loop()
    loading: asyncio.Future[StaticModel] = loop.create_future()

    def finish(model: StaticModel | None, trouble: Exception | None) -> None:
        if trouble:
            loading.set_exception(trouble)
            loading.exception()  # known, also where nobody waits for it any more
        elif model:
            loading.set_result(model)

    def load() -> None:
        try:
            outcome: tuple[StaticModel | None, Exception | None] = _load(name), None
        except Unavailable as exc:
            outcome = None, exc
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(finish, *outcome)

    threading.Thread(target=load, name="embedding-model", daemon=True).start()
    return loading


def _load(name: str) -> StaticModel:
    try:
        from model2vec import StaticModel

        return StaticModel.from_pretrained(name, force_download=False)
    except Exception as exc:  # the library and its downloader raise what they like
        raise Unavailable(f"the model {name} cannot be loaded: {str(exc) or type(exc).__name__}") from exc
