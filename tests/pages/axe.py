"""axe-core, the accessibility checker: fetched once by npm, outside the source tree."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from playwright.async_api import Page

from tests.conformance.node import CACHE, Unavailable, one_at_a_time

VERSION = "4.14.1"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SCRIPT = "async (tags) => (await axe.run(document, {runOnly: tags, resultTypes: ['violations']})).violations"


def axe_script() -> str:
    """Return the script's text. Raise `Unavailable` if npm is missing or fails."""
    folder = CACHE / f"axe-{VERSION}"
    script = folder / "package" / "axe.min.js"
    with one_at_a_time(folder.with_suffix(".lock")):
        if not script.exists():
            _fetch(folder)
    return script.read_text(encoding="utf-8")


def _fetch(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", f"axe-core@{VERSION}", "--fetch-retries=1", "--pack-destination", str(folder)]
    if subprocess.run(command, capture_output=True, check=False, timeout=30).returncode:
        raise Unavailable("npm could not fetch axe-core")
    with tarfile.open(folder / f"axe-core-{VERSION}.tgz") as archive:
        archive.extractall(folder, filter="data")


async def violations(page: Page, script: str) -> list[str]:
    """Return the accessibility violations of the page in its present state: the rule, and where."""
    # The page's headers forbid other scripts, but the debugger may add one.
    await page.evaluate(script)
    found: list[dict[str, Any]] = await page.evaluate(SCRIPT, RULES)
    return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]
