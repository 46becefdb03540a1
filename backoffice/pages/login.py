"""/login: exchange a token or a one-time code for a session cookie."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, Response

from backoffice.admission import COOKIE, SESSION_S, THIS_USER, Credential, Gate
from backoffice.dependencies import Asking
from backoffice.pages.rendering import render, see_other
from registry.access import Level
from registry.registry import Registry

router = APIRouter(default_response_class=HTMLResponse)


@router.get("/login")
async def login_page(request: Request, next: str = "/", code: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Show the sign-in form; `code`: the one-time code of a link that the server has printed."""
    return render(request, "login.html", next=_local(next), code=code, is_wrong=False)


@router.post("/login")
async def sign_in(
    request: Request,
    client: Asking,
    token: Annotated[str, Form(max_length=10_000)] = "",
    code: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    """Sign in with a token or a code; show the form again if it is not valid."""
    gate: Gate = request.app.state.gate
    credential = await _credential_of(gate, client.registry, token.strip(), code)
    if credential is None:
        return render(request, "login.html", status=401, next=_local(next), code="", is_wrong=True)
    credential.access.require(Level.READ)
    answer = see_other(_local(next))
    is_secure = gate.rules.is_secure or request.url.scheme == "https"
    key = gate.sessions.begin(credential)
    answer.set_cookie(COOKIE, key, max_age=SESSION_S, httponly=True, samesite="strict", secure=is_secure)
    return answer


async def _credential_of(gate: Gate, registry: Registry, token: str, code: str) -> Credential | None:
    if code and gate.sessions.take_code(code, gate.rules.secret):
        return Credential(None, THIS_USER)
    return await gate.recognise(registry, token) if token else None


@router.post("/logout")
async def sign_out(request: Request) -> Response:
    gate: Gate = request.app.state.gate
    gate.sessions.end(request.cookies.get(COOKIE, ""))
    answer = see_other("/login")
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _local(path: str) -> str:
    """Return the path if it is one of this server's pages, else `/`."""
    parts = urlsplit(path)
    is_ours = path.startswith("/") and not path.startswith("//") and "\\" not in path and not parts.netloc
    return path if is_ours and path.isprintable() else "/"
