"""A request that is not valid, in words: each fault names the field, what was given and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.requests.operation_names import Operation
from registry.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call whose arguments a door has refused itself: recorded as the operation that it would have been."""

    operation: Operation
    source: str
    error: InvalidRequest
    channel: str | None = None
    query: object = None


def summary_of_refused(given: Mapping[str, Any] | Refusal) -> dict[str, Any]:
    """Summarise a refused request for its record: the names and short values of its query, no messages."""
    query = given.query if isinstance(given, Refusal) else given.get("query")
    if isinstance(query, str):
        query = {"text": query}
    short = {str(name): _as_recorded(value) for name, value in query.items()} if isinstance(query, Mapping) else {}
    return {"query": short} if short else {}


def _as_recorded(value: object) -> object:
    return value if isinstance(value, int | float | None) else _short(value, 200).strip('"')


def invalid_request(problems: Sequence[Mapping[str, Any]]) -> InvalidRequest:
    """Return pydantic's problems as one error: each names the field, what was given and what is allowed."""
    return InvalidRequest("The request is not valid.", "; ".join(map(_in_words, problems)))


def _in_words(problem: Mapping[str, Any]) -> str:
    field = ".".join(str(part) for part in problem["loc"]) or "request"
    if problem["type"] == "missing":
        return f"{field}: missing; allowed: a value is required"
    return f"{field}: given {_short(problem.get('input'))}; allowed: {_allowed(problem)}"


def _allowed(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "literal_error":
        return str(problem["ctx"]["expected"])
    if problem["type"] == "extra_forbidden":
        return ", ".join(["no such field", *problem.get("ctx", {}).get("but", ())])
    if problem["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return "an object"
    allowed = str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    return allowed.partition(", unable to parse")[0]


def _short(given: object, width: int = 80) -> str:
    some = given[:width] if isinstance(given, list | str) else given
    text = json.dumps(some, ensure_ascii=False, default=str)
    return text if len(text) <= width else text[:width] + "…"
