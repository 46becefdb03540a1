"""Describe invalid requests: for each problem the field, the given value and the allowed ones."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from orchestrator.requests.field_types import MAX_MESSAGES
from registry.errors import InvalidRequest, RegistryError


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call whose arguments a door has refused; recorded as a run of its operation."""

    operation: str
    source: str
    error: InvalidRequest
    channel: str | None = None
    query: object = None


def summary_of_refused(given: Mapping[str, Any] | Refusal) -> dict[str, Any]:
    """Summarise a refused request for its record: the names and short values of its query, no messages."""
    query = given.query if isinstance(given, Refusal) else given.get("query")
    if isinstance(query, str):
        query = {"text": query}
    short = {
        str(name): value if isinstance(value, int | float | None) else _preview(value, 200).strip('"')
        for name, value in (query.items() if isinstance(query, Mapping) else ())
    }
    return {"query": short} if short else {}


def invalid_request(problems: Sequence[Mapping[str, Any]], known: Sequence[str] = ()) -> InvalidRequest:
    """Return pydantic's problems as one error. `known`: the names of the top-level fields."""
    return InvalidRequest("The request is not valid.", "; ".join(_describe(problem, known) for problem in problems))


@contextmanager
def checked(known: Sequence[str] = ()) -> Iterator[None]:
    """Convert a ValidationError of the context to InvalidRequest; unknown fields are listed first."""
    try:
        yield
    except ValidationError as exc:
        problems = sorted(exc.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        raise invalid_request(problems, known) from exc


_ERRORS = {kind.code: kind for kind in RegistryError.__subclasses__()}


def succeeded(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation's answer; raise its failure as the RegistryError of that code."""
    if not outcome["success"]:
        error = outcome["error"]
        raise _ERRORS[error["code"]](error["message"], error["details"])
    return {name: value for name, value in outcome.items() if name != "success"}


def refuse_too_many(messages: object) -> None:
    """Raise InvalidRequest for more than MAX_MESSAGES, before they are parsed."""
    if isinstance(messages, list) and len(messages) > MAX_MESSAGES:
        allowed = f"at most {MAX_MESSAGES} in one call, more in several calls, in order"
        raise InvalidRequest("Too many messages at once.", f"messages: given {len(messages)}; allowed: {allowed}")


def _describe(problem: Mapping[str, Any], known: Sequence[str]) -> str:
    field = ".".join(str(part) for part in problem["loc"]) or "request"
    if problem["type"] == "missing":
        return f"{field}: missing; allowed: a value is required"
    return f"{field}: given {_preview(problem.get('input'))}; allowed: {_allowed(problem, known)}"


def _allowed(problem: Mapping[str, Any], known: Sequence[str]) -> str:
    if problem["type"] == "literal_error":
        return str(problem["ctx"]["expected"])
    if problem["type"] == "extra_forbidden":
        return ", ".join(["no such field", *(known if len(problem["loc"]) == 1 else ())])
    if problem["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return "an object"
    allowed = str(problem["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    return allowed.partition(", unable to parse")[0]


def _preview(given: object, width: int = 80) -> str:
    beginning = given[:width] if isinstance(given, list | str) else given
    text = json.dumps(beginning, ensure_ascii=False, default=str)
    return text if len(text) <= width else text[:width] + "…"
