"""What people mark as not to be kept, and the names in their rules. Pure, and quick to import: hooks ask it too."""

from __future__ import annotations

import re

PRIVATE = "[private]"
"""What stands in the place of what is between the tags."""
_BETWEEN = re.compile(r"<private>.*?</private>", re.IGNORECASE | re.DOTALL)


def without_private(text: str) -> str:
    """The text with a mark in the place of what stands between `<private>` and `</private>`."""
    return _BETWEEN.sub(PRIVATE, text) if "</" in text else text


def is_like(name: str, pattern: str) -> bool:
    """By the whole, or by the last part of a path; what is below a folder belongs to it."""
    from fnmatch import fnmatch

    last = re.split(r"[\\/]", name.rstrip("\\/"))[-1]
    return fnmatch(name, pattern) or fnmatch(last, pattern) or fnmatch(name, f"{pattern}/*")
