"""Build the conditions of lists and searches from tables of comparisons; those without a value are left out.

Many numbers are passed to a statement as one value, so that its text is the same for any number of them. Otherwise
every search would be a new statement with hundreds of parameters for the driver to parse and PostgreSQL to plan.
Conditions on such a value are cached, because building a statement costs several times as much as executing it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Text,
    any_,
    bindparam,
    cast,
    column,
    func,
    or_,
    select,
    tuple_,
)

from registry.project import Project
from registry.storage.database import ReadTransaction
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


_GIVEN, _SECOND = "given_numbers", "given_seconds"


@cache
def is_one_of(dialect: str, number: ColumnElement[int]) -> ColumnElement[bool]:
    """Return a condition: the number is among those given with the statement (`given`); one per statement."""
    if dialect == "postgresql":
        return number == any_(_array(_GIVEN))
    return number.in_(select(_each()))


def given(tx: ReadTransaction, numbers: Collection[int]) -> Mapping[str, Any]:
    return {_GIVEN: _written(numbers) if tx.dialect.name == "postgresql" else json.dumps(list(numbers))}


@cache
def is_pair_of(dialect: str, first: ColumnElement[int], second: ColumnElement[int], bits: int) -> ColumnElement[bool]:
    """Return a condition: two numbers are one of the pairs given with the statement (`given_pairs`)."""
    if dialect == "postgresql":
        return tuple_(first, second).in_(select(func.unnest(_array(_GIVEN)), func.unnest(_array(_SECOND))))
    each = _each()
    return tuple_(first, second).in_(select(each.bitwise_rshift(bits), each.bitwise_and((1 << bits) - 1)))


def given_pairs(tx: ReadTransaction, pairs: Collection[int], bits: int) -> Mapping[str, Any]:
    """Return pairs for a statement with `is_pair_of`, each packed into one number (the first shifted by `bits`)."""
    if tx.dialect.name == "postgresql":
        second = (1 << bits) - 1
        return {
            _GIVEN: _written([pair >> bits for pair in pairs]),
            _SECOND: _written([pair & second for pair in pairs]),
        }
    return {_GIVEN: json.dumps(list(pairs))}


def _written(numbers: Collection[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"  # the driver takes long for a list


def _array(name: str) -> ColumnElement[Any]:
    return cast(bindparam(name, type_=Text), ARRAY(BigInteger))


def _each() -> ColumnElement[Any]:
    return func.json_each(bindparam(_GIVEN, type_=Text)).table_valued(column("value")).c.value
