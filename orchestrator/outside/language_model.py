"""Ask a language model behind an OpenAI-compatible endpoint."""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx

from orchestrator.answer.delivery import truncate
from orchestrator.outside.writing import NOTES, SYSTEM, WriterUnavailable, as_quote, pieces

_TRANSIENT_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504})  # statuses to retry


class LanguageModel:
    """The chat completions of an endpoint. Close it when done."""

    def __init__(
        self, base_url: str, name: str, key: str = "", *, timeout_s: float = 60.0, pause_s: float = 0.5
    ) -> None:
        """`timeout_s`: limit for a whole text. `pause_s`: pause before the second attempt, doubled for the third."""
        self.name, self.timeout_s = name, timeout_s
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.AsyncClient(timeout=60.0, headers=headers)
        self._pause_s = pause_s

    async def write(self, task: str, material: str, max_tokens: int) -> str:
        """Return a text of at most `max_tokens` that does the task with the material. Raises WriterUnavailable."""
        parts = pieces(material)
        if len(parts) > 1:
            material = "\n\n".join([await self._completion(NOTES, part, 400) for part in parts])
        return truncate(await self._completion(task, material, max_tokens), max_tokens)

    async def close(self) -> None:
        await self._client.aclose()

    async def _completion(self, task: str, material: str, max_tokens: int) -> str:
        request = {
            "model": self.name,
            "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": as_quote(task, material)}],
            "max_tokens": max_tokens + 64,  # `truncate` removes the rest
            "temperature": 0.2,
        }
        error = ""
        for attempt in range(3):
            if attempt:
                await asyncio.sleep(self._pause_s * 2 ** (attempt - 1))
            try:
                answer = await self._client.post(self._url, json=request)
            except httpx.TransportError as exc:
                error = f"{self._url}: {str(exc) or type(exc).__name__}"
                continue
            except (httpx.HTTPError, httpx.InvalidURL) as exc:
                raise WriterUnavailable(f"{self._url}: {exc}") from exc
            if answer.is_success:
                return _text_of(answer)
            error = f"{self._url} answered {answer.status_code}"
            if answer.status_code not in _TRANSIENT_STATUSES:
                break
        raise WriterUnavailable(error)


def _text_of(answer: httpx.Response) -> str:
    try:
        choices: Sequence[Any] = answer.json()["choices"]
        text = choices[0]["message"]["content"]
    except (ValueError, TypeError, KeyError, IndexError) as exc:
        raise WriterUnavailable(f"{answer.url} did not answer with a text") from exc
    if not isinstance(text, str) or not text.strip():
        raise WriterUnavailable(f"{answer.url} answered with an empty text")
    return text.strip()
