"""Find out after which time a client deletes its old conversations."""

import re
from collections.abc import Iterable
from pathlib import Path

from sources.base import Paths
from sources.client import Client
from sources.kit.files import read_small_text
from sources.kit.jsonc import settings_in
from sources.kit.loose_json import value_at

LONG_ENOUGH_DAYS = 365  # days: a client that keeps conversations at least this long is not warned about


def retention_days(client: Client, paths: Paths) -> float | None:
    """Return the number of days after which a client deletes a conversation; None if it never does."""
    if not (purge := client.purge):
        return None
    settings = settings_in(read_small_text(client.settings_file(paths, purge.file)))
    if purge.switch and value_at(settings, *purge.switch) is False:
        return None
    given = re.fullmatch(r"(\d{1,6})\s*([hdwmy]?)", str(value_at(settings, *purge.setting)).strip().lower())
    days = {"h": 1 / 24, "": 1.0, "d": 1.0, "w": 7.0, "m": 30.0, "y": 365.0}
    return float(given[1]) * days[given[2]] if given else float(purge.days)


def count_missing_files(keys: Iterable[str]) -> int:
    """Count the sessions whose file no longer exists. A key that is not a path, such as a row's id, does not count."""
    ends = ("", ".json", ".jsonl")
    return sum(Path(key).is_absolute() and not any(Path(key + end).exists() for end in ends) for key in keys)
