"""Relax a request that finds nothing, or nothing sure: decide which part of it is given up."""

from __future__ import annotations

from typing import Any

from orchestrator.answer.finding.looking_up import Lookup
from registry.text.request.understanding import Understood

AT_ANY_TIME, A_WEEK_BEFORE = "at any time", "a week before"


def relaxation_for(said: Understood, *, has_channel: bool) -> str:
    """Return the part of a request that may be given up; "" if all of it must hold.

    Who wants to continue may name a time in passing; "last Tuesday" on a Thursday may mean that of last week.
    """
    if said.goes_on and said.search.when_words and (has_channel or said.has_words):
        return AT_ANY_TIME
    return A_WEEK_BEFORE if said.week_before else ""


def lookup_for(asked: Lookup[Any], attempt: str) -> Lookup[Any]:
    """Return the look-up of an attempt: "" is the first one."""
    if attempt == AT_ANY_TIME:
        return asked.at_any_time()
    if attempt == A_WEEK_BEFORE and asked.said.week_before:
        return asked.a_week_before(asked.said.week_before)
    return asked
