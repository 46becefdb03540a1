"""What every client in a test is spared: to read and to check anew what an earlier one has read and checked."""

from __future__ import annotations

import json
import ssl
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator


def spare_clients() -> None:
    """From now on, in this process."""
    # The certificates of the world, by every HTTP client.
    ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]
    # The schemas of the tools' results, by every MCP client: 16 ms each.
    check, checked = Draft202012Validator.check_schema, set[str]()

    def check_once(schema: Any, *given: Any) -> None:
        written = json.dumps(schema)
        if written not in checked:
            check(schema, *given)
            checked.add(written)

    Draft202012Validator.check_schema = check_once  # type: ignore[method-assign, assignment]
