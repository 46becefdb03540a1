"""The description of a client's format for the tests of all formats."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from registry.domain import Session
from sources.kit.jsonl import Damage, read_lines, records_of

Record = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """A client's records, valid sample conversations, and the parser.

    `read` parses the records of one conversation. If `are_lines`, the records are lines of a file.
    """

    name: str
    records: st.SearchStrategy[Any]
    samples: tuple[list[Record], ...]
    read: Callable[[list[Record]], list[Session]]
    are_lines: bool = False

    def read_bytes(self, data: bytes, damage: Damage | None = None) -> list[Session]:
        """Parse a file, and add its invalid lines to `damage`."""
        return self.read(list(records_of(read_lines(io.BytesIO(data)), damage or Damage())))


def lines_of(records: list[Record]) -> bytes:
    """Return records as JSON lines."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)
