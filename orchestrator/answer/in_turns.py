"""What is tried in turns, where a request may be read in two ways: with and without what it says in passing.

A name or a time in passing may narrow what is meant, or be a word like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from orchestrator.answer.extraction import Extraction
from orchestrator.answer.other_times import at_any_time, nothing_found, nothing_then, spoken_span
from orchestrator.answer.relevance import confidence_in
from orchestrator.queries import ExtractQuery
from orchestrator.state import Run
from registry.errors import NotFound
from registry.search.scope import Scope, narrow
from registry.storage.database import ReadTransaction
from registry.text.ranking.confidence import Confidence
from registry.text.request.syntax import Search
from registry.text.request.understanding import Understood
from registry.text.times.spans import Span

Look = Callable[[Understood, Scope], Extraction]
"""Reads one channel for a request as it was understood, and where it is to look; NotFound where nothing is there."""


def then_or_a_week_before(look: Look, query: ExtractQuery, said: Understood, scope: Scope, before: Span) -> Extraction:
    """Who says "last Tuesday" on a Thursday may mean the one of last week: where nothing was said on the latest."""
    try:
        return look(said, scope)
    except NotFound:
        earlier = replace(said, search=replace(said.search, when=before), week_before=None)
        found = _found(look, earlier, narrow(replace(scope, from_=query.from_, to=query.to), earlier.search))
        if found is None:
            raise
        return found


def there_or_anywhere(look: Look, query: ExtractQuery, said: Understood, scope: Scope, passing: Search) -> Extraction:
    """A project's or a client's name among the words may say where, or be a word like others: where, if the rest is
    sure there, or neither is."""
    read = replace(said, search=replace(passing, project=None, source=None))
    inside = _found(look, read, narrow(scope, passing))
    inside = replace(inside, read=said) if inside else None
    if inside and _is_sure(inside):
        return inside
    anywhere = _found(look, said, scope)
    found = inside if inside and not (anywhere and _is_sure(anywhere)) else anywhere
    if not found:
        raise nothing_found(query.text)
    return found


def then_or_at_any_time(
    tx: ReadTransaction, run: Run, query: ExtractQuery, said: Understood, scope: Scope, look: Look, *, is_named: bool
) -> Extraction:
    """Who wants to go on may name a time in passing: it is given up where nothing of it was said then, and it is sure
    what is meant without it. `is_named`: the channel was."""
    then = _found(look, said, scope)
    if then and not then.relaxed and (is_named or _is_sure(then)):
        return then
    anywhen = _found(look, *at_any_time(said, scope, query.from_, query.to))
    if anywhen and (is_named or not then or then.relaxed or _is_sure(anywhen)):
        note = f"Nothing of it is from {spoken_span(scope, query.utc_offset_minutes)}, so that time was given up."
        return replace(anywhen, relaxed=" and ".join(filter(None, ["time", anywhen.relaxed])), note=note)
    if not then:
        raise nothing_then(tx, run, query, said, scope)
    return then


def _found(look: Look, said: Understood, scope: Scope) -> Extraction | None:
    try:
        return look(said, scope)
    except NotFound:
        return None


def _is_sure(data: Extraction) -> bool:
    """Whether it is no guess, also without what narrowed it."""
    if data.result is None:
        return False
    scores = [one.score for one in data.result.channels]
    return confidence_in(data.result, data.channel.number, scores) is not Confidence.LOW
