"""Cache what each HTTP or MCP client of a test would load or check again."""

from __future__ import annotations

import json
import ssl
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator


def speed_up_clients() -> None:
    """Cache CA certificates and checked schemas in this process."""
    ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]
    # An MCP client checks the schema of each tool's result, which takes 16 ms.
    check, checked = Draft202012Validator.check_schema, set[str]()

    def check_once(schema: Any, *given: Any) -> None:
        written = json.dumps(schema)
        if written not in checked:
            check(schema, *given)
            checked.add(written)

    Draft202012Validator.check_schema = check_once  # type: ignore[method-assign, assignment]
