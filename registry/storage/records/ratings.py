"""Whether what a run delivered was of use, as its user or the operator says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import ge, le
from typing import Any, NamedTuple

from sqlalchemy import Integer, cast, func, insert, select, update

from registry.domain import now
from registry.storage.conversations.conditions import given_conditions
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.records.executions import get_execution
from registry.storage.tables import rating


class Rated(NamedTuple):
    """The ratings of one operation, for one source."""

    operation: str
    source: str
    useful: int
    useless: int


def rate_execution(tx: WriteTransaction, execution_id: str, *, useful: bool) -> None:
    """Say of a run whether it was of use; the last word holds. NotFound if there is no such run."""
    run = get_execution(tx, execution_id)
    said: dict[str, Any] = {"useful": useful, "rated_at": now()}
    if not tx.execute(update(rating).where(rating.c.execution_id == run["id"]).values(**said)).rowcount:
        about = {"execution_id": run["id"], "operation": run["operation"], "source": run["source"]}
        tx.execute(insert(rating).values(**about, token=run["token"], **said))


def rating_of(tx: ReadTransaction, execution_id: str) -> bool | None:
    """Whether a run was said to be of use; None where nobody has said."""
    return tx.execute(select(rating.c.useful).where(rating.c.execution_id == execution_id)).scalar()


def ratings(tx: ReadTransaction, from_: datetime | None, to: datetime | None) -> Sequence[Rated]:
    """What was said in a period, by operation and source."""
    useful = func.sum(cast(rating.c.useful, Integer))
    query = select(rating.c.operation, rating.c.source, useful, func.count() - useful)
    within = given_conditions((ge, rating.c.rated_at, from_), (le, rating.c.rated_at, to))
    groups = rating.c.operation, rating.c.source
    return [Rated(*row) for row in tx.execute(query.where(*within).group_by(*groups).order_by(*groups))]
