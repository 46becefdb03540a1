"""Build the conditions of lists and searches from tables of comparisons; those without a value are left out.

Many values are passed to a statement as one, so that its text is the same for any number of them. Otherwise every
search would be a new statement with hundreds of parameters for the driver to parse and PostgreSQL to plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

from sqlalchemy import ColumnElement, Integer, Text, bindparam, func, or_, select, tuple_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from registry.project import Project, repository_id
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
    """Return a condition: the channel's project is that of a path or its repository, or has that name."""
    repository = repository_id(project)
    of_repository = [channel.c.repository == repository] if repository else []
    is_named = func.lower(channel.c.project_name) == project.lower()
    return or_(path == Project.from_path(project).path, is_named, *of_repository)


def is_tagged(number: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    return number.in_(select(tag.c.channel_number).where(tag.c.name == name))


def is_one_of(
    column: ColumnElement[Any], values: Collection[int] | Collection[str] | None = None
) -> ColumnElement[bool]:
    """Return a condition: the number or text is among these, of which there may be any number.

    Without `values` it is among those that are `given` to the statement. Statements that are executed many times for
    one answer are built once: that takes longer than executing them.
    """
    kind = _Numbers if isinstance(column.type, Integer) else _Texts
    return column.bool_op("IN")(kind(_GIVEN if values is None else json.dumps(list(values))))


def is_pair_of(first: ColumnElement[int], second: ColumnElement[int]) -> ColumnElement[bool]:
    """Return a condition: two numbers are one of the pairs that are `given` to the statement."""
    return tuple_(first, second).bool_op("IN")(_Pairs(_GIVEN))


def given(values: Collection[int] | Collection[tuple[int, int]]) -> dict[str, str]:
    """Return the values of a statement with one of these conditions."""
    return {"given": json.dumps(list(values))}


_GIVEN = bindparam("given", type_=Text)


class _Texts(FunctionElement[Any]):
    """The values of a JSON array. SQLAlchemy's own table functions take several times as long to build."""

    inherit_cache = True
    templates: ClassVar = {
        "sqlite": "(SELECT value FROM json_each({}))",
        "postgresql": "(SELECT json_array_elements_text(CAST({} AS JSON)))",
    }


class _Numbers(_Texts):
    inherit_cache = True
    templates: ClassVar = {
        "sqlite": _Texts.templates["sqlite"],
        "postgresql": "(SELECT CAST(json_array_elements_text(CAST({} AS JSON)) AS BIGINT))",
    }


class _Pairs(_Texts):
    inherit_cache = True
    templates: ClassVar = {
        "sqlite": "(SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each({}))",
        "postgresql": "(SELECT CAST(pair ->> 0 AS BIGINT), CAST(pair ->> 1 AS BIGINT)"
        " FROM json_array_elements(CAST({} AS JSON)) AS pair)",
    }


@compiles(_Texts)
def _as_subquery(given: _Texts, compiler: SQLCompiler, **options: Any) -> str:
    return given.templates[compiler.dialect.name].format(compiler.process(given.clauses, **options))
