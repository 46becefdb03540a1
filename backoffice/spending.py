"""/bo/usage: the tokens that clients have counted, and their list price."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from backoffice.dependencies import CurrentClient
from backoffice.queries import Period
from orchestrator.operations.usage import By, UsageQuery
from orchestrator.requests.field_types import ChannelName


class UsageParameters(Period, UsageQuery):
    """The messages whose tokens are summed, and the grouping."""

    channel: ChannelName | None = Field(None, description="only this conversation, by any of its names")


class TokenSums(BaseModel):
    """Token counts and their cost."""

    answers: int = Field(description="answers with token counts, without copies in other conversations")
    input_tokens: int = Field(description="without those from a cache")
    output_tokens: int = Field(description="with the reasoning")
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: float | None = Field(description="at list prices; null: nothing has a price, or CTXR_PRICES is off")


class UsageRow(TokenSums):
    """The sums of one project, session, model, client or day."""

    name: str | None = Field(description="a folder, channel, model, client or day; null: unknown")
    title: str | None = Field(None, description="of a session")


class MissingCounts(BaseModel):
    """Answers of a client whose tokens are not known."""

    client: str
    answers: int


class UsageAnswer(BaseModel):
    """Sums, most expensive first; days newest first."""

    by: By
    rows: list[UsageRow]
    total: TokenSums
    unpriced_models: list[str] = Field(description="models without a price; the costs do not include their tokens")
    without_counts: list[MissingCounts]


router = APIRouter(prefix="/bo/usage", tags=["usage"])


@router.get("", response_model=UsageAnswer, response_model_exclude_unset=True)
async def show_usage(client: CurrentClient, query: Annotated[UsageParameters, Query()]) -> dict[str, Any]:
    """Sum tokens and their list price by project, session, model, client or day."""
    usage_query = query.model_dump(by_alias=True, exclude={"channel"}, exclude_none=True)
    return await client.run("usage", usage_query, query.channel)
