"""Who comes in: the token that a request shows, or the session it has signed in to, and what that allows.

What is allowed then holds by itself: the routes get the registry as the token lets see it (`dependencies`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backoffice.errors import failure, rpc_failure, wants_page
from backoffice.middleware import READING
from orchestrator.views.tokens import Shown, Tokens
from registry.access import ASKING, Access, Level
from registry.errors import RegistryError, StorageError, Unauthorized
from registry.log import Outage
from registry.registry import Registry

T = TypeVar("T")

logger = logging.getLogger(__name__)

COOKIE = "ctxr_session"
SESSION_S = 12 * 3600
MOST_SESSIONS = 1000
CODE_S = 3600
RECHECK_S = 5.0
"""What goes on and on (events) ends so soon after its token was revoked."""

OPEN = ("/health", "/ready", "/login", "/static/", "/.well-known/")
"""These tell nothing of what is kept."""

FIGURES, MCP = "/metrics", "/mcp"

THIS_USER = Access("(this user)", Level.ADMIN)
"""Whoever shows the secret that only this machine's user can read. No token can be called so."""

Verify = Callable[[str], Awaitable[Access | None]]
"""What a token that was made elsewhere allows; None if it is not good."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How one is let in, by the settings of the server.

    `is_open`: without any tokens, everybody who reaches it. `secret`: this machine's user's own. `verify`: tokens of
    an OAuth issuer, which `metadata_url` names. `is_secure`: browsers reach it over TLS. `known_as`: the
    host by which a proxy makes the server known. `origins`: whose scripts may use the API as if they were ours.
    """

    is_open: bool = True
    secret: str = ""
    verify: Verify | None = None
    metadata_url: str = ""
    is_secure: bool = False
    known_as: str = ""
    origins: tuple[str, ...] = ()


ON_LOOPBACK = Rules()


class Credential(NamedTuple):
    """A credential that was accepted: the number of one of our tokens (None for others), and what it allows."""

    number: int | None
    access: Access


@dataclass
class Sessions:
    """Browsers that have signed in, until the server ends; and codes that let one sign in once."""

    _known: dict[bytes, tuple[float, Credential]] = field(default_factory=dict)
    _codes: dict[bytes, float] = field(default_factory=dict)

    def begin(self, credential: Credential) -> str:
        """A new session's key."""
        key = secrets.token_urlsafe(32)
        if len(self._known) >= MOST_SESSIONS:
            self._known.pop(next(iter(self._known)))
        self._known[_digest(key)] = time.monotonic() + SESSION_S, credential
        return key

    def find(self, key: str) -> Credential | None:
        """Return the credential of the session with that key; None if it is over."""
        until, credential = self._known.get(_digest(key), (0.0, None))
        return credential if time.monotonic() < until else None

    def end(self, key: str) -> None:
        """Sign out."""
        self._known.pop(_digest(key), None)

    def new_code(self) -> str:
        """A code for this machine's user that is good once, for an hour."""
        code = secrets.token_urlsafe(24)
        self._codes[_digest(code)] = time.monotonic() + CODE_S
        return code

    def take_code(self, code: str) -> bool:
        """Return whether that code is good; from now on it is not."""
        return time.monotonic() < self._codes.pop(_digest(code), 0.0)


class Gate:
    """Knows who is let in."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.sessions = rules, Sessions()
        self._noting: set[asyncio.Task[None]] = set()
        self._outage = Outage(
            logger, begun="The registry does not say who may come in", over="The registry says again who may come in"
        )
        self._issuer_outage = Outage(
            logger, begun="The issuer of tokens does not answer", over="The issuer of tokens answers again"
        )

    async def admit(self, registry: Registry, method: str, headers: Headers) -> Access | None:
        """Return what the request's token allows, None where none is needed; Unauthorized if it has no valid one."""
        given = headers.get("authorization")
        if given is not None:
            return await self._bearer(registry, given)
        key = cookie_parser(headers.get("cookie", "")).get(COOKIE)
        signed_in = await self._signed_in(registry, key) if key else None
        if signed_in:
            _check_origin(method, headers)
            return signed_in
        if (
            self.rules.is_open
            and not self.rules.secret
            and not await _noting_outage(Tokens(registry).are_required(), self._outage)
        ):
            return None
        raise Unauthorized("A token is needed.", "Authorization: Bearer …; `ctxr token create` makes one")

    async def _bearer(self, registry: Registry, given: str) -> Access:
        kind, _, secret = given.partition(" ")
        if kind.lower() == "bearer":
            credential = await self.recognise(registry, secret.strip())
            access = credential.access if credential else await self._made_elsewhere(secret.strip())
            if access:
                return access
        raise Unauthorized("The token is not good.", "Authorization: it is unknown, revoked or expired")

    async def _made_elsewhere(self, token: str) -> Access | None:
        return await _noting_outage(self.rules.verify(token), self._issuer_outage) if self.rules.verify else None

    async def recognise(self, registry: Registry, secret: str) -> Credential | None:
        """Return what one of our tokens, or this user's secret, allows; None if it is not valid."""
        if self.rules.secret and compare_digest(secret.encode(), self.rules.secret.encode()):
            return Credential(None, THIS_USER)
        return self._noted(registry, await _noting_outage(Tokens(registry).find(secret), self._outage))

    async def _signed_in(self, registry: Registry, key: str) -> Access | None:
        credential = self.sessions.find(key)
        if credential is None or credential.number is None:
            return credential and credential.access
        number = credential.number
        found = await _noting_outage(Tokens(registry).get(number), self._outage)
        shown = self._noted(registry, found)
        return shown and shown.access

    def _noted(self, registry: Registry, shown: Shown | None) -> Credential | None:
        """Keep when a token was used; nobody waits for that."""
        if shown and shown.is_use_news:
            noting = asyncio.create_task(_note(registry, shown.number))
            self._noting.add(noting)
            noting.add_done_callback(self._noting.discard)
        return Credential(shown.number, shown.access) if shown else None


