"""What is answered to a line that is no request: every request gets an answer, also one that cannot be read. Pure."""

from __future__ import annotations

import json
from typing import Any

from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


def answer_to(problem: Exception) -> JSONRPCError | None:
    """The error that tells what was wrong, under the request's own id where it can be made out; None for no words."""
    line = _line_of(problem)
    if not line.strip():
        return None
    request_id, is_json = _request_id(line)
    code, said = (INVALID_REQUEST, "not a JSON-RPC message") if is_json else (PARSE_ERROR, "not JSON in UTF-8")
    return JSONRPCError(
        jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=f"The line is {said}: {_reason(problem)}")
    )


def _line_of(problem: Exception) -> str:
    given = problem.errors()[0].get("input") if isinstance(problem, ValidationError) else ""
    return given if isinstance(given, str) else json.dumps(given)


def _request_id(line: str) -> tuple[int | str | None, bool]:
    """The id, and whether the line is JSON that others can read, too: Python's reader takes half a character."""
    try:
        given: Any = json.loads(line)
        found = given.get("id") if isinstance(given, dict) else None
        is_id = isinstance(found, int | str) and not isinstance(found, bool)
        json.dumps([found, given], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return found if is_id and str(found).isascii() else None, False
    except (ValueError, RecursionError):
        return None, False
    return found if is_id else None, True


def _reason(problem: Exception) -> str:
    return problem.errors(include_url=False)[0]["msg"] if isinstance(problem, ValidationError) else str(problem)
