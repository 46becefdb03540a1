"""Arbitrary values for parsers, and checks that every parsed session passes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from registry.domain import Role, Session, storable

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)


def _or_some(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return SCALARS | st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)


ANYTHING = _or_some(_or_some(_or_some(SCALARS)))
"""Nested by hand, because `st.recursive` takes three times as long."""
DEEP: Any = json.loads('{"a":' * 200 + "[]" + "}" * 200)


def or_anything(*usual: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for one of the usual values (or a strategy's), or any other value."""
    [first, *_] = usual
    return (first if isinstance(first, st.SearchStrategy) else st.sampled_from(usual)) | ANYTHING


def check_all(sessions: Iterable[Session]) -> None:
    for session in sessions:
        check(session)


def check(session: Session) -> None:
    """Check what the registry expects of every session."""
    assert session.session_id
    for message in session.messages:
        assert message.role in Role
        assert message.text
        json.dumps(storable(message.more), allow_nan=False)
    assert session.title is None or session.title.strip()
    assert session.project is None or session.project
    json.dumps(storable(session.meta), allow_nan=False)


def change(data: st.DataObject, value: Any) -> None:
    """Replace or delete one value somewhere in an object or list."""
    keys = sorted(value) if isinstance(value, dict) else list(range(len(value)))
    key = data.draw(st.sampled_from(keys))
    inner = value[key]
    if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
        change(data, inner)
    elif data.draw(st.booleans()):
        value[key] = data.draw(ANYTHING)
    else:
        del value[key]
