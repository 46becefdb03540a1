"""Values of any shape for parsers that must survive them, and what every session must be all the same."""

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
"""Written out: `st.recursive` takes three times as long for a value, and most of the time of these tests."""
DEEP: Any = json.loads('{"a":' * 200 + "[]" + "}" * 200)


def or_anything(*usual: Any) -> st.SearchStrategy[Any]:
    """One of the usual values (or of a strategy's), or any other."""
    [first, *_] = usual
    return (first if isinstance(first, st.SearchStrategy) else st.sampled_from(usual)) | ANYTHING


def check_all(sessions: Iterable[Session]) -> None:
    """What every session must be, whatever it was read from."""
    for session in sessions:
        check(session)


def check(session: Session) -> None:
    """What a session must be, whatever it was read from."""
    assert session.session_id
    for message in session.messages:
        assert message.role in Role
        assert message.text
        json.dumps(storable(message.more), allow_nan=False)
    assert session.title is None or session.title.strip()
    assert session.project is None or session.project
    json.dumps(storable(session.meta), allow_nan=False)


def change(data: st.DataObject, value: Any) -> None:
    """Replaces or drops one value somewhere in an object or list."""
    keys = sorted(value) if isinstance(value, dict) else list(range(len(value)))
    key = data.draw(st.sampled_from(keys))
    inner = value[key]
    if isinstance(inner, dict | list) and inner and data.draw(st.booleans()):
        change(data, inner)
    elif data.draw(st.booleans()):
        value[key] = data.draw(ANYTHING)
    else:
        del value[key]
