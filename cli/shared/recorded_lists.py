"""The answers to a client's first requests, recorded in a file so that a window gives them without the process.

Each line is `revision method result`. The first line is the program's stamp: the file is used by that program only.
"""

from __future__ import annotations

import os
from zlib import crc32

from cli.shared.process_handle import ProcessHandle, program_stamp


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
    path = lists_file(handle, words)
    draft = f"{path}.{os.getpid()}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write("\n".join([str(stamp), *(f"{key} {result}" for key, result in answers.items())]))
    os.replace(draft, path)
