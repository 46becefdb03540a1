"""Many numbers given to a statement, or read from it, as one value: its text is the same for any number of them.

Else the driver would read, and PostgreSQL plan, a statement with hundreds of places for every search; and a row for
each number costs several times as much as the number.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Select, Text, any_, cast, column, func, literal, select, tuple_
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


def numbers_of(tx: ReadTransaction, query: Select[tuple[int]]) -> list[int]:
    """The numbers that a query gives, in its order."""
    (number,) = query.subquery().c
    if tx.dialect.name == "postgresql":
        return list(tx.execute(select(func.array_agg(number))).scalar() or ())
    found: list[int] = json.loads(tx.execute(select(func.json_group_array(number))).scalar_one())
    return found


def _array(numbers: Collection[int]) -> ColumnElement[Any]:
    written = ",".join(map(str, numbers))  # the driver takes long for a list
    return cast(literal(f"{{{written}}}", Text), ARRAY(BigInteger))


def _each(values: Sequence[object]) -> TableValuedAlias:
    return func.json_each(json.dumps(values)).table_valued(column("value"))
