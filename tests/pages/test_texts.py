"""Test that every text has both languages, and that the reader's choice is kept."""

from __future__ import annotations

import ast
import dataclasses
import re
from functools import cache
from pathlib import Path
from typing import get_args

from fastapi import Request
from pydantic import BaseModel

from backoffice.pages.filters import ERRORS as ERROR_WORDS
from backoffice.pages.filters import FIELDS, VALUES, field
from backoffice.pages.reader import LANGUAGES, counter, language_of, sentence_translator, texts, translator
from orchestrator.answer.finding.relevance import REASONS, describe_search
from orchestrator.operations import operations
from orchestrator.requests.field_types import Mode
from registry.domain import Role
from registry.errors import ErrorCode
from registry.search.retrieval import Corpus, SearchResult, Wording
from registry.storage.safety.forgetting import Receipt
from registry.text.ranking.similar import SimilarMessages
from registry.text.request.query import parse_query

ROOT = Path(__file__).parents[2]
BACKOFFICE = ROOT / "backoffice"
SINGLE = re.compile(r"""\bt\(\s*(["'])(.*?)\1""")
COUNTED = re.compile(r"""\btn\(\s*"[^"]*",\s*"([^"]*)\"""")


def texts_of_pages() -> set[str]:
    """Return every text that a page may show."""
    files = [*BACKOFFICE.glob("templates/**/*.html"), *BACKOFFICE.glob("pages/**/*.py")]
    sources = [file.read_text(encoding="utf-8") for file in files if file.name != "reader.py"]
    return {text for source in sources for _, text in SINGLE.findall(source)} | {
        text for source in sources for text in COUNTED.findall(source)
    }


def test_every_text_has_its_korean() -> None:
    assert texts_of_pages() - texts("ko").keys() == set()


def labels_of_records() -> set[str]:
    return {*FIELDS.values(), *(word for words in VALUES.values() for word in words.values()), *ERROR_WORDS.values()}


def test_labels_of_a_record_have_their_korean() -> None:
    assert labels_of_records() - texts("ko").keys() == set()
    assert not [word for word in labels_of_records() if "_" in word]
    assert {part.name for part in dataclasses.fields(Receipt)} - FIELDS.keys() == set()


def fields_of(shape: object) -> set[str]:
    """Return the names of all fields of a request or a tool's arguments, at any depth."""
    inside = {name for part in get_args(shape) for name in fields_of(part)}
    if not (isinstance(shape, type) and issubclass(shape, BaseModel)):
        return inside
    named = {field.alias or name for name, field in shape.model_fields.items()}
    return inside | named | {name for field in shape.model_fields.values() for name in fields_of(field.annotation)}


def test_every_field_that_may_be_refused_has_a_korean_name() -> None:
    shapes = [(one.request, *(tool.arguments for tool in one.tools)) for one in operations().values()]
    names = {name for some in shapes for shape in some for name in fields_of(shape)}
    assert len(names) > 50
    assert {name for name in names if field(name) not in texts("ko")} == set()


def test_values_in_a_record_have_labels() -> None:
    assert set(get_args(Mode)) <= VALUES["mode"].keys()
    assert {role.value for role in Role} <= VALUES["roles"].keys()
    assert set(ErrorCode) == ERROR_WORDS.keys()


ERRORS = ("InvalidRequest", "NotFound", "StorageError", "OperationTimeout", "Unauthorized")
PARTS = ("registry", "orchestrator", "backoffice", "sources")


@cache
def calls() -> list[tuple[str, ast.Call]]:
    """Return each call of a named function or method in the code that pages show texts of."""
    files = (file for part in PARTS for file in (ROOT / part).rglob("*.py") if file.parent.name != "upkeep")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    return [(name_of(node.func), node) for node in nodes if isinstance(node, ast.Call)]


def name_of(called: ast.expr) -> str:
    """Return the name of a function, or of a method with a dot before it."""
    if isinstance(called, ast.Attribute):
        return f".{called.attr}"
    return called.id if isinstance(called, ast.Name) else ""


