"""The description of a client's format for the tests of all formats."""

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
    """A client's records, valid sample conversations, and the parser.

    `read` parses the records of one conversation. Formats of lines also have `read_bytes`, which parses a file; their
    `samples` are the records of files.
    """

    name: str
    records: st.SearchStrategy[Any]
    samples: tuple[list[Record], ...]
    read: Callable[[list[Record]], list[Session]]
    read_bytes: Callable[[bytes], list[Session]] | None = None


def lines_of(records: list[Record]) -> bytes:
    """Return records as JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)
