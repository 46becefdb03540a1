"""Authentication: bearer tokens and browser sessions.

Authorisation is enforced elsewhere: routes get a registry restricted to what the token may see (`dependencies`).
"""

import asyncio
import hmac
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backoffice.errors import failure, mark_retryable, rpc_failure, wants_page
from backoffice.middleware import SAFE_METHODS
from backoffice.quotas import Quotas
from orchestrator.outside.sign_in import SignIn
from orchestrator.views import tokens
from registry.access import CURRENT_ACCESS, Access, Level
from registry.errors import InvalidRequest, RegistryError, StorageError, Unauthorized
from registry.log import Outage
from registry.registry import Registry

T = TypeVar("T")

logger = logging.getLogger(__name__)

COOKIE = "ctxr_session"
SESSION_S = 12 * 3600
CODE_S = 3600  # a sign-in code is valid for an hour
RECHECK_S = 5.0  # an open event stream ends within this time after its token was revoked, or its access changed
# Addresses that need no credential, because they reveal nothing that is stored.
OPEN_PATHS = ("/health", "/ready", "/login", "/static/", "/.well-known/")
OAUTH_CALLBACK = "/login/oauth/done"  # the issuer sends browsers back to it
METRICS_PATH = "/metrics"  # the only path for a token of scope `metrics`
# The owner of this machine, known by a secret file. The name is not allowed for tokens.
THIS_USER = Access("(this user)", Level.ADMIN, per_minute=0)
# Checks a token of another issuer; None if it is not valid.
Verify = Callable[[str], Awaitable[Access | None]]


@dataclass(frozen=True, slots=True)
class AdmissionRules:
    """The server's admission settings.

    `is_open`: no credential is needed while no token exists. `secret`: the secret of this machine's user.
    `verify`: checks tokens of the OAuth issuer named by `metadata_url`. `sign_in`: signs people in there.
    `is_secure`: browsers connect over TLS.
    `known_as`: the host name under which a proxy publishes the server. `origins`: sites allowed to use the API.
    `per_minute`: requests that a token may make, as CTXR_REQUESTS_PER_MINUTE.
    """

    is_open: bool = True
    secret: str = ""
    verify: Verify | None = None
    sign_in: SignIn | None = None
    metadata_url: str = ""
    is_secure: bool = False
    known_as: str = ""
    origins: tuple[str, ...] = ()
    per_minute: int = 0


ON_LOOPBACK = AdmissionRules()


class Credential(NamedTuple):
    """An accepted credential; `number` is None unless it is one of our own tokens."""

    number: int | None
    access: Access


@dataclass
class Sessions:
    """Sessions of browsers, which the registry stores, and used sign-in codes."""

    _in_memory: dict[str, tuple[float, Credential]] = field(default_factory=dict)  # for a read-only registry
    _used_codes: set[str] = field(default_factory=set)  # the same

    async def begin(self, registry: Registry, credential: Credential) -> str:
        """Start a session and return its key."""
        if not registry.is_read_only:
            return await registry.write(lambda tx: tokens.begin_session(tx, *credential, SESSION_S))
        now, key = time.monotonic(), secrets.token_urlsafe(32)
        self._in_memory = {other: session for other, session in self._in_memory.items() if session[0] > now}
        self._in_memory[key] = now + SESSION_S, credential
        return key

    async def find(self, registry: Registry, key: str) -> tokens.ValidToken | Access | None:
        """Return the session's token or access; None if it has ended."""
        if not registry.is_read_only:
            return await registry.read(lambda tx: tokens.find_session(tx, key))
        until, credential = self._in_memory.get(key, (0.0, None))
        if credential is None or time.monotonic() >= until:
            return None
        number = credential.number
        return credential.access if number is None else await registry.read(lambda tx: tokens.get_token(tx, number))

    async def renew(self, registry: Registry, person: str, access: Access | None) -> None:
        """Give a person's sessions the access that the issuer grants now; None: end them."""
        if not registry.is_read_only:
            await registry.write(lambda tx: tokens.renew_sessions(tx, person, access))
            return
        for key, (until, credential) in list(self._in_memory.items()):
            if credential.number is None and credential.access.name == person:
                del self._in_memory[key]
                if access:
                    self._in_memory[key] = until, Credential(None, access)

    async def end(self, registry: Registry, key: str) -> None:
        if registry.is_read_only:
            self._in_memory.pop(key, None)
        else:
            await registry.write(lambda tx: tokens.end_session(tx, key))

    async def take_code(self, registry: Registry, code: str, secret: str) -> bool:
        """Return whether a sign-in code is valid, and mark it as used."""
        payload, _, signature = code.rpartition(".")
        until = payload.partition(".")[0]
        is_signed = bool(secret) and compare_digest(signature.encode(), _signature(payload, secret).encode())
        if not is_signed or time.time() > int(until):
            return False
        if not registry.is_read_only:
            return await registry.write(lambda tx: tokens.use_code(tx, code, CODE_S))
        is_new = code not in self._used_codes
        self._used_codes.add(code)
        return is_new


