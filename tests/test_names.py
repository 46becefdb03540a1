"""No two modules and no two public classes of the product share a name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("registry", "sources", "orchestrator", "mcp_server", "backoffice", "cli")
FILES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))

ROLES = {"__init__", "__main__", "reader", "client"}
"""Module names that each client's folder has."""


def shared(found: Iterator[tuple[str, Path]]) -> dict[str, list[str]]:
    """Return the names that several files have, each with these files."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, file in found:
        names[name].append(str(file.relative_to(ROOT)))
    return {name: files for name, files in sorted(names.items()) if len(files) > 1}


def classes(file: Path) -> list[str]:
    return re.findall(r"^class ([^\W_]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE)


COMMANDS = ("blame", "migrate", "note", "remember", "resume", "search")
"""CLI commands with the name of their operation."""
SHARED_MODULES = frozenset(
    (
        *("channels", "connections", "conversations", "errors", "events", "executions", "forgetting", "masking"),
        *("meaning", "messages", "prompts", "remote", "runs", "sessions", "snippets", "store", "sync"),
        *("tokens", "tools", "transcript", "writing"),
    )
)
"""To be renamed: remove a name when only one module has it."""
SHARED_CLASSES = frozenset({"Span"})
"""To be renamed: remove a name when only one class has it."""


def test_no_two_modules_share_a_name() -> None:
    modules = shared((file.stem, file) for file in FILES if file.stem not in ROLES)
    assert {name: files for name, files in modules.items() if name not in SHARED_MODULES | {*COMMANDS}} == {}


def test_no_two_public_classes_share_a_name() -> None:
    found = shared((name, file) for file in FILES for name in classes(file))
    assert {name: files for name, files in found.items() if name not in SHARED_CLASSES} == {}
