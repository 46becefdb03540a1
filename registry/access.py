"""The permissions of a token. `storage.safety.tokens` stores tokens, `storage.safety.visibility` filters rows."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase

from registry.errors import Unauthorized


class Level(StrEnum):
    """The permission levels of a token; each includes those before it."""

    METRICS = "metrics"  # counters only, without texts: for monitoring systems
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


_LEVELS = list(Level)
# by this message another machine recognises that its token is valid, but not for this channel
CHANNEL_REFUSED = "This token may not touch that channel."


@dataclass(frozen=True, slots=True)
class Access:
    """A token's name, permissions and owner.

    `channels` are patterns for channel names (`*` any characters, `?` one), `projects` patterns for paths and folder
    names. If both are given, a channel must match both. `owner` owns the channels that are created with the token;
    None: this machine's user, whose chats have no owner. Below `admin` a token sees its owner's chats, chats shared
    with it, and chats without an owner.
    """

    name: str
    level: Level
    channels: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    owner: str | None = None
    is_writing: bool = False  # leave out chats that are only shared with the token, because these are for reading
    per_minute: int | None = None  # requests per minute over HTTP, 0: no limit; None: the limit of the settings
    only_own: bool = False
    """At any level, see only the owner's chats: no shared ones, and none without an owner."""

    @property
    def is_restricted(self) -> bool:
        """Return True unless the token sees all chats, or only counters, which reveal none."""
        return bool(self.channels or self.projects) or self.only_own or self.level in (Level.READ, Level.WRITE)

    def as_person(self) -> Access:
        """Return the access to what a person sees without being an admin.

        Even an admin adds no messages to another person's chat, and an admin's machine gets no private chats of others.
        """
        is_person = self.level is Level.ADMIN and self.owner is not None
        return replace(self, level=Level.WRITE) if is_person else self

    def require(self, level: Level, instead: str = "") -> None:
        """Raise Unauthorized if the level is too low; `instead`: the reason and an alternative."""
        if _LEVELS.index(self.level) < _LEVELS.index(level):
            scopes = f"token {self.name!r}: given scope {self.level}; needed: {level}"
            raise Unauthorized("This token may not do that.", "; ".join(filter(None, [scopes, instead])))

    def require_everything(self) -> None:
        """Raise Unauthorized unless the token sees everything."""
        if self.is_restricted:
            raise Unauthorized(
                "This token may not see that.",
                f"token {self.name!r} is for {self.extent}; needed: scope admin, for all",
            )

    def may_name(self, channel: str) -> bool:
        """Return True if the token's patterns allow a channel of that name, whether it exists or not."""
        return not self.channels or any(fnmatchcase(channel, pattern.replace("[", "[[]")) for pattern in self.channels)

    @property
    def extent(self) -> str:
        """Return the token's channel and project patterns in words."""
        parts = [("channels", self.channels), ("projects", self.projects)]
        words = [f"{name} {', '.join(map(repr, given))}" for name, given in parts if given]
        return " in ".join(words) or "its owner's chats"

    def channel_refusal(self) -> Unauthorized:
        """Return the error for a channel outside the patterns: the same whether the channel exists or not."""
        return Unauthorized(CHANNEL_REFUSED, f"token {self.name!r} is for {self.extent}")


def restrict_to_owner(owner: str, access: Access | None) -> Access:
    """Return the access (None: everything) restricted to the chats of one person."""
    return replace(access or Access("", Level.ADMIN), owner=owner, only_own=True)


# access of the current HTTP request's token; None if no token is needed
CURRENT_ACCESS: ContextVar[Access | None] = ContextVar("CURRENT_ACCESS", default=None)
