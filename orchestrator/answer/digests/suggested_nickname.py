"""A nickname for a session that has none, from the words it began with. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import count

WORDS = 4
LONGEST = 40
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SAYING_NOTHING = """\
a an and are as at be by can could do does for from have hello help hey hi how i in is it let me my of on or please
should so that the this to us want we what when where which why will with would you your
저 제가 좀 이 그 내 내가 어떻게 왜 무엇 해줘 해주세요 주세요"""
_NOTHING = frozenset(_SAYING_NOTHING.split())


def suggest_nickname(text: str, taken: Collection[str]) -> str:
    """A nickname nobody has yet: the first significant words, joined by hyphens ("session" where there are none)."""
    words = [word.lower() for word in _WORD.findall(text)]
    significant = [word for word in words if word not in _NOTHING and "'" not in word and "’" not in word]
    name = "-".join((significant or words)[:WORDS])[:LONGEST].rstrip("-") or "session"
    name = f"session-{name}" if name.isdecimal() else name  # a number is a place in the list
    taken = {one.casefold() for one in taken if one}
    numbered = (f"{name}-{number}" for number in count(2))
    return name if name not in taken else next(one for one in numbered if one not in taken)