def texts_of_calls(argument: int, *names: str) -> set[str]:
    """Return an argument of all calls of these functions, with sample values."""
    given = [call.args[argument] for name, call in calls() if name in names and len(call.args) > argument]
    return {*map(with_sample_values, given)} - {""}


def with_sample_values(node: ast.expr) -> str:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    known = {"doing": "read", "effect": "be stored; sending it", "about": "in the registry", "titles": ""}
    known["_similar(tx, reference)"] = ""
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else known.get(ast.unparse(part).strip("f'\"{}"), "42")
        for part in parts
        if isinstance(part, ast.Constant | ast.FormattedValue)
    )


def test_the_meaning_fields_of_a_record_have_labels() -> None:
    asked = Wording("", parse_query(""), 0, 0.0)
    for similar in (SimilarMessages(), SimilarMessages(note="no model")):
        found = SearchResult([asked], (), {}, {}, frozenset(), "fts5", Corpus(1, 1.0, 1), similar=similar)
        assert describe_search(found)["meaning"].keys() - FIELDS.keys() == set()


def test_every_error_message_has_its_korean() -> None:
    translate, messages = sentence_translator("ko"), texts_of_calls(0, *ERRORS)
    assert len(messages) > 20
    assert {text for text in messages if translate(text) == text} == set()


ENGLISH = re.compile(r"(?<![`.-])\b[a-z']+ (?:[a-z']+ )*[a-z']+\b")
"""English words in a row, except commands (in backticks or after a colon) and options (after a dash)."""


def test_every_error_detail_and_skip_reason_has_its_korean() -> None:
    details = filter(ENGLISH.search, texts_of_calls(1, *ERRORS, "Skipped"))
    korean = {text: re.sub(r"`[^`]*`|: ctxr .*", "", sentence_translator("ko")(text)) for text in details}
    assert len(korean) > 50
    assert {text: told for text, told in korean.items() if ENGLISH.search(told)} == {}


def test_translated_sentences_keep_their_values() -> None:
    cases: list[tuple[str, str]] = [
        ("No channel 'a; b' in the registry", "레지스트리에 'a; b' 채널이 없습니다"),
        ("limit: given 0; allowed: greater than 1", "limit: 받은 값 0, 허용: 1보다 큰 수"),
        (
            "limit: given \"x\"; allowed: a valid integer; mode: given 1; allowed: 'raw'",
            "limit: 받은 값 \"x\", 허용: 정수; mode: 받은 값 1, 허용: 'raw'",
        ),
        (
            "mode: given 1; allowed: 'raw', 'summary' or 'digest'",
            "mode: 받은 값 1, 허용: 'raw', 'summary', 'digest' 중 하나",
        ),
        ("No conversations found for query: '{n} No channel'", "검색어 '{n} No channel'에 맞는 대화가 없습니다"),
        (
            "No conversations found for query: 'a'; nearest: “b”, “c”; other wordings (also) may find it",
            "검색어 'a'에 맞는 대화가 없습니다. 가장 가까운 대화: “b”, “c”. 다른 표현(also)으로 찾을 수도 있습니다",
        ),
        (
            "token 'kim' is for its owner's chats; needed: scope admin, for all",
            "토큰 'kim': 소유자의 대화에만 쓸 수 있습니다. 필요한 권한: 모든 대화에 대한 admin",
        ),
        ("token 'kim' is for channels 'a*'", "토큰 'kim'의 범위: channels 'a*'"),
        ("token 'kim': given scope read; needed: write", "토큰 'kim': 받은 권한 read, 필요한 권한 write"),
        (
            "channel: given 0; allowed: a valid string; query: missing; allowed: a value is required",
            "channel: 받은 값 0, 허용: 글; query: 값이 없음, 허용: 값이 필요합니다",
        ),
        (
            "nickname: given '결제', which names channel 'c'; allowed: a name that no other session has",
            "nickname: 받은 값 '결제', 이미 쓰는 곳: 'c' 채널. 허용: 다른 세션이 쓰지 않는 이름",
        ),
        ("path: given 'a.zip'; there are: none yet", "path: 받은 값 'a.zip', 있는 것: 아직 없음"),
        ("Codex: no program 'codex' on the PATH", "Codex: PATH에 'codex' 프로그램이 없습니다"),
        (
            "Codex: found '9.0.0'; tested: 0.171.0. Nothing was written",
            "Codex: 설치된 버전 '9.0.0', 지원하는 버전 0.171.0. 아무것도 쓰지 않았습니다",
        ),
        ("looked at 1a2b (Fix it)", "확인한 커밋: 1a2b (Fix it)"),
        (
            "No conversations found for query: 'a'; only the project /b was searched, not all",
            "검색어 'a'에 맞는 대화가 없습니다. /b 프로젝트만 검색했습니다",
        ),
        (
            "No conversations found; nothing from 2026-01-01 00:00 to 2026-01-02 00:00; nearest: 2025-12-31 10:00",
            "맞는 대화가 없습니다. 2026-01-01 00:00부터 2026-01-02 00:00까지 아무것도 없으며"
            " 가장 가까운 때는 2025-12-31 10:00입니다",
        ),
        ("No conversations found for query: 'a; b: given c'", "검색어 'a; b: given c'에 맞는 대화가 없습니다"),
        ("the path of extract", "extract 작업의 경로"),
        ("disk I/O error {0}", "disk I/O error {0}"),
    ]
    for english, korean in cases:
        assert sentence_translator("ko")(english) == korean
        assert sentence_translator("en")(english) == english


