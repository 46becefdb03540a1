"""Python's search for circles of objects that nobody needs, while many are made that are in none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS = 50_000
"""Some hundred messages; where it looks after each 700, a fifth of the time of an import goes there."""


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Meanwhile it is looked for them each time that so many more objects have been made."""
    usual = gc.get_threshold()
    gc.set_threshold(OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
