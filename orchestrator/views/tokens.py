"""Look up and manage access tokens."""

from __future__ import annotations

from dataclasses import dataclass

from registry.registry import Registry
from registry.storage.safety import tokens
from registry.storage.safety.tokens import PREFIX as PREFIX
from registry.storage.safety.tokens import Shown as Shown
from registry.storage.safety.tokens import create_token as create_token
from registry.storage.safety.tokens import has_tokens as has_tokens
from registry.storage.safety.tokens import list_tokens as list_tokens
from registry.storage.safety.tokens import revoke_token as revoke_token


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a registry."""

    registry: Registry

    async def are_required(self) -> bool:
        """Return whether a token exists that was not revoked: then nobody gets in without one."""
        return await self.registry.read(tokens.has_tokens)

    async def find(self, secret: str) -> Shown | None:
        """Return the token with that secret; None if there is none, or it has expired or was revoked."""
        return await self.registry.read(lambda tx: tokens.find_token(tx, secret))

    async def get(self, number: int) -> Shown | None:
        """Return the token of that number, for a browser that has signed in with it; None as in `find`."""
        return await self.registry.read(lambda tx: tokens.get_token(tx, number))

    async def note_use(self, number: int) -> None:
        await self.registry.write(lambda tx: tokens.note_use(tx, number))
