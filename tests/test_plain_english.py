"""Docstrings do not begin with patterns that are hard to read."""

from __future__ import annotations

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


def riddles(file: Path) -> Iterator[str]:
    """Yield the docstrings of modules, classes, functions and constants that begin as in `RIDDLES`."""
    text = file.read_text(encoding="utf-8")
    for kind, pattern in RIDDLES.items():
        for found in re.finditer(f'^ *r?"""(?:{pattern}).*', text, re.MULTILINE):
            yield f"{file.relative_to(ROOT)}: {kind}: {found[0].strip()}"


def test_docstrings_begin_with_a_verb_or_the_name_of_the_thing() -> None:
    found = [riddle for file in FILES for riddle in riddles(file)]
    assert not found, "\n".join(found)
