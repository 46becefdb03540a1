"""Use an embedding model behind an endpoint with OpenAI's API."""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import httpx

from orchestrator.semantic.embedders import Prefixes, TextRefused, Unavailable, Vectors, name_with_prefix, prefixes_for

_REFUSAL_STATUSES = (400, 413, 422)


class Endpoint:
    """`POST {base_url}/embeddings`, as OpenAI, Ollama, llama.cpp, vLLM, LM Studio and others answer it."""

    query_timeout_s = 2.0
    batch_timeout_s: float | None = 60.0

    def __init__(
        self, base_url: str, model: str, api_key: str = "", *, query_model: str = "", prefixes: Prefixes | None = None
    ) -> None:
        """`query_model`: the model for questions, if it is another; `prefixes`: None for the model's known ones."""
        prefixes = prefixes_for(model) if prefixes is None else prefixes
        self._query, self._passage = (query_model or model, prefixes.query), (model, prefixes.passage)
        self.name = name_with_prefix(model, prefixes)
        self._url = base_url.rstrip("/") + "/embeddings"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client: httpx.AsyncClient | None = None

    async def warm_up(self) -> None:
        """Do nothing: an endpoint has nothing to load."""

    async def queries(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(*self._query, texts)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        return await self._embed(*self._passage, texts)

    async def _embed(self, model: str, prefix: str, texts: Sequence[str]) -> Vectors:
        self._client = self._client or httpx.AsyncClient(timeout=120.0, headers=self._headers)
        try:
            body = {"model": model, "input": [prefix + text for text in texts]}
            answer = await self._client.post(self._url, json=body)
            if answer.is_success:
                return _vectors_in(answer.json(), len(texts))
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
            raise Unavailable(f"{self._url}: {str(exc) or type(exc).__name__}") from exc
        except ValueError as exc:
            raise Unavailable(f"{self._url} answered what is not JSON") from exc
        if answer.status_code in _REFUSAL_STATUSES:
            raise TextRefused(f"{self._url} answered {answer.status_code}")
        raise Unavailable(f"{self._url} answered {answer.status_code} {answer.reason_phrase}")

    async def close(self) -> None:
        if self._client:
            await self._client.aclose()


def _vectors_in(answer: Any, count: int) -> Vectors:
    try:
        found = {item.get("index", index): item["embedding"] for index, item in enumerate(answer["data"])}
        vectors: list[list[float]] = [found[index] for index in range(count)]
        lengths = {len(vector) for vector in vectors}
        is_sound = len(lengths) == 1 and 0 not in lengths and all(map(math.isfinite, chain(*vectors)))
    except (TypeError, KeyError, AttributeError) as exc:
        raise Unavailable(f"the endpoint did not answer with {count} embeddings") from exc
    if not is_sound:
        raise Unavailable("the endpoint answered with embeddings that are not vectors of one length")
    return vectors
