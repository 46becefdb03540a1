"""Many numbers given to a statement as one value: its text is the same for any number of them.

Else the driver would read, and PostgreSQL plan, a statement with hundreds of places for every search.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Text, any_, cast, column, func, literal, select, tuple_
from sqlalchemy.sql.selectable import TableValuedAlias

from registry.storage.database import ReadTransaction


def is_one_of(tx: ReadTransaction, number: ColumnElement[int], given: Collection[int]) -> ColumnElement[bool]:
    """Whether a number is among those given."""
    if tx.dialect.name == "postgresql":
        return number == any_(_array(given))
    return number.in_(select(_each(list(given)).c.value))


def is_pair_of(
    tx: ReadTransaction, pair: tuple[ColumnElement[int], ColumnElement[int]], given: Sequence[tuple[int, int]]
) -> ColumnElement[bool]:
    """Whether two numbers stand together among the pairs given."""
    if tx.dialect.name == "postgresql":
        firsts, seconds = ([one[place] for one in given] for place in (0, 1))
        return tuple_(*pair).in_(select(func.unnest(_array(firsts)), func.unnest(_array(seconds))))
    each = _each(given).c.value
    return tuple_(*pair).in_(select(func.json_extract(each, "$[0]"), func.json_extract(each, "$[1]")))


def _array(numbers: Collection[int]) -> ColumnElement[Any]:
    written = ",".join(map(str, numbers))  # the driver takes long for a list
    return cast(literal(f"{{{written}}}", Text), ARRAY(BigInteger))


def _each(values: Sequence[object]) -> TableValuedAlias:
    return func.json_each(json.dumps(values)).table_valued(column("value"))
