"""Logging: to stderr only, because stdout belongs to the protocol."""

from __future__ import annotations

import logging
import sys


def set_up_logging(level: str = "WARNING") -> None:
    """One line a record on stderr; never message texts, which are private."""
    logging.basicConfig(
        stream=sys.stderr, level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
