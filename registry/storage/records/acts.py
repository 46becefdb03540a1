"""Read the audit log from the records of executions: there is no separate one."""

from typing import Any

from sqlalchemy import Row, func, select

from registry.domain import format_time
from registry.storage.conditions import Filters
from registry.storage.conversations.references import canonical_name
from registry.storage.database import ReadTransaction
from registry.storage.paging import Page, read_rows
from registry.storage.records.executions import execution_conditions
from registry.storage.tables import execution, token

PAGE = 1000  # acts read at a time
_COLUMNS = ("started_at", "number", "id", "token", "operation", "channel", "status", "source", "client", "request")
# fields of a request that describe the act
_DETAIL_FIELDS = ("with", "until", "soft", "by", "dry_run", "owner", "path", "name")


def read_acts(
    tx: ReadTransaction, wanted: Filters, who: str | None = None, cursor: str | None = None
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the next acts, oldest first, and the cursor that continues them; None at the end.

    `wanted`: as for `execution_conditions`. `who`: a person, with all tokens of that person, or a token's name.
    """
    people = dict(tx.execute(select(token.c.name, func.coalesce(token.c.owner, token.c.name))).all())
    conditions = execution_conditions({**wanted, "channel": canonical_name(tx, wanted.get("channel"))})
    if who:
        conditions.append(execution.c.token.in_([who, *(name for name, owner in people.items() if owner == who)]))
    page = Page(PAGE, cursor, "asc")
    rows, following = read_rows(tx, execution.c.started_at, conditions, page, [execution.c[name] for name in _COLUMNS])
    return [_act(row, people.get(row.token, row.token)) for row in rows], following


def _act(row: Row[Any], who: str | None) -> dict[str, Any]:
    query = row.request.get("query")
    fields = {**row.request, **(query if isinstance(query, dict) else {})}
    return {
        "at": format_time(row.started_at),
        "who": who,
        **{name: getattr(row, name) for name in ("token", "operation", "channel")},
        "details": {name: fields[name] for name in _DETAIL_FIELDS if name in fields},
        "outcome": row.status,
        **{name: getattr(row, name) for name in ("source", "client", "id")},
    }
