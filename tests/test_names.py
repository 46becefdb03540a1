"""No two modules and no two public classes of the product share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("registry", "sources", "orchestrator", "mcp_server", "backoffice", "cli")
FILES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))

ROLES = {"__init__", "__main__", "reader", "client"}
"""Module names that each client's folder has."""


def shared(names: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in sorted(names.items()) if len(found) > 1}


def modules() -> dict[str, list[str]]:
    names: dict[str, list[str]] = defaultdict(list)
    for file in FILES:
        if file.stem not in ROLES:
            names[file.stem].append(str(file.relative_to(ROOT)))
    return shared(names)


def classes() -> dict[str, list[str]]:
    names: dict[str, list[str]] = defaultdict(list)
    for file in FILES:
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                names[node.name].append(str(file.relative_to(ROOT)))
    return shared(names)


COMMANDS = ("blame", "migrate", "note", "remember", "resume", "search")
"""CLI commands with the name of their operation."""
SHARED_MODULES = frozenset(
    (
        *("channels", "connections", "conversations", "errors", "events", "executions", "forgetting", "masking"),
        *("meaning", "messages", "problems", "prompts", "remote", "runs", "sessions", "snippets", "store", "sync"),
        *("tokens", "tools", "transcript", "writing"),
    )
)
"""To be renamed: remove a name when only one module has it."""
SHARED_CLASSES = frozenset({"Span"})
"""To be renamed: remove a name when only one class has it."""


def test_no_two_modules_share_a_name() -> None:
    assert {name: found for name, found in modules().items() if name not in SHARED_MODULES | {*COMMANDS}} == {}


def test_no_two_public_classes_share_a_name() -> None:
    assert {name: found for name, found in classes().items() if name not in SHARED_CLASSES} == {}
