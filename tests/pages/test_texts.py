"""Both languages say everything, and the reader's choice is kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi import Request

from backoffice.pages.language import LANGUAGES, counter, language_of, texts, translator

BACKOFFICE = Path(__file__).parents[2] / "backoffice"
SINGLE = re.compile(r"""\bt\(\s*(["'])(.*?)\1""")
COUNTED = re.compile(r"""\btn\(\s*"[^"]*",\s*"([^"]*)\"""")


def said() -> set[str]:
    """Every text that a page may show."""
    files = [*BACKOFFICE.glob("templates/**/*.html"), *BACKOFFICE.glob("pages/*.py")]
    sources = [file.read_text(encoding="utf-8") for file in files if file.name != "language.py"]
    return {text for source in sources for _, text in SINGLE.findall(source)} | {
        text for source in sources for text in COUNTED.findall(source)
    }


def test_every_text_has_a_korean_one() -> None:
    assert said() - texts("ko").keys() == set()


def test_a_translation_fills_in_the_same_fields() -> None:
    for english, korean in texts("ko").items():
        assert re.findall(r"{\w+}", english) == re.findall(r"{\w+}", korean), english


def test_counts_have_their_plural_where_a_language_has_one() -> None:
    english, korean = (counter(translator(language)) for language in ("en", "ko"))
    assert [english("{n} message", "{n} messages", n) for n in (0, 1, 1234)] == [
        "0 messages",
        "1 message",
        "1,234 messages",
    ]
    assert [korean("{n} message", "{n} messages", n) for n in (1, 2)] == ["메시지 1개", "메시지 2개"]


@pytest.mark.parametrize(
    ("header", "cookie", "language"),
    [
        ("", "", "en"),
        ("ko-KR,ko;q=0.9,en;q=0.8", "", "ko"),
        ("en-US,en;q=0.9,ko;q=0.8", "", "en"),
        ("de,ko;q=0.5", "", "ko"),
        ("fr;q=x,*", "", "en"),
        ("ko;q=0", "", "en"),
        ("en", "lang=ko", "ko"),
        ("ko", "lang=en", "en"),
        ("ko", "lang=tlh", "ko"),
    ],
)
def test_the_language_is_the_chosen_one_else_the_browsers(header: str, cookie: str, language: str) -> None:
    headers = [(b"accept-language", header.encode()), (b"cookie", cookie.encode())]
    assert language_of(Request({"type": "http", "headers": headers})) == language
    assert language in LANGUAGES