def test_notes_of_steps_have_their_korean() -> None:
    noted: dict[str, set[str]] = {}
    for given in (one for name, call in calls() if name == ".explain" for one in call.keywords if one.arg):
        constant = [given.value] if isinstance(given.value, ast.Constant | ast.JoinedStr) else []
        noted.setdefault(str(given.arg), set()).update(map(with_sample_values, constant))
    assert len(noted) > 30
    assert {name for name in noted if field(name) not in texts("ko")} == set()
    translate = sentence_translator("ko")
    sentences = {text for name in ("by", "why", "reason", "note") for text in noted.get(name, set())}
    assert {text for text in sentences if ENGLISH.search(text) and translate(text) == text} == set()


def test_every_reason_for_a_verdict_has_its_korean() -> None:
    assert set(REASONS.values()) - texts("ko").keys() == set()


def test_a_translation_has_the_same_placeholders() -> None:
    for english, korean in texts("ko").items():
        assert re.findall(r"{\w+}", english) == re.findall(r"{\w+}", korean), english


def test_counts_are_pluralised_if_the_language_has_plurals() -> None:
    english, korean = (counter(translator(language)) for language in ("en", "ko"))
    assert [english("{n} message", "{n} messages", n) for n in (0, 1, 1234)] == [
        "0 messages",
        "1 message",
        "1,234 messages",
    ]
    assert [korean("{n} message", "{n} messages", n) for n in (1, 2)] == ["메시지 1개", "메시지 2개"]


def test_the_language_is_the_chosen_one_or_the_browsers() -> None:
    cases: list[tuple[str, str, str]] = [
        ("", "", "en"),
        ("ko-KR,ko;q=0.9,en;q=0.8", "", "ko"),
        ("en-US,en;q=0.9,ko;q=0.8", "", "en"),
        ("de,ko;q=0.5", "", "ko"),
        ("fr;q=x,*", "", "en"),
        ("ko;q=0", "", "en"),
        ("en", "lang=ko", "ko"),
        ("ko", "lang=en", "en"),
        ("ko", "lang=tlh", "ko"),
    ]
    for header, cookie, language in cases:
        headers = [(b"accept-language", header.encode()), (b"cookie", cookie.encode())]
        assert language_of(Request({"type": "http", "headers": headers})) == language
        assert language in LANGUAGES
