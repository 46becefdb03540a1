"""What a client offers while its user types a prompt's argument or a channel's name."""

from __future__ import annotations

from typing import Any

from mcp.server import MCPServer
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from orchestrator.field_types import NameKind
from orchestrator.lazy import RunOperation
from orchestrator.queries import CompleteQuery
from orchestrator.requests import CompleteRequest

MOST = 100
"""The protocol takes no more."""
KINDS: dict[tuple[str | None, str], NameKind] = {
    ("load", "nickname"): "session",
    ("elsewhere", "session"): "session",
    ("tag", "tags"): "tag",
    (None, "channel"): "channel",
}
"""By prompt (None: a resource) and argument, the kind of its names."""


def add_completion(server: MCPServer[Any], run: RunOperation) -> None:
    """Publish the completion of nicknames, ids, tags and channels."""

    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        kind = KINDS.get((ref.name if isinstance(ref, PromptReference) else None, argument.name))
        if kind is None:
            return None
        before, comma, begun = argument.value.rpartition(",") if kind == "tag" else ("", "", argument.value)
        query = CompleteQuery(kind=kind, text=begun.strip(), limit=MOST)
        outcome = await run(CompleteRequest(query=query), None)
        names = outcome["names"] if outcome["success"] else []
        return Completion(values=[f"{before}{comma}{name}" for name in names], total=len(names), has_more=False)

    server.completion()(complete)  # type: ignore[no-untyped-call]
