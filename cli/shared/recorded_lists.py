"""The answers to a client's first requests, recorded in a file so that a window gives them without the process.

Each line is `revision method result`. The first line is the program's stamp: the file is used by that program only.
"""

from __future__ import annotations

from zlib import crc32

from cli.shared.process_handle import ProcessHandle, program_stamp
from orchestrator.sync.spool import replace_private_file


def lists_file(handle: ProcessHandle, words: list[str]) -> str:
    return handle.path(f"{crc32(chr(0).join(words).encode('utf-8', 'surrogateescape')):08x}.lists")


def read_lists(handle: ProcessHandle, words: list[str]) -> dict[str, bytes]:
    """Return the results by `revision method`; {} if there is no file, or it is of another program."""
    try:
        with open(lists_file(handle, words), "rb") as file:
            stamp, *lines = file.read().split(b"\n")
        if stamp != b"%d" % program_stamp(handle.home):
            return {}
    except OSError:
        return {}
    answers = {}
    for line in lines:
        revision, method, result = line.split(b" ", 2)
        answers[f"{revision.decode()} {method.decode()}"] = result
    return answers


def write_lists(handle: ProcessHandle, words: list[str], stamp: int, answers: dict[str, str]) -> None:
    """Write the results by `revision method`. Raises OSError."""
    lines = [str(stamp), *(f"{key} {result}" for key, result in answers.items())]
    replace_private_file(lists_file(handle, words), "\n".join(lines))
