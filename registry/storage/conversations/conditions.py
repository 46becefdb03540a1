"""The conditions of lists and searches: a table of comparisons, of which those count whose value was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select

from registry.storage.tables import channel, tag

Rule = tuple[Callable[[Any, Any], ColumnElement[bool]], ColumnElement[Any], Any]
"""A comparison (from `operator`, or below), the column, and the value asked for; None means anything."""


def given_conditions(*rules: Rule) -> list[ColumnElement[bool]]:
    """The conditions of those rules whose value was given."""
    return [compare(column, value) for compare, column, value in rules if value is not None]


def is_in(column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    """The column has one of the values."""
    return column.in_(values)


def is_none_of(column: ColumnElement[Any], values: Sequence[Any]) -> ColumnElement[bool]:
    """The column has none of the values."""
    return column.not_in(values)


def is_of_project(path: ColumnElement[Any], project: str) -> ColumnElement[bool]:
    """The channel belongs to the project of that path, or of that folder name, in capitals or not."""
    return or_(path == project, func.lower(channel.c.project_name) == project.lower())


def is_tagged(number: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """The channel with that number carries the tag."""
    return number.in_(select(tag.c.channel_number).where(tag.c.name == name))
