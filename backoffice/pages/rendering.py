"""Render templates in the reader's language and theme, with strict security headers; errors as pages."""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import Response

from backoffice.admission import COOKIE
from backoffice.errors import wants_page
from backoffice.pages.filters import ERRORS, FILTERS, ROLES, is_instant, show_invisible
from backoffice.pages.reader import age, counter, language_of, reader_now, sentence_translator, translator, zone_state
from registry.access import Access
from registry.errors import StorageError

BACKOFFICE = Path(__file__).parent.parent
STATIC = BACKOFFICE / "static"
THEMES = ("light", "dark")
# Images of data: URIs are the marks of fields in the base stylesheet; stored texts never become such images.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "Vary": "Cookie, Accept-Language",
}


@cache
def asset(name: str) -> str:
    """Return the address of a static file; it changes with the content, so that browsers may cache it forever."""
    version = sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={version}"


def channel_url(name: str, **query: Any) -> str:
    """Return the address of a channel's page; names may contain slashes."""
    return address(f"/channels/{quote(name, safe='')}", **query)


def address(path: str, **query: Any) -> str:
    """Return a path with its non-empty parameters; a trailing underscore of a name is dropped."""
    given = {name.rstrip("_"): value for name, value in query.items() if value not in (None, "", [])}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def list_parameters(request: Request) -> Mapping[str, str]:
    """Return the parameters of the list next to an opened conversation or run: those in the address's `list`."""
    return dict(parse_qsl(request.query_params.get("list", "")))


def list_beside(request: Request, section: str) -> str | None:
    """Return the `list` of the page that a form or part belongs to, if an item of the section is opened there."""
    page = urlsplit(request.headers.get("referer", ""))
    return dict(parse_qsl(page.query)).get("list") if page.path.startswith(f"/{section}/") else None


def opened(request: Request, path: str, **query: Any) -> str:
    """Return the address of a conversation or run, which a form leads to, next to the same list."""
    return address(path, list=list_beside(request, path.split("/")[1]), **query)


def see_other(address: str) -> RedirectResponse:
    return RedirectResponse(address, 303)


environment = Environment(
    loader=FileSystemLoader(BACKOFFICE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=show_invisible,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,  # looking for changed files takes a twentieth of a search
)
environment.filters |= FILTERS
environment.tests["instant"] = is_instant
environment.globals |= {
    "asset": asset,
    "channel_url": channel_url,
    "address": address,
    "roles_in_words": ROLES,
    "errors_in_words": ERRORS,
}


def render(
    request: Request, template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **context: Any
) -> HTMLResponse:
    page = environment.get_template(template).render(_with_page_context(request, context))
    return HTMLResponse(page, status, {**HEADERS, **(headers or {})})


def _with_page_context(request: Request, context: Mapping[str, Any]) -> dict[str, Any]:
    language = language_of(request)
    translate = translator(language)
    theme = request.cookies.get("theme")
    access: Access | None = request.scope.get("access")
    return {
        "section": None,
        "opened": False,
        "show_deleted": False,
        "place": None,
        "rail": getattr(request.state, "rail", None),
        "here": address(request.url.path, **request.query_params),
        "age": partial(age, now=reader_now(request), language=language),
        **context,
        "lang": language,
        "theme": theme if theme in THEMES else None,
        "zone": zone_state(request),
        "signed_in": COOKIE in request.cookies,
        "is_limited": access is not None and access.is_restricted,  # the machine's own pages are closed to it
        "t": translate,
        "said": sentence_translator(language),
        "tn": counter(translate),
    }


Handler = Callable[[Request, Any], Awaitable[Response]]

# A failed search replaces the old list; any other failed part of a page is shown in a notice.
INTO_TARGET = {"HX-Reswap": "innerHTML", "HX-Reselect": "#problem"}
INTO_NOTICE = {"HX-Retarget": "#notice", **INTO_TARGET}


def add_page_errors(app: FastAPI) -> None:
    """Wrap the error handlers so that browsers get errors as pages."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _as_page(handler))


def _as_page(handler: Any) -> Handler:
    async def answer(request: Request, exc: Any) -> Response:
        envelope: Response = await handler(request, exc)
        return _page(request, envelope, exc) if wants_page(request.headers, request.url.path) else envelope

    return answer


def _page(request: Request, envelope: Response, exc: Exception) -> Response:
    error = json.loads(bytes(envelope.body))["error"]
    if "hx-request" in request.headers:
        is_search = request.method == "GET" and "q" in request.query_params and "cursor" not in request.query_params
        into = INTO_TARGET if is_search else INTO_NOTICE
        return render(request, "problem.html", status=envelope.status_code, headers=into, error=error)
    heals = request.method == "GET" and isinstance(exc, StorageError)
    is_action = request.method == "POST"
    return render(request, "error.html", status=envelope.status_code, error=error, heals=heals, is_action=is_action)
