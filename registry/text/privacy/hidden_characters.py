"""Make invisible characters visible, because stored text may hide instructions to a model or a terminal. Pure."""

import re
from collections.abc import Mapping
from typing import Any


def visible(text: str) -> str:
    """Replace invisible characters by their codes, such as ⟦U+202E⟧."""
    return _HIDDEN.sub(_code_of, text) if _HIDING.search(text) else text


# All characters of `_HIDDEN`: searching for a class takes a tenth of the time, and few texts have any.
_HIDING = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200B-\u200F\u202A-\u202E\u2060-\u2064\u2066-\u2069"
    r"\uFE00-\uFE0F\uFEFF\U000E0000-\U000E007F\U000E0100-\U000E01EF]"
)
_HIDDEN = re.compile(
    r"""(?P<flag>\U0001F3F4[\U000E0030-\U000E0039\U000E0061-\U000E007A]{2,6}\U000E007F)  # of England, Texas, …
      | [\U000E0000-\U000E007F]+  # tags, which have no shape
      | [\u202A-\u202E\u2066-\u2069]+  # reverses the order of letters
      | [\u200B-\u200F\u2060-\u2064\uFEFF]{2,}  # no width; a single one joins letters or emoji
      | [\uFE00-\uFE0F\U000E0100-\U000E01EF]{2,}  # variation selectors without a base
      | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+""",
    re.VERBOSE,
)


def _code_of(found: re.Match[str]) -> str:
    if found["flag"]:
        return found[0]
    letters = [f"U+{ord(letter):04X}" for letter in found[0][:4]]
    more = [f"and {len(found[0]) - 4} more"] if len(found[0]) > 4 else []
    return f"⟦{' '.join([*letters, *more])}⟧"


def shown(value: Any, *, keeps_nulls: bool = False) -> Any:
    """Make hidden characters visible in every text of a value, and drop the fields that are null."""
    match value:
        case str():
            return visible(value)
        case None | int() | float():  # checked first, because the Mapping check is the slowest
            return value
        case Mapping():
            kept = {name: item for name, item in value.items() if keeps_nulls or item is not None}
            return {name: shown(item, keeps_nulls=keeps_nulls) for name, item in kept.items()}
        case list() | tuple():
            return [shown(item, keeps_nulls=keeps_nulls) for item in value]
    return value