def sign_in_code(secret: str) -> str:
    """Return a sign-in code for this machine's user, who can read the secret: valid once and for an hour."""
    payload = f"{int(time.time()) + CODE_S}.{secrets.token_urlsafe(16)}"
    return f"{payload}.{_signature(payload, secret)}"


def _signature(payload: str, secret: str) -> str:
    return hmac.digest(secret.encode(), payload.encode(), "sha256").hex()


class Gate:
    def __init__(self, rules: AdmissionRules) -> None:
        self.rules, self.sessions, self.quotas = rules, Sessions(), Quotas(rules.per_minute)
        self._recording: set[asyncio.Task[None]] = set()
        self._outage = Outage(
            logger,
            begun="Tokens cannot be checked, because the registry does not answer",
            over="Tokens can be checked again",
        )
        self._issuer_outage = Outage(
            logger,
            begun="The issuer of tokens does not answer",
            over="The issuer of tokens answers again",
        )

    async def admit(self, registry: Registry, method: str, headers: Headers) -> Access | None:
        """Return what the request's credential allows, None if none is needed; raise Unauthorized if it is missing."""
        given = headers.get("authorization")
        if given is not None:
            return await self._bearer_access(registry, given)
        key = cookie_parser(headers.get("cookie", "")).get(COOKIE)
        session_access = await self._session_access(registry, key) if key else None
        if session_access:
            _check_origin(method, headers)
            return session_access
        if self.rules.is_open and not await _log_outage(registry.read(tokens.has_tokens), self._outage):
            return None
        raise Unauthorized("A token is needed.", "Authorization: Bearer …; `ctxr token create` makes one")

    async def _bearer_access(self, registry: Registry, given: str) -> Access:
        kind, _, secret = given.partition(" ")
        if kind.lower() == "bearer":
            credential = await self.recognise(registry, secret.strip())
            access = credential.access if credential else await self._issuer_access(secret.strip())
            if access:
                return access
        raise Unauthorized("The token is not valid.", "Authorization: it is unknown, revoked or expired")

    async def _issuer_access(self, token: str) -> Access | None:
        return await _log_outage(self.rules.verify(token), self._issuer_outage) if self.rules.verify else None

    async def recognise(self, registry: Registry, secret: str) -> Credential | None:
        """Check one of our tokens or this user's secret; None if it is not valid."""
        if self.rules.secret and compare_digest(secret.encode(), self.rules.secret.encode()):
            return Credential(None, THIS_USER)
        reading = registry.read(lambda tx: tokens.find_token(tx, secret))
        return self._with_use_recorded(registry, await _log_outage(reading, self._outage))

    async def _session_access(self, registry: Registry, key: str) -> Access | None:
        found = await _log_outage(self.sessions.find(registry, key), self._outage)
        if found is None or isinstance(found, Access):
            return found
        shown = self._with_use_recorded(registry, found)
        return shown and shown.access

    def _with_use_recorded(self, registry: Registry, shown: tokens.ValidToken | None) -> Credential | None:
        if shown and shown.is_use_unrecorded:
            recording = asyncio.create_task(_record_use(registry, shown.number))
            self._recording.add(recording)
            recording.add_done_callback(self._recording.discard)
        return Credential(shown.number, shown.access) if shown else None


