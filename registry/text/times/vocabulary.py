"""Load the words for times, `words.toml`."""

import tomllib
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

WORDS: dict[str, Any] = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))


def one_of(names: Iterable[str]) -> str:
    """Return a pattern for any of these words, the longer ones first."""
    return "|".join(sorted(names, key=len, reverse=True))
