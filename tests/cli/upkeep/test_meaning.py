"""Test search by meaning: `ctxr db embed`, and explained searches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.output import display_width
from tests.cli.conftest import FIBONACCI, Ctxr
from tests.embedding_server import EmbeddingServer
from tests.tiny_onnx import make_tiny_onnx

PET = {
    "channel": "pet",
    "messages": [
        {"role": "user", "text": "Our feline refuses kibble"},
        {"role": "assistant", "text": "Try to warm it up"},
    ],
}
FENCE = {"channel": "fence", "messages": [{"role": "user", "text": "Paint the fence green"}]}


@pytest.fixture
def endpoint(ctxr: Ctxr, embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> EmbeddingServer:
    """Return an embedding endpoint that is configured for a registry with two conversations."""
    monkeypatch.setenv("CTXR_EMBED_BASE_URL", embedding_server.url)
    monkeypatch.setenv("CTXR_EMBED_MODEL", "toy")
    monkeypatch.setenv("CTXR_EMBED_API_KEY", "sesame")
    ctxr("log", "-", given=PET)
    ctxr("log", "-", given=FENCE)
    return embedding_server


def test_a_search_finds_other_words_after_embedding(ctxr: Ctxr, endpoint: EmbeddingServer) -> None:
    assert ctxr("search", "cat food").exit_code == 3
    done = ctxr("db", "embed")
    assert done.exit_code == 0, done.output
    assert "3 messages embedded." in done.stdout
    assert "Our feline refuses kibble" in ctxr("search", "cat food").stdout
    assert "All messages are embedded." in ctxr("db", "embed").stdout
    assert set(endpoint.keys) == {"Bearer sesame"}


def test_a_search_explains_what_words_and_meaning_found(ctxr: Ctxr, endpoint: EmbeddingServer) -> None:
    ctxr("db", "embed")
    shown = ctxr("search", "--explain", "cat food")
    assert "feline" in shown.stdout
    assert "Why" not in shown.stdout
    assert "model toy" in shown.stderr
    assert "similarity 0." in " ".join(shown.stderr.split())
    assert max(map(display_width, shown.stderr.splitlines())) <= 80
    endpoint.status = 500
    shown = ctxr("search", "--explain", "feline")
    assert shown.exit_code == 0
    assert "answered 500" in " ".join(shown.stderr.split())


def test_a_date_does_not_find_a_weakly_similar_message(ctxr: Ctxr, endpoint: EmbeddingServer) -> None:
    others = [{"role": "user", "text": f"The gate {number} is slow"} for number in range(20)]
    ctxr("log", "-", given={**FIBONACCI, "messages": others})
    ctxr("db", "embed")
    shown = " ".join(ctxr("search", "--explain", "cat food").stderr.split())
    assert "reason contains no word of the request, and is not similar enough" in shown
    assert "is of that date" not in shown


def test_a_search_explains_what_was_kept_and_left_out_and_why(ctxr: Ctxr) -> None:
    more = [{"role": "user", "text": text} for text in ("다른 이야기", "또 다른 이야기", "오늘은 시간 없음")]
    ctxr("log", "-", given={**FIBONACCI, "messages": [*FIBONACCI["messages"], *more]})
    shown = ctxr("search", "--explain", "--json", "피보나치 함수의 시간복잡도 개선 방법")
    assert json.loads(shown.stdout)["sessions"][0]["channel"] == FIBONACCI["channel"]
    assert "words: 피보나치, 함수, 시간복잡도, 개선" in shown.stderr
    assert "channel cursor_session_20250929_1430, score" in " ".join(shown.stderr.split())
    assert "kept" in shown.stderr
    assert "kept False, reason contains only parts of words" in " ".join(shown.stderr.split())
    nothing = ctxr("search", "--explain", "quantum chromodynamics")
    assert nothing.exit_code == 3
    assert "words: quantum, chromodynamics" in nothing.stderr


def test_an_endpoint_that_does_not_answer_fails_only_the_command(ctxr: Ctxr, endpoint: EmbeddingServer) -> None:
    endpoint.status = 401
    failed = ctxr("db", "embed")
    assert failed.exit_code == 1
    assert "error: MODEL_UNAVAILABLE: " in failed.stderr
    assert "401" in failed.stderr
    assert "sesame" not in failed.output
    assert ctxr("search", "feline").exit_code == 0


def test_without_a_model_embedding_is_refused(ctxr: Ctxr) -> None:
    failed = ctxr("db", "embed")
    assert failed.exit_code == 2
    assert "CTXR_EMBED_MODEL" in failed.stderr


def test_an_endpoint_needs_a_model_and_the_key_is_never_shown(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CTXR_EMBED_MODEL")
    monkeypatch.setenv("CTXR_EMBED_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("CTXR_EMBED_API_KEY", "sesame")
    failed = ctxr("search", "x")
    assert failed.exit_code == 2
    assert "CTXR_EMBED_MODEL" in failed.stderr
    assert "sesame" not in failed.output
    monkeypatch.setenv("CTXR_EMBED_MODEL", "toy")
    seen = ctxr("doctor")
    assert "sesame" not in seen.output
    assert "toy does not answer" in " ".join(seen.output.split())
    assert "All connection attempts failed" in " ".join(seen.output.split())


def test_doctor_says_that_the_model_answers(ctxr: Ctxr, endpoint: EmbeddingServer) -> None:
    ctxr("db", "embed")
    findings = json.loads(ctxr("doctor", "--json").stdout)["findings"]
    found = "by toy, 256 dimensions; 3 of 3 messages are embedded (0.0 MB)"
    assert {"state": "ok", "what": "meaning", "found": found, "remedy": ""} in findings


@pytest.fixture
def tiny_model(ctxr: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the folder of a model, with a registry of two conversations."""
    folder = str(make_tiny_onnx(tmp_path / "tiny"))
    monkeypatch.setenv("CTXR_EMBED_MODEL", folder)
    ctxr("log", "-", given=PET)
    ctxr("log", "-", given=FENCE)
    return folder


def test_a_model_in_a_folder_needs_no_endpoint(ctxr: Ctxr, tiny_model: str) -> None:
    done = ctxr("db", "embed")
    assert done.exit_code == 0, done.output
    found = json.loads(ctxr("search", "--json", "cat food").stdout)
    assert [session["channel"] for session in found["sessions"]] == ["pet"]
    assert "Our feline refuses kibble" in ctxr("extract", "cat food").stdout
    assert ctxr("search", "vacation").exit_code == 3
    unknown = ctxr("search", "--explain", "zzyzx")
    assert "knows none of the words" in " ".join(unknown.stderr.split())
    assert "3 of 3 messages are embedded" in " ".join(ctxr("doctor").output.split())


def test_a_model_that_cannot_be_loaded_does_not_stop_a_search(ctxr: Ctxr, tiny_model: str) -> None:
    ctxr("db", "embed")
    shutil.rmtree(tiny_model)
    Path(tiny_model).mkdir()
    shown = ctxr("search", "--explain", "feline")
    assert shown.exit_code == 0
    assert "cannot be loaded" in " ".join(shown.stderr.split())
    failed = ctxr("db", "embed")
    assert failed.exit_code == 1
    assert "MODEL_UNAVAILABLE" in failed.stderr
