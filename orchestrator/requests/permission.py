"""What a request needs: the level of a token that may ask it, and whether it names a channel of others. Pure."""

from __future__ import annotations

from orchestrator.requests.operation_names import FACTS
from orchestrator.requests.shapes import DeleteRequest, Request
from registry.access import Access, Level


def check(request: Request, access: Access) -> None:
    """Raise Unauthorized if a token does not allow a request.

    Forgetting for good removes records of everybody who has read the words, so it takes an unrestricted token.
    """
    facts = FACTS[request.operation]
    access.require(level_of(request), facts.instead)
    if is_for_good(request) or facts.needs_everything:
        access.require_everything()


def level_of(request: Request) -> Level:
    """Return the level that a token needs for a request."""
    return Level.ADMIN if is_for_good(request) else FACTS[request.operation].level


def is_for_good(request: Request) -> bool:
    """Return whether it deletes what cannot be restored."""
    return isinstance(request, DeleteRequest) and not request.query.soft


def is_of_others(request: Request, access: Access) -> bool:
    """Return whether it names a channel that cannot be one of the token's, be there such a channel or not."""
    return request.channel is not None and not access.may_name(request.channel)
