"""Docstrings do not begin with patterns that are hard to read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    *("registry", "sources", "orchestrator", "mcp_server", "backoffice", "cli"),
    *("benchmarks", "deploy", "integrations", "tests"),
)
FILES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))

RIDDLES = {
    "a clause as the subject": r"(Wh(at|o|om|ose|oever|atever|ere|en|ether|y)|How|That|Those|Of|So (much|many|long))\b",
    "nobody as the subject": r"(Nobody|Nothing|Somebody|Some of)\b",
    "a thing without a verb": r"(One (?!memory)|Another|The one|The same|All (that|of)|As (it|much|many|they))\b",
}


def docstrings(file: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every string that documents a module, class, function or constant."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value.strip()


def riddles(file: Path) -> Iterator[str]:
    """Yield the docstrings that begin with something other than a verb or the thing's name."""
    for line, text in docstrings(file):
        for kind, pattern in RIDDLES.items():
            if re.match(pattern, text):
                yield f"{file.relative_to(ROOT)}:{line}: {kind}: {text.splitlines()[0]}"


def test_docstrings_begin_with_a_verb_or_the_name_of_the_thing() -> None:
    found = [riddle for file in FILES for riddle in riddles(file)]
    assert not found, "\n".join(found)
