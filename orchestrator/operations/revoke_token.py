"""revoke_token: revoke an access token, or end the web sessions of a person."""

from typing import Any

from pydantic import Field

from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import GeneralState, Operation, Run, Steps
from registry.access import Level
from registry.storage.database import WriteTransaction
from registry.storage.safety.tokens import revoke_token


class RevokeTokenQuery(QueryShape):
    """The token or the person."""

    name: str = Field(min_length=1, description="a token's name or id, or a person such as oauth:kim")


class RevokeTokenRequest(Request):
    operation = "revoke_token"
    query: RevokeTokenQuery


def revoke(tx: WriteTransaction, run: Run, request: RevokeTokenRequest, _state: GeneralState) -> dict[str, Any]:
    """Revoke it in one transaction; open sessions end at their next request."""
    ended = revoke_token(tx, request.query.name)
    run.recorder.explain(revoked=ended["name"])
    return {"revoked": ended}


OPERATION = Operation(
    request=RevokeTokenRequest,
    level=Level.ADMIN,
    needs_everything=True,
    steps=Steps[RevokeTokenRequest, None](write=revoke),
    labels={"name": ("token or person", "토큰 또는 사용자")},
)
