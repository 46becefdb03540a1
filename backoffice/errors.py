"""Errors as HTTP responses."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from orchestrator.requests.refusals import invalid_request
from registry.domain import storable
from registry.errors import NOT_CONFIRMED, NOT_NOW, ErrorCode, InternalError, InvalidRequest, RegistryError

STATUS = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.STORAGE_ERROR: 500,
    ErrorCode.TIMEOUT: 504,
    ErrorCode.INTERNAL_ERROR: 500,
}
_CODES = {status: code for code, status in STATUS.items()}


def wants_page(headers: Headers, path: str) -> bool:
    api = ("/bo/", "/mcp", "/health", "/ready", "/metrics", "/openapi.json", "/static/")
    return "text/html" in headers.get("accept", "") and not path.startswith(api)


def failure(
    error: Mapping[str, str], status: int | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the error envelope, with the status of its code unless another is given."""
    body = {"ok": False, "error": storable(error)}
    answer = JSONResponse(body, status or STATUS[ErrorCode(error["code"])], headers)
    if status is None and error["message"] in (NOT_NOW, NOT_CONFIRMED):
        mark_retryable(answer)
    return answer


def mark_retryable(answer: Response) -> None:
    """Turn the answer into 503, so that the caller sends the write again when the database is back."""
    answer.status_code, answer.headers["Retry-After"] = 503, "5"  # s; a replica takes over within half a minute


def rpc_failure(error: RegistryError) -> JSONResponse:
    """Return a JSON-RPC error, the only kind that MCP clients show."""
    text = " ".join(filter(None, [f"{error.code}: {error.message}", error.details]))
    body = {"code": -32603, "message": text, "data": error.as_dict()}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": storable(body)}, STATUS[error.code])


def add_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(RegistryError, _registry_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _bug)


async def _registry_error(_request: Request, exc: Any) -> JSONResponse:
    return failure(exc.as_dict())


async def _invalid(request: Request, exc: Any) -> JSONResponse:
    return failure(_problem_of(request, exc).as_dict())


def _problem_of(request: Request, exc: RequestValidationError) -> InvalidRequest:
    problems = exc.errors()
    if problems[0]["type"] == "json_invalid":
        reason = problems[0].get("ctx", {}).get("error", "")
        return InvalidRequest("The body is not JSON.", f"body: at character {problems[0]['loc'][-1]}: {reason}")
    if isinstance(exc.body, bytes):
        given = request.headers.get("content-type")
        return InvalidRequest("The body is not JSON.", f"Content-Type: given {given!r}; allowed: application/json")
    # FastAPI puts "query", "path" or "body" before the field's name.
    return invalid_request([{**problem, "loc": problem["loc"][1:] or problem["loc"]} for problem in problems])


async def _refused(request: Request, exc: Any) -> JSONResponse:
    default = ErrorCode.INTERNAL_ERROR if exc.status_code >= 500 else ErrorCode.INVALID_REQUEST
    code = _CODES.get(exc.status_code, default)
    error = {"code": code.value, "message": str(exc.detail), "details": f"{request.method} {request.url.path}"}
    return failure(error, exc.status_code, exc.headers)


async def _bug(_request: Request, _exc: Exception) -> JSONResponse:
    """Answer an unexpected exception; Starlette raises it again, so that the server logs it."""
    return failure(InternalError("The request failed inside Context Registry.", "See the server's log").as_dict())
