"""/login: exchange a token, a one-time code or a sign-in at the OAuth issuer for a session cookie."""

import logging
from typing import Annotated, Any

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, Response

from backoffice.admission import COOKIE, OAUTH_CALLBACK, SESSION_S, THIS_USER, Credential, Gate
from backoffice.dependencies import CurrentClient
from backoffice.pages.rendering import render, see_other
from orchestrator.outside.sign_in import Attempt, SignIn
from registry.access import Level
from registry.errors import NotFound, RegistryError, StorageError, Unauthorized
from registry.registry import Registry

logger = logging.getLogger(__name__)
router = APIRouter(default_response_class=HTMLResponse)

ATTEMPT_COOKIE, ATTEMPT_S = "ctxr_sign_in", 600
MAX_COOKIE = 4000  # browsers drop a cookie whose name and value have more than 4096 bytes
ISSUER_LIMITER = CapacityLimiter(4)  # concurrent sign-ins, so that a hanging issuer does not take all threads


@router.get("/login")
async def login_page(request: Request, next: str = "/", code: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Show the sign-in form; `code`: the one-time code of a link that the server has printed."""
    problem = "ended" if COOKIE in request.cookies and not code else ""
    return _form(request, problem=problem, next=_local_path(next), code=code)


@router.post("/login")
async def sign_in(
    request: Request,
    client: CurrentClient,
    token: Annotated[str, Form(max_length=10_000)] = "",
    code: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    """Sign in with a token or a code; show the form again if it is not valid."""
    gate: Gate = request.app.state.gate
    credential = await _credential_of(gate, client.registry, token.strip(), code)
    if credential is None:
        return _form(request, 401, "token", next=_local_path(next))
    credential.access.require(Level.READ)
    return await _with_session(request, see_other(_local_path(next)), credential)


@router.get("/login/oauth")
async def begin_oauth(request: Request, next: str = "/") -> Response:
    """Send the browser to the issuer's own sign-in page."""
    attempt = Attempt(_local_path(next))
    if len(attempt.as_cookie()) > MAX_COOKIE:
        attempt = Attempt("/")
    try:
        answer = see_other(await to_thread.run_sync(_sign_in_of(request).address, attempt, limiter=ISSUER_LIMITER))
    except StorageError as exc:
        return _failed(request, exc, attempt)
    answer.set_cookie(
        ATTEMPT_COOKIE,
        attempt.as_cookie(),
        max_age=ATTEMPT_S,
        path="/login",
        httponly=True,
        samesite="lax",  # with `strict` it would not come back from the issuer's page
        secure=_is_secure(request),
    )
    return answer


@router.get(OAUTH_CALLBACK)
async def finish_oauth(request: Request, state: str = "", code: str = "", error: str = "") -> Response:
    """Begin the session of a person whom the issuer has sent back."""
    answer = await _finished(request, state, code, error)
    answer.delete_cookie(ATTEMPT_COOKIE, path="/login", httponly=True, samesite="lax")
    return answer


async def _finished(request: Request, state: str, code: str, error: str) -> Response:
    sign_in = _sign_in_of(request)
    attempt = Attempt.from_cookie(request.cookies.get(ATTEMPT_COOKIE, ""), state)
    if attempt is None:
        return _form(request, 400, "attempt")
    if error or not code:
        return _failed(request, Unauthorized("The issuer refused the request.", repr(error)), attempt)
    try:
        person = await to_thread.run_sync(sign_in.person, attempt, code, limiter=ISSUER_LIMITER)
    except (StorageError, Unauthorized) as exc:
        return _failed(request, exc, attempt)
    next = _local_path(attempt.next)
    gate: Gate = request.app.state.gate
    await gate.sessions.renew(request.app.state.orchestrator.registry, person.name, person.access)
    if person.access is None:
        return _form(request, 403, "access", next=next, person=person)
    # A page that leads on, because a redirect from the issuer's site would not carry the cookie.
    page = render(request, "signed_in.html", next=next)
    return await _with_session(request, page, Credential(None, person.access))


def _sign_in_of(request: Request) -> SignIn:
    gate: Gate = request.app.state.gate
    if gate.rules.sign_in is None:
        raise NotFound("This server has no sign-in by OpenID Connect.", "CTXR_OAUTH_CLIENT_ID: it is not set")
    return gate.rules.sign_in


def _form(request: Request, status: int = 200, problem: str = "", **context: Any) -> Response:
    """Show the form again, with what went wrong."""
    gate: Gate = request.app.state.gate
    shown = {"next": "/", "code": "", "person": None, **context}
    return render(request, "login.html", status=status, problem=problem, has_oauth=bool(gate.rules.sign_in), **shown)


def _failed(request: Request, exc: RegistryError, attempt: Attempt) -> Response:
    """Log why a sign-in failed, and show the form again without the reason."""
    logger.warning("A sign-in failed: %s %s", exc.message, exc.details)
    status, problem = (503, "away") if isinstance(exc, StorageError) else (401, "refused")
    return _form(request, status, problem, next=_local_path(attempt.next))


async def _with_session(request: Request, answer: Response, credential: Credential) -> Response:
    gate: Gate = request.app.state.gate
    key = await gate.sessions.begin(request.app.state.orchestrator.registry, credential)
    answer.set_cookie(COOKIE, key, max_age=SESSION_S, httponly=True, samesite="strict", secure=_is_secure(request))
    return answer


def _is_secure(request: Request) -> bool:
    gate: Gate = request.app.state.gate
    return gate.rules.is_secure or request.url.scheme == "https"


async def _credential_of(gate: Gate, registry: Registry, token: str, code: str) -> Credential | None:
    if code and await gate.sessions.take_code(registry, code, gate.rules.secret):
        return Credential(None, THIS_USER)
    return await gate.recognise(registry, token) if token else None


@router.post("/logout")
async def sign_out(request: Request) -> Response:
    gate: Gate = request.app.state.gate
    await gate.sessions.end(request.app.state.orchestrator.registry, request.cookies.get(COOKIE, ""))
    answer = see_other("/login")
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _local_path(path: str) -> str:
    """Return the path if it is one of this server's pages, else `/`."""
    is_ours = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if is_ours and path.isprintable() else "/"