class Admission:
    """Lets in whom the gate does; says 401 to others, or sends a browser to the page to sign in."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app, self._gate = app, gate
        self._watching: dict[bytes, Access | None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with what its token allows, or refuse it."""
        if scope["type"] != "http" or scope["path"].startswith(OPEN):
            await self._app(scope, receive, send)
            return
        try:
            scope["access"] = access = await self._admitted_to_watch(scope)
        except Unauthorized as exc:
            await self._refusal(scope, exc)(scope, receive, send)
            return
        except RegistryError as exc:
            await (await self._failure(scope, receive, exc))(scope, receive, send)
            return
        asking = ASKING.set(access)
        try:
            await self._app(scope, self._while_admitted(scope, receive) if access else receive, send)
        finally:
            ASKING.reset(asking)

    async def _failure(self, scope: Scope, receive: Receive, exc: RegistryError) -> Response:
        """While nobody can tell who asks, where the database is hears only who may be anybody."""
        told = exc if self._gate.rules.is_open else type(exc)(exc.message, "The server's log says why.")
        if scope["path"] == MCP or scope["path"].startswith(f"{MCP}/"):
            return rpc_failure(told)
        answer: Response = await scope["app"].exception_handlers[RegistryError](Request(scope, receive), told)
        return answer

    async def _admitted_to_watch(self, scope: Scope) -> Access | None:
        if scope["path"] != FIGURES:
            return await self._admitted(scope)
        given = Headers(scope=scope).get("authorization", "")
        shown = _digest(given)
        try:
            access = await self._admitted(scope)
        except Unauthorized:
            self._watching.pop(shown, None)
            raise
        except RegistryError:
            if shown not in self._watching:
                raise
            return self._watching[shown]
        if given or access is None:  # never for who came by a cookie, which others would not have to show
            self._watching[shown] = access
        return access

    async def _admitted(self, scope: Scope) -> Access | None:
        registry: Registry = scope["app"].state.orchestrator.registry
        return await self._gate.admit(registry, scope["method"], Headers(scope=scope))

    def _while_admitted(self, scope: Scope, receive: Receive) -> Receive:
        async def watched() -> Message:
            coming = asyncio.ensure_future(receive())
            try:
                while not (await asyncio.wait([coming], timeout=RECHECK_S))[0]:
                    with suppress(StorageError):
                        await self._admitted(scope)
                return coming.result()
            except Unauthorized:
                return {"type": "http.disconnect"}
            finally:
                coming.cancel()

        return watched

    def _refusal(self, scope: Scope, refused: Unauthorized) -> Response:
        headers = Headers(scope=scope)
        if wants_page(headers, scope["path"]):
            if "hx-request" in headers:
                return Response(status_code=401, headers={"HX-Redirect": "/login"})
            query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
            back = f"?next={quote(scope['path'] + query)}" if scope["method"] in READING else ""
            return RedirectResponse(f"/login{back}", 303)
        url = self._gate.rules.metadata_url
        parts = ['realm="context-registry"']
        parts += ['error="invalid_token"'] if "authorization" in headers else []
        parts += [f'resource_metadata="{url}"'] if url else []
        return failure(refused.as_dict(), headers={"WWW-Authenticate": f"Bearer {', '.join(parts)}"})


async def _noting_outage(answer: Awaitable[T], outage: Outage) -> T:
    """The answer. Why there is none the log says once: who is not let in does not hear it."""
    asked_at = time.monotonic()
    try:
        found = await answer
    except RegistryError as exc:
        outage.begins(f"{exc.message} {exc.details}", asked_at)
        raise
    if found is not None:  # what looks like no token at all is not asked about
        outage.is_over()
    return found


async def _note(registry: Registry, number: int) -> None:
    try:
        await Tokens(registry).note_use(number)
    except StorageError:
        return  # the next use will be noted


def _check_origin(method: str, headers: Headers) -> None:
    """A browser sends its cookie along with whatever makes it ask: what changes something must say where it is from."""
    if method not in READING and headers.get("origin") is None:
        raise Unauthorized("The request does not say which page it comes from.", "Origin: missing; allowed: this host")


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
