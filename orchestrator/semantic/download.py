"""A model's files, from the Hugging Face hub into a folder of their own: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import httpx

from orchestrator.semantic.models import ONNX_FILE, TOKENIZER_FILE

HUB = "https://huggingface.co"
PLACES = (f"onnx/{ONNX_FILE}", ONNX_FILE)
"""Where in a repository the model stands, the usual place first."""
CONNECT_S, SILENT_S = 10.0, 60.0


class NotDownloaded(Exception):
    """Why there is no model now."""


def download(name: str, folder: Path, on_progress: Callable[[int, int], None]) -> None:
    """Fetch a model into `folder`, telling the bytes so far and of how many; NotDownloaded if it is not to be had."""
    base = f"{os.environ.get('HF_ENDPOINT') or HUB}/{name}/resolve/main"
    folder.parent.mkdir(parents=True, exist_ok=True)
    limits = httpx.Timeout(SILENT_S, connect=CONNECT_S)
    try:
        with (
            httpx.Client(timeout=limits, follow_redirects=True) as client,
            tempfile.TemporaryDirectory(dir=folder.parent) as unfinished,
        ):
            made = Path(unfinished) / "model"
            made.mkdir()
            _fetch(client, f"{base}/{TOKENIZER_FILE}", made / TOKENIZER_FILE, on_progress)
            place = next((one for one in PLACES if client.head(f"{base}/{one}").is_success), PLACES[0])
            _fetch(client, f"{base}/{place}", made / ONNX_FILE, on_progress)
            made.rename(folder)
    except httpx.HTTPError as exc:
        raise NotDownloaded(f"{base}: {str(exc) or type(exc).__name__}") from exc
    except OSError as exc:
        raise NotDownloaded(f"{folder}: {exc.strerror}") from exc


def _fetch(client: httpx.Client, url: str, file: Path, on_progress: Callable[[int, int], None]) -> None:
    with client.stream("GET", url) as answer, file.open("wb") as opened:
        answer.raise_for_status()
        total, done = int(answer.headers.get("Content-Length", 0)), 0
        for part in answer.iter_bytes():
            opened.write(part)
            done += len(part)
            on_progress(done, max(total, done))
