"""`/mcp` as an OAuth 2.1 protected resource: the document that says who makes tokens for it, and their verification.

The tokens are JWTs of one issuer that the settings name; its keys are read from where its metadata says. Only who has
named an issuer loads this.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import jwt
from mcp.server.auth.routes import create_protected_resource_routes
from pydantic import AnyHttpUrl
from starlette.routing import Route

from registry.access import Access, Level
from registry.errors import StorageError

logger = logging.getLogger(__name__)

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""With a public key each: an issuer's key must never be a secret that we share."""
REQUIRED = ("exp", "iss", "aud", "sub")
SCOPES = {f"registry:{level}": level for level in (Level.READ, Level.WRITE, Level.ADMIN)}
"""The scopes that we know, and what they allow; of several the largest holds."""
CHANNELS, PROJECTS = "registry_channels", "registry_projects"
"""Claims that restrict a token to some channels or projects, as `ctxr token create` does."""
PATIENCE_S = 5.0

Verify = Callable[[str], Awaitable[Access | None]]


def resource_routes(resource: str, issuer: str) -> list[Route]:
    """Return the metadata document of the resource (RFC 9728)."""
    return create_protected_resource_routes(
        AnyHttpUrl(resource), [AnyHttpUrl(issuer)], list(SCOPES), resource_name="Context Registry"
    )


def verifier_of(issuer: str, resource: str) -> Verify:
    """Return what an issuer's token allows; None if it is not valid, or not made for this resource."""
    issuing = _Issuer(issuer)

    async def verify(token: str) -> Access | None:
        if token.count(".") != 2:
            return None
        try:
            claims = await asyncio.to_thread(issuing.claims_of, token, resource)
        except jwt.PyJWKClientConnectionError as exc:
            raise StorageError("The issuer of tokens cannot be reached.", f"CTXR_OAUTH_ISSUER: {exc}") from exc
        except jwt.PyJWTError as exc:
            logger.info("A token of %s was refused: %s", issuer, exc)
            return None
        return access_of(claims)

    return verify


def access_of(claims: Mapping[str, Any]) -> Access | None:
    """Return what a token's claims allow; None without one of our scopes."""
    given = claims.get("scope", claims.get("scp", ()))
    levels = [SCOPES[name] for name in (given.split() if isinstance(given, str) else given) if name in SCOPES]
    if not levels:
        return None
    largest = max(levels, key=list(Level).index)
    channels, projects = (_words(claims, name) for name in (CHANNELS, PROJECTS))
    if channels is None or projects is None:
        return None
    name = f"oauth:{claims['sub']}"
    return Access(name, largest, channels, projects, owner=name)


def _words(claims: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    """Return the texts of a claim; None if it is no list of texts: a restriction is never ignored."""
    if name not in claims:
        return ()
    given = claims[name]
    is_list = isinstance(given, Sequence) and not isinstance(given, str) and bool(given)
    return tuple(given) if is_list and all(isinstance(one, str) and one.isprintable() for one in given) else None


def _is_private(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".internal"))


class _Issuer:
    """An authorization server, and its keys as it publishes them."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._keys: jwt.PyJWKClient | None = None

    def claims_of(self, token: str, audience: str) -> dict[str, Any]:
        if self._keys is None:
            self._keys = jwt.PyJWKClient(self._address_of_keys(), timeout=PATIENCE_S)
        key = self._keys.get_signing_key_from_jwt(token)
        return jwt.decode(
            token,
            key,
            algorithms=ALGORITHMS,
            audience=audience,
            issuer=[self._address, f"{self._address}/"],
            leeway=30,
            options={"require": list(REQUIRED)},
        )

    def _address_of_keys(self) -> str:
        parts = urlsplit(self._address)
        well_known = f"/.well-known/oauth-authorization-server{parts.path}"  # RFC 8414, then OpenID Connect
        there = urlunsplit((parts.scheme, parts.netloc, well_known, "", ""))
        for address in (there, f"{self._address}/.well-known/openid-configuration"):
            try:
                answer = httpx.get(address, timeout=PATIENCE_S)
                found = answer.json() if answer.is_success else {}
            except (httpx.HTTPError, ValueError) as exc:
                raise jwt.PyJWKClientConnectionError(f"{address}: {exc}") from exc
            if isinstance(found.get("jwks_uri"), str) and str(found.get("issuer")).rstrip("/") == self._address:
                return self._sound(str(found["jwks_uri"]))
        raise jwt.PyJWKClientConnectionError(f"{self._address} publishes no metadata of an issuer of that name")

    def _sound(self, address: str) -> str:
        """Return the address of the keys. It may be in a private network only where the issuer itself is."""
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise jwt.PyJWKClientConnectionError(f"{address} is no web address")
        if parts.hostname != urlsplit(self._address).hostname and _is_private(parts.hostname):
            raise jwt.PyJWKClientConnectionError(f"{address} is a private address, and {self._address} is not")
        return address
