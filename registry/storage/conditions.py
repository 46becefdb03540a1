"""Build the conditions of lists and searches from tables of comparisons, without those that have no value.

Lists of values are passed as one JSON parameter, so that the text of a statement does not depend on their number.
Otherwise every search would be a new statement with hundreds of parameters to parse and plan.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Self

from sqlalchemy import Boolean, ColumnElement, Integer, func, or_, select, tuple_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from registry.project import NO_PROJECT, Project, repository_id
from registry.storage.tables import channel, tag

_OTHER = channel.alias()
Compare = Callable[[Any, Any], ColumnElement[bool]]  # from `operator`, or below
Rule = tuple[Compare, ColumnElement[Any], Any]  # a comparison, the column, and the wanted value; None means any
FilterRules = Mapping[str, tuple[Compare, ColumnElement[Any]]]  # the filters of a list, by name
Filters = Mapping[str, Any]  # the wanted values of some of them; None means any


def given_conditions(*rules: Rule) -> list[ColumnElement[bool]]:
    return [compare(column, value) for compare, column, value in rules if value is not None]


def filter_conditions(rules: FilterRules, wanted: Filters) -> list[ColumnElement[bool]]:
    return given_conditions(*((*rules[name], value) for name, value in wanted.items()))


def is_in(column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    return column.in_(values)


def is_none_of(column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    return column.not_in(values)


def is_of_project(path: ColumnElement[Any], project: str) -> ColumnElement[bool]:
    """Return a condition: the channel's project has this path, repository or name; General: it has no project."""
    name = func.coalesce(channel.c.project_name, NO_PROJECT)
    return or_(is_in_folder(path, project), func.lower(name) == project.lower())


def is_in_folder(path: ColumnElement[Any], folder: str) -> ColumnElement[bool]:
    """Return a condition: the channel's project is that of a folder, or another clone of its repository.

    If the folder is not on this machine, its repository is known from its channels.
    """
    project, repository = Project.from_path(folder).path, repository_id(folder)
    known = select(_OTHER.c.repository).where(_OTHER.c.project_path == project)
    return or_(path == project, channel.c.repository == repository if repository else channel.c.repository.in_(known))


def contains(column: ColumnElement[str], words: str) -> ColumnElement[bool]:
    """Return a condition: the text contains these characters, case-insensitively.

    On SQLite our `lower` function would be called for each row; LIKE ignores the case of ASCII letters without it.
    """
    if all(letter.isascii() or letter.lower() == letter.upper() for letter in words):
        escaped = re.sub("[/%_]", r"/\g<0>", words)
        return _Like(column, f"%{escaped}%")
    return column.icontains(words, autoescape=True)


def is_tagged(number: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    return number.in_(select(tag.c.channel_number).where(func.lower(tag.c.name) == name.lower()))


def is_one_of(column: ColumnElement[Any], values: Collection[int] | Collection[str]) -> ColumnElement[bool]:
    """Return a condition: the number or text is one of these; their number is not limited."""
    kind = _IsOneOfNumbers if isinstance(column.type, Integer) else _IsOneOfTexts
    return kind(column, json.dumps(list(values)))


def is_pair_of(
    first: ColumnElement[int], second: ColumnElement[int], pairs: Collection[tuple[int, int]]
) -> ColumnElement[bool]:
    return _IsOneOfPairs(tuple_(first, second), json.dumps(list(pairs)))


class _IsOneOfTexts(FunctionElement[bool]):
    """`first IN second`, where the second clause is a JSON array. SQLAlchemy's table functions take longer to build."""

    type = Boolean()
    inherit_cache = True
    # PostgreSQL scans the index once for an array, but once for each value of a subquery.
    templates: ClassVar = {
        "sqlite": "{} IN (SELECT value FROM json_each({}))",
        "postgresql": "{} = ANY (ARRAY(SELECT json_array_elements_text(CAST({} AS JSON))))",
    }

    def self_group(self, against: Any = None) -> Self:
        """Return the clause unchanged: SQLAlchemy would append `= 1`, which makes SQLite scan the table."""
        return self


class _IsOneOfNumbers(_IsOneOfTexts):
    inherit_cache = True
    templates: ClassVar = {
        "sqlite": _IsOneOfTexts.templates["sqlite"],
        "postgresql": "{} = ANY (ARRAY(SELECT CAST(json_array_elements_text(CAST({} AS JSON)) AS BIGINT)))",
    }


class _IsOneOfPairs(_IsOneOfTexts):
    inherit_cache = True
    templates: ClassVar = {
        "sqlite": "{} IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each({}))",
        "postgresql": "{} IN (SELECT CAST(pair ->> 0 AS BIGINT), CAST(pair ->> 1 AS BIGINT)"
        " FROM json_array_elements(CAST({} AS JSON)) AS pair)",
    }


class _Like(_IsOneOfTexts):
    """`first LIKE second`, where the second clause is a pattern."""

    inherit_cache = True
    templates: ClassVar = {"sqlite": "{} LIKE {} ESCAPE '/'", "postgresql": "{} ILIKE {} ESCAPE '/'"}


@compiles(_IsOneOfTexts)
def _as_condition(node: _IsOneOfTexts, compiler: SQLCompiler, **options: Any) -> str:
    return node.templates[compiler.dialect.name].format(*(compiler.process(one, **options) for one in node.clauses))
