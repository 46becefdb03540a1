"""Define the record of an operation. Each operation has its own file in `operations/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.requests.shapes import Request
from orchestrator.state import Steps
from orchestrator.tool import Tool
from registry.access import Access, Level


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation:
    """An operation with its request, its work at each node, and the tools that run it."""

    request: type[Request]
    level: Level
    """The permission a token needs. A request that deletes for good needs `admin`, whatever this says."""
    steps: Steps[Any, Any]
    alias: str = ""
    syncs_first: bool = False
    """Sync the clients' stores before reading."""
    is_local: bool = False
    """Work on files of this machine, or on the whole registry: not over HTTP, and only for unrestricted tokens."""
    is_internal: bool = False
    """Not for doors: only this program requests it."""
    needs_everything: bool = False
    """Only for tokens without restrictions."""
    is_log: bool = False
    """Store what somebody said: an admin, too, adds it to no chat of another person."""
    names_channel: bool = False
    """Change the channel of exactly the given name, whether it exists or not."""
    instead: str = ""
    """For refusals: why it is not done over HTTP, and what to run."""
    tools: Sequence[Tool] = ()
    labels: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Labels of this request's own fields, in English and Korean; `labels.toml` has the shared ones."""

    @property
    def name(self) -> str:
        return self.request.operation

    @property
    def has_query(self) -> bool:
        return "query" in self.request.model_fields

    def check(self, request: Request, access: Access) -> None:
        """Raise Unauthorized if a token does not allow a request."""
        access.require(Level.ADMIN if request.is_for_good else self.level, self.instead)
        if request.is_for_good or self.needs_everything or self.is_local:
            access.require_everything()