class Admission:
    """Middleware that answers 401, or sends a browser to the sign-in page, unless the gate admits the request.

    A token that exceeds its request limit gets 429.
    """

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app, self._gate = app, gate
        self._metrics_access: dict[bytes, Access | None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(OPEN_PATHS):
            await self._app(scope, receive, send)
            return
        try:
            scope["access"] = access = await self._admit_scrape(scope)
        except Unauthorized as exc:
            await self._unauthorized(scope, exc)(scope, receive, send)
            return
        except RegistryError as exc:
            await (await self._failure(scope, receive, exc))(scope, receive, send)
            return
        if access and (wait_s := self._gate.quotas.take(access)):
            await (await self._rate_limited(scope, receive, access, math.ceil(wait_s)))(scope, receive, send)
            return
        context_token = CURRENT_ACCESS.set(access)
        try:
            await self._app(scope, self._recheck_while_open(scope, receive) if access else receive, send)
        finally:
            CURRENT_ACCESS.reset(context_token)

    async def _failure(self, scope: Scope, receive: Receive, exc: RegistryError) -> Response:
        """Answer an outage; the database's address is hidden from callers who could not be authenticated."""
        error = exc if self._gate.rules.is_open else type(exc)(exc.message, "The server's log says why.")
        answer = await self._answer(scope, receive, error)
        is_shared = not scope["app"].state.orchestrator.registry.is_embedded
        if is_shared and isinstance(exc, StorageError) and scope["method"] not in SAFE_METHODS and not _is_mcp(scope):
            mark_retryable(answer)
        return answer

    async def _rate_limited(self, scope: Scope, receive: Receive, access: Access, wait_s: int) -> Response:
        limit = self._gate.quotas.limit_of(access)
        details = f"token {access.name!r}: allowed {limit} requests a minute; ask again in {wait_s} s"
        answer = await self._answer(
            scope, receive, InvalidRequest("This token has reached its request limit.", details)
        )
        answer.status_code, answer.headers["Retry-After"] = 429, str(wait_s)
        return answer

    async def _answer(self, scope: Scope, receive: Receive, error: RegistryError) -> Response:
        """Return an error in the format of the address: JSON-RPC, JSON or a page."""
        if _is_mcp(scope):
            return rpc_failure(error)
        answer: Response = await scope["app"].exception_handlers[RegistryError](Request(scope, receive), error)
        return answer

    async def _admit_scrape(self, scope: Scope) -> Access | None:
        if scope["path"] != METRICS_PATH:
            return await self._admit(scope)
        given = Headers(scope=scope).get("authorization", "")
        digest = _digest(given)
        try:
            access = await self._admit(scope)
        except Unauthorized:
            self._metrics_access.pop(digest, None)
            raise
        except RegistryError:
            if digest not in self._metrics_access:
                raise
            return self._metrics_access[digest]
        if given or access is None:  # not for a cookie: every request without a header would match its digest
            self._metrics_access[digest] = access
        return access

    async def _admit(self, scope: Scope) -> Access | None:
        registry: Registry = scope["app"].state.orchestrator.registry
        access = await self._gate.admit(registry, scope["method"], Headers(scope=scope))
        if access and scope["path"] != METRICS_PATH:
            access.require(Level.READ)
        return access

    def _recheck_while_open(self, scope: Scope, receive: Receive) -> Receive:
        asked = {**scope}  # the application at /mcp puts itself into the scope as `app`

        async def receive_rechecked() -> Message:
            message = asyncio.ensure_future(receive())
            try:
                while not (await asyncio.wait([message], timeout=RECHECK_S))[0]:
                    with suppress(StorageError):
                        if await self._admit(asked) != asked["access"]:  # the next request gets the new one
                            return {"type": "http.disconnect"}
                return message.result()
            except Unauthorized:
                return {"type": "http.disconnect"}
            finally:
                message.cancel()

        return receive_rechecked

    def _unauthorized(self, scope: Scope, refused: Unauthorized) -> Response:
        headers = Headers(scope=scope)
        if wants_page(headers, scope["path"]):
            if "hx-request" in headers:
                page = urlsplit(headers.get("referer", ""))._replace(scheme="", netloc="")
                return Response(status_code=401, headers={"HX-Redirect": f"/login?next={quote(page.geturl())}"})
            query = f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
            back = f"?next={quote(scope['path'] + query)}" if scope["method"] in SAFE_METHODS else ""
            return RedirectResponse(f"/login{back}", 303)
        url = self._gate.rules.metadata_url
        parts = ['realm="context-registry"']
        parts += ['error="invalid_token"'] if "authorization" in headers else []
        parts += [f'resource_metadata="{url}"'] if url else []
        return failure(refused.as_dict(), headers={"WWW-Authenticate": f"Bearer {', '.join(parts)}"})


def _is_mcp(scope: Scope) -> bool:
    path: str = scope["path"]
    return path == "/mcp" or path.startswith("/mcp/")


async def _log_outage(answer: Awaitable[T], outage: Outage) -> T:
    """Await an answer and log an outage once; its cause is not shown to refused callers."""
    asked_at = time.monotonic()
    try:
        found = await answer
    except RegistryError as exc:
        outage.begin(f"{exc.message} {exc.details}", asked_at)
        raise
    if found is not None:  # None does not prove that it answers: a malformed token is not looked up
        outage.end()
    return found


async def _record_use(registry: Registry, number: int) -> None:
    try:
        await registry.write(lambda tx: tokens.note_use(tx, number))
    except StorageError:
        return  # the next use will be noted


def _check_origin(method: str, headers: Headers) -> None:
    """Require an Origin header for changes made with a cookie, which browsers also send from foreign pages."""
    if method not in SAFE_METHODS and headers.get("origin") is None:
        raise Unauthorized("The request does not say which page it comes from.", "Origin: missing; allowed: this host")


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
