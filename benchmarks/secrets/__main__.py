"""Plant secrets through each input and search the disk for them: python -m benchmarks.secrets [--code FILES]

A new registry receives conversations with each kind of secret in each place: from a client's hooks, from an MCP client
whose server is killed, and from a client's files. It is then searched for the secrets, exported and backed up, and all
its files are read, including the contents of archives. `left` counts secrets found in a file, in any case; it should be
0. Last come false positives: pieces of `_PIECE_LINES` lines of installed packages in which the rules find secrets.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.secrets.inputs import from_files, from_hooks, from_tool_killed, log_and_search
from benchmarks.secrets.kinds import KINDS, Planted
from benchmarks.secrets.on_disk import Registry
from benchmarks.setup.figures import table
from registry.text.privacy.secrets import find_secrets

_PIECE_LINES = 40


def plant_all(folder: Path) -> tuple[Registry, list[tuple[Planted, str, str]]]:
    """Plant all secrets; return the registry, and each secret that was left with its file and the step."""
    registry, found = Registry(folder), dict[Planted, tuple[str, str]]()

    def look(step: str) -> None:
        for each, where in registry.left():
            found.setdefault(each, (where, step))
        print(f"{step}: {len(found)} left of {len(registry.planted)}", file=sys.stderr, flush=True)

    for number, kind in enumerate(KINDS):
        from_hooks(registry, kind, number)
    look("in the spool")
    asyncio.run(log_and_search(registry))
    look("after the tools")
    from_tool_killed(registry)
    look("server killed")
    for number, kind in enumerate(KINDS):
        from_files(registry, kind, number)
    registry.run("sync")
    look("after the files")
    channels = [item["channel"] for item in json.loads(registry.run("list", "--json", "--limit", "200"))["sessions"]]
    for form in ("json", "markdown"):
        registry.run("export", *channels, "--format", form, "--output", str(registry.out / form))
    registry.run("backup", "create", str(registry.out / "backup.zip"), "--no-stores")
    look("exported and backed up")
    return registry, [(each, where, step) for each, (where, step) in found.items()]


def count_false_positives(files: Sequence[Path]) -> tuple[int, Counter[str]]:
    """Return the number of pieces of code, and in how many of them each kind of secret is found."""
    pieces, hits = 0, Counter[str]()
    for path in files:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for start in range(0, len(lines), _PIECE_LINES):
            pieces += 1
            hits.update({found.kind for found in find_secrets("\n".join(lines[start : start + _PIECE_LINES]))})
    return pieces, hits


def _print_left(registry: Registry, left: Sequence[tuple[Planted, str, str]], *, is_long: bool) -> None:
    counted = Counter((each.way, each.place) for each in registry.planted)
    found = Counter((each.way, each.place) for each, _, _ in left)
    rows = [(way, place, str(count), str(found[way, place])) for (way, place), count in counted.items()]
    rows += [("all", "", str(len(registry.planted)), str(len(left)))]
    print(table(("way", "place", "planted", "left"), rows))
    kinds = Counter(each.kind for each, _, _ in left)
    print("\nleft by kind:", ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()) or "none")
    for each, where, step in left if is_long else ():
        print(f"  {each.way}, {each.place}, {each.kind}: {each.text!r} in {where}, {step}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secrets", description=__doc__)
    parser.add_argument("--code", type=int, default=2000, metavar="FILES", help="number of code files to check")
    parser.add_argument("--long", action="store_true", help="print where each remaining secret is")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ctxr-secrets-") as folder:
        registry, left = plant_all(Path(folder))
    _print_left(registry, left, is_long=options.long)
    packages = Path(json.__file__).parents[1], Path(next(path for path in sys.path if path.endswith("site-packages")))
    for packed in packages:
        files = sorted(packed.rglob("*.py"))
        files = [path for path in files if packed.name == "site-packages" or "site-packages" not in path.parts]
        files = files[:: max(1, len(files) // max(1, options.code))]
        pieces, hits = count_false_positives(files)
        of = ", ".join(f"{kind} {count}" for kind, count in hits.most_common())
        print(f"{packed.name}: {pieces} pieces, {1000 * hits.total() / max(1, pieces):.1f} hits per 1000: {of}")


if __name__ == "__main__":
    main()
