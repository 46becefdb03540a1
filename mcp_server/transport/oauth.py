"""`/mcp` as an OAuth 2.1 protected resource: its metadata document, and the verification of tokens.

Imported only if the settings name an issuer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from mcp.server.auth.routes import create_protected_resource_routes
from pydantic import AnyHttpUrl
from starlette.routing import Route

from orchestrator.outside.issuer import SCOPES, Issuer
from registry.access import Access
from registry.errors import Unauthorized

logger = logging.getLogger(__name__)

Verify = Callable[[str], Awaitable[Access | None]]


def resource_routes(resource: str, issuer: str) -> list[Route]:
    """Return the metadata document of the resource (RFC 9728)."""
    return create_protected_resource_routes(
        AnyHttpUrl(resource), [AnyHttpUrl(issuer)], list(SCOPES), resource_name="Context Registry"
    )


def verifier_of(issuer: Issuer, resource: str) -> Verify:
    """Return a function that returns the access that a token grants; None if it is not valid for `resource`."""

    async def verify(token: str) -> Access | None:
        if token.count(".") != 2:
            return None
        try:
            claims = await asyncio.to_thread(issuer.claims_of, token, resource)
        except Unauthorized as exc:
            logger.info("A token of %s was refused: %s", issuer.address, exc.details)
            return None
        return issuer.access_of(claims)

    return verify
