"""What a request needs: the level of a token that may ask it, and whether it names a channel of others. Pure."""

from __future__ import annotations

from orchestrator.requests.operation_names import LOCAL, Operation
from orchestrator.requests.shapes import DeleteRequest, Request
from registry.access import Access, Level

READ = frozenset(
    {
        *(Operation.EXTRACT, Operation.SEARCH, Operation.SEARCH_SESSIONS, Operation.LIST, Operation.FETCH),
        *(Operation.NOTE, Operation.COMPLETE),
    }
)
"""These take a token to read; of the others these take one to administer, and all the rest one to write."""
INSTEAD = {
    Operation.RESUME: "it writes a client's session on the server; run ctxr resume on the machine of the client",
    Operation.BLAME: "it runs git in a folder of the server; run ctxr blame on the machine where the repository is",
}
"""What a token to administer is needed for because it reaches beyond the registry; and what does without."""
ADMIN = LOCAL | set(INSTEAD)


def check(request: Request, access: Access) -> None:
    """Unauthorized if a token does not allow a request.

    Who forgets something for good forgets it in the records of all who have read it, so it takes a token for all. What
    git knows of a folder belongs to no channel, so that takes one, too.
    """
    access.require(level_of(request), INSTEAD.get(request.operation, ""))
    if is_for_good(request) or request.operation in LOCAL | {Operation.BLAME}:
        access.require_everything()


def level_of(request: Request) -> Level:
    """Return the level a request needs: irreversible or outgoing ones more than writes, writes more than reads."""
    if is_for_good(request) or request.operation in ADMIN:
        return Level.ADMIN
    return Level.READ if request.operation in READ else Level.WRITE


def is_for_good(request: Request) -> bool:
    """Return whether it deletes what cannot be restored."""
    return isinstance(request, DeleteRequest) and not request.query.soft


def is_of_others(request: Request, access: Access) -> bool:
    """Return whether it names a channel that cannot be one of the token's, be there such a channel or not."""
    return request.channel is not None and not access.may_name(request.channel)
