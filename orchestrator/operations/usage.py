"""usage: sum the tokens that clients have counted, and their list price."""

from typing import Any

from pydantic import Field

from orchestrator.requests.field_types import EndInstant, Instant, Limit, UtcOffset
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import Operation, Run, Steps, as_read
from registry.access import Level
from registry.monitor.prices import check_prices
from registry.monitor.prices import in_dollars as in_dollars
from registry.monitor.token_usage import GROUPS as GROUPS
from registry.monitor.token_usage import KINDS as KINDS
from registry.monitor.token_usage import By as By
from registry.monitor.token_usage import Span, answers_without_counts, grouped, read_usage, total, unpriced
from registry.storage.conversations.references import resolve_session
from registry.storage.database import ReadTransaction


class UsageQuery(QueryShape):
    """The time span to sum tokens over, and the grouping."""

    by: By = Field("project", description="grouping of the rows")
    from_: Instant | None = Field(None, alias="from")
    to: EndInstant | None = None
    limit: Limit = Field(50, description="maximum number of rows; the total includes all")
    utc_offset_minutes: UtcOffset = Field(0, description="UTC offset of the days, in minutes")


class UsageRequest(Request):
    """Without a channel, all channels are summed."""

    operation = "usage"
    query: UsageQuery = UsageQuery()


def count(tx: ReadTransaction, run: Run, request: UsageRequest) -> dict[str, Any]:
    """Return rows, the most expensive first (days: the newest), the total, and models without a price or count."""
    check_prices()
    query = request.query
    row = resolve_session(tx, request.channel) if request.channel else None
    span = Span(query.from_, query.to, row.number if row else None)
    usages = read_usage(tx, span, query.utc_offset_minutes, by_session=query.by == "session")
    run.recorder.explain(channel=row.name if row else None, candidates=sum(usage.answers for usage in usages))
    return {
        "by": query.by,
        "rows": grouped(usages, query.by)[: query.limit],
        "total": total(usages),
        "unpriced_models": unpriced(usages),
        "without_counts": answers_without_counts(tx, span),
    }


OPERATION = Operation(
    request=UsageRequest,
    level=Level.READ,
    syncs_first=True,
    steps=Steps[UsageRequest, dict[str, Any]](query=count, answer=as_read),
)
