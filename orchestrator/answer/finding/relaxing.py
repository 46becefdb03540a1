"""Asking again with less: which part of a request is given up when it finds nothing, or nothing that is sure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.answer.finding.looking_up import Lookup
from registry.text.request.understanding import Understood

AT_ANY_TIME, ANYWHERE, A_WEEK_BEFORE = "at any time", "anywhere", "a week before"


def _a_week_before(asked: Lookup[Any]) -> Lookup[Any]:
    return asked.a_week_before(asked.said.week_before) if asked.said.week_before else asked


RELAXATIONS: Mapping[str, Callable[[Lookup[Any]], Lookup[Any]]] = {
    AT_ANY_TIME: Lookup.at_any_time,  # whoever wants to continue may name a time in passing
    ANYWHERE: lambda asked: asked,  # a project's or a client's name among the words may be a word like others
    A_WEEK_BEFORE: _a_week_before,  # "last Tuesday" on a Thursday may mean the one of last week
}
"""Each with its change of the look-up."""


def relaxation_for(said: Understood, *, has_channel: bool) -> str:
    """Return the part of a request that may be given up; "" if all of it must hold."""
    if said.goes_on and said.search.when_words and (has_channel or said.has_words):
        return AT_ANY_TIME
    if said.in_passing and not has_channel:
        return ANYWHERE
    return A_WEEK_BEFORE if said.week_before else ""


def lookup_for(asked: Lookup[Any], attempt: str, relaxation: str) -> Lookup[Any]:
    """Return the look-up of an attempt: "" is the first one."""
    if attempt:
        return RELAXATIONS[attempt](asked)
    if relaxation == ANYWHERE and asked.said.in_passing:
        return asked.there(asked.said.in_passing)
    return asked
