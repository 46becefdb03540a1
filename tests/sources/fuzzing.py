"""A client's format under test: what every parser of records must bear is tested over a table of these."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from registry.domain import Session

Record = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """What a client's records look like, some sound conversations, and the parser.

    `read` takes the records of one conversation. `read_bytes` takes a file, where the format is one of lines, and
    `samples` are then files, too.
    """

    name: str
    records: st.SearchStrategy[Any]
    samples: tuple[list[Record], ...]
    read: Callable[[list[Record]], list[Session]]
    read_bytes: Callable[[bytes], list[Session]] | None = None


def lines_of(records: list[Record]) -> bytes:
    """The records as a file of JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)
