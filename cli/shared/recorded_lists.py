"""The answers to a client's first requests, recorded in a file so that a window gives them without the process."""

from __future__ import annotations

from zlib import crc32

from cli.shared.place import ProcessPlace, program_stamp
from orchestrator.sync.spool import dumps, loads, replace_private_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def lists_file(place: ProcessPlace, words: list[str]) -> str:
    return place.path(f"{crc32(chr(0).join(words).encode('utf-8', 'surrogateescape')):08x}.lists")


def read_lists(place: ProcessPlace, words: list[str]) -> dict[str, str]:
    """Return the results as JSON, by `revision method`; {} if there is no file, or it is of another program."""
    try:
        with open(lists_file(place, words), encoding="utf-8") as file:
            recorded: dict[str, dict[str, str]] = loads(file.read())
        return recorded.get(str(program_stamp(place.home)), {})
    except (OSError, ValueError):
        return {}


def write_lists(place: ProcessPlace, words: list[str], stamp: int, answers: Mapping[str, str]) -> None:
    """Write the results by `revision method`, for the program of that stamp only; OSError if they cannot be."""
    replace_private_file(lists_file(place, words), dumps({str(stamp): answers}))
