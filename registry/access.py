"""Who may do what: what a token allows, as a value. Pure; the tokens are in `storage.tokens`, what is seen in
`storage.safety.visibility`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum

from registry.errors import Unauthorized


class Level(StrEnum):
    """What a token may do; each level holds those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


_LEVELS = list(Level)
NOT_YOURS = "This token may not touch that channel."
"""By this another machine knows that its token is good, but for other channels."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks, by the name of the token, and what it allows.

    `channels` are patterns of channels' names (`*` any letters, `?` one), `projects` paths or folder names. Where both
    are given a channel must meet both; where neither is, everything is allowed.
    """

    name: str
    level: Level
    channels: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()

    @property
    def is_restricted(self) -> bool:
        """Whether there may be something that it does not let see."""
        return bool(self.channels or self.projects)

    def require(self, level: Level, instead: str = "") -> None:
        """Unauthorized if this does not allow so much; `instead`: why, and what can be done without."""
        if _LEVELS.index(self.level) < _LEVELS.index(level):
            scopes = f"token {self.name!r}: given scope {self.level}; needed: {level}"
            raise Unauthorized("This token may not do that.", "; ".join(filter(None, [scopes, instead])))

    def require_everything(self) -> None:
        """Unauthorized if this is for some channels only."""
        if self.is_restricted:
            raise Unauthorized(
                "This token may not see that.", f"token {self.name!r} is for {self.extent}; needed: one for all"
            )

    def may_name(self, channel: str) -> bool:
        """Whether a channel of that name can be one of those allowed, whatever there is."""
        return not self.channels or any(_expression(pattern).fullmatch(channel) for pattern in self.channels)

    @property
    def extent(self) -> str:
        """What it is for, in words."""
        parts = [("channels", self.channels), ("projects", self.projects)]
        return " in ".join(f"{name} {_listed(given)}" for name, given in parts if given) or "everything"

    def not_yours(self) -> Unauthorized:
        """The refusal of a channel, the same whether there is such a channel or not."""
        return Unauthorized(NOT_YOURS, f"token {self.name!r} is for {self.extent}")


ASKING: ContextVar[Access | None] = ContextVar("ASKING", default=None)
"""What the token of the HTTP request that is being answered allows; None where none is needed."""


def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile("".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in pattern), re.DOTALL)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words))
