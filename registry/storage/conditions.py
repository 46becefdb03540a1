"""Build the conditions of lists and searches from tables of comparisons; those without a value are left out.

Many values are passed to a statement as one, so that its text is the same for any number of them. Otherwise every
search would be a new statement with hundreds of parameters for the driver to parse and PostgreSQL to plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Text,
    any_,
    cast,
    func,
    literal,
    or_,
    select,
    tuple_,
)
from sqlalchemy.types import TypeEngine

from registry.project import Project
from registry.storage.tables import channel, tag

Rule = tuple[Callable[[Any, Any], ColumnElement[bool]], ColumnElement[Any], Any]
"""A comparison (from `operator`, or below), the column, and the wanted value; None means any."""


def given_conditions(*rules: Rule) -> list[ColumnElement[bool]]:
    return [compare(column, value) for compare, column, value in rules if value is not None]


def is_in(column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    return column.in_(values)


def is_none_of(column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    return column.not_in(values)


def is_of_project(path: ColumnElement[Any], project: str) -> ColumnElement[bool]:
    """Return a condition: the channel's project is that of a path, or has that name in any case."""
    return or_(path == Project.from_path(project).path, func.lower(channel.c.project_name) == project.lower())


def is_tagged(number: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    return number.in_(select(tag.c.channel_number).where(tag.c.name == name))


def is_one_of(
    tx: Connection, column: ColumnElement[Any], values: Collection[int] | Collection[str]
) -> ColumnElement[bool]:
    """Return a condition: the number or text is among these, of which there may be any number."""
    if tx.dialect.name == "postgresql":
        return column == any_(_array(values, column.type))
    return column.in_(select(_elements(list(values)).c.value))


def is_pair_of(
    tx: Connection, first: ColumnElement[int], second: ColumnElement[int], pairs: Collection[tuple[int, int]]
) -> ColumnElement[bool]:
    """Return a condition: two numbers are one of these pairs."""
    if tx.dialect.name == "postgresql":
        ones, others = (_array([pair[at] for pair in pairs], first.type) for at in (0, 1))
        return tuple_(first, second).in_(select(func.unnest(ones), func.unnest(others)))
    pair = _elements(list(pairs)).c.value
    return tuple_(first, second).in_(select(func.json_extract(pair, "$[0]"), func.json_extract(pair, "$[1]")))


def _array(values: Collection[Any], kind: TypeEngine[Any]) -> ColumnElement[Any]:
    """Return an array; numbers are written out, because the driver takes long for a list of them."""
    if not isinstance(kind, Integer):
        return literal(list(values), ARRAY(Text))
    return cast(literal("{" + ",".join(map(str, values)) + "}", Text), ARRAY(BigInteger))


def _elements(values: list[Any]) -> Any:
    return func.json_each(json.dumps(values)).table_valued("value")
