"""Access tokens as a door checks them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from registry.registry import Registry
from registry.storage.database import ReadTransaction
from registry.storage.safety import tokens
from registry.storage.safety.tokens import Shown as Shown


def list_tokens(tx: ReadTransaction) -> list[dict[str, Any]]:
    """Return all tokens, revoked ones too, newest first; never their secrets."""
    return tokens.list_tokens(tx)


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
        """Record that a token was used just now."""
        await self.registry.write(lambda tx: tokens.note_use(tx, number))
