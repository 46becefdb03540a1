"""Damage a backup in many ways, and try to restore it: python -m benchmarks.damaged_backups

The table shows for each kind of damage what `validate` reports, whether `restore` refuses the backup, and how many
messages `restore --rest` would recover.
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from benchmarks.setup.figures import table
from orchestrator.service import Orchestrator
from orchestrator.state import LocalFiles
from registry.registry import Registry
from sources.base import Paths

CHANNELS, MESSAGES, WORDS = 40, 30, 60
HEADS = ("damage", "validate", "restore", "messages with --rest")
MANIFEST, ABOUT = "manifest.json", "about.json"
FIRST, SECOND, CHANNEL = (
    f"registry/{name}" for name in ("conversation.jsonl.0001", "conversation.jsonl.0002", "channel.jsonl.0001")
)

Parts = dict[str, bytes]


def damaged_copies(whole: bytes, parts: Parts) -> Iterator[tuple[str, bytes]]:
    """Yield each kind of damage with the damaged file."""
    yield "none", whole
    yield "cut in the middle", whole[: len(whole) // 2]
    yield "cut, the last 100 bytes", whole[:-100]
    yield "empty", b""
    yield "another file", b"hello " * 100
    yield "another zip", zipped({"a.txt": b"x"})
    for name in (MANIFEST, ABOUT, FIRST, CHANNEL):
        yield f"{name} missing", zipped({other: content for other, content in parts.items() if other != name})
        yield f"{name}: a byte inverted", _with_inverted_byte(whole, parts[name], name)
    yield "manifest is no JSON", zipped({**parts, MANIFEST: b'{"vers'})
    for damage, change in CHANGES.items():
        about = json.loads(parts[MANIFEST])
        change(about)
        yield f"manifest: {damage}", zipped({**parts, MANIFEST: json.dumps(about).encode()})
    yield "a line edited", zipped({**parts, FIRST: parts[FIRST].replace(b"1", b"2")})
    yield "two parts swapped", zipped({**parts, FIRST: parts[CHANNEL], CHANNEL: parts[FIRST]})
    yield "two parts of messages swapped", zipped({**parts, FIRST: parts[SECOND], SECOND: parts[FIRST]})
    yield "parts in another order", zipped(dict(reversed(parts.items())))
    yield "a part of another backup", zipped({**parts, "registry/conversation.jsonl.9999": b'{"x":1}\n'})
    yield "a file from elsewhere", zipped({**parts, "../../evil": b"x"})


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "other counts": lambda about: about["stats"].update(messageCount=7),
    "another version": lambda about: about.update(version="99"),
    "no version": lambda about: about.pop("version"),
    "another revision": lambda about: about.update(revision="zzzz"),
    "odd parts": lambda about: about.update(parts=[1, 2]),
    "another SHA-256": lambda about: [one.update(sha256="0" * 64) for one in about["parts"] if one["name"] == FIRST],
    "a part removed": lambda about: about.update(parts=[one for one in about["parts"] if one["name"] != FIRST]),
}


def zipped(parts: Parts) -> bytes:
    """Return a zip file of these parts, with valid checksums."""
    with tempfile.TemporaryFile() as file:
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)
        file.seek(0)
        return file.read()


def _with_inverted_byte(whole: bytes, content: bytes, name: str) -> bytes:
    """Return the file with one byte of a compressed part inverted."""
    begin = whole.index(name.encode()) + len(name)
    at = begin + len(zipped({"x": content})) // 4
    return whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]


async def measure(folder: Path) -> list[tuple[str, ...]]:
    """Return a table row for each kind of damage."""
    registry = Registry(f"sqlite:///{folder}/registry.db")
    orchestrator = Orchestrator(
        registry, local_files=LocalFiles(folder / "backups", [], Paths(folder, {}), folder / "resume")
    )
    await _fill(orchestrator)
    made = (await orchestrator.run({"operation": "create_backup"}))["path"]
    lines: list[tuple[str, ...]] = [
        (damage, *await _outcomes(orchestrator, path))
        for damage, path in await asyncio.to_thread(_write_damaged, made, folder)
    ]
    registry.close()
    return lines


def _write_damaged(made: str, folder: Path) -> list[tuple[str, str]]:
    """Write a damaged copy of the backup for each kind; return the kinds with the paths."""
    with ZipFile(made) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    files = []
    for number, (damage, content) in enumerate(damaged_copies(Path(made).read_bytes(), parts)):
        path = folder / f"{number}.zip"
        path.write_bytes(content)
        files.append((damage, str(path)))
    return files


async def _fill(orchestrator: Orchestrator) -> None:
    chance = random.Random(3)
    words = [f"w{number:04}" for number in range(4000)]
    for channel in range(CHANNELS):
        messages = [
            {"role": ("user", "assistant")[place % 2], "text": f"{place} {' '.join(chance.choices(words, k=WORDS))}"}
            for place in range(MESSAGES)
        ]
        await orchestrator.run({"operation": "save", "channel": f"channel_{channel}", "messages": messages})


async def _outcomes(orchestrator: Orchestrator, path: str) -> tuple[str, str, str]:
    async def ask(operation: str, **query: Any) -> dict[str, Any]:
        return await orchestrator.run({"operation": operation, "query": {"path": path, **query}})

    validated = await ask("validate_backup")
    restored, rest = [await ask("restore_backup", dry_run=True, rest=is_rest) for is_rest in (False, True)]
    named = [f"{one['part']} {one['why']}" for one in validated.get("damaged", ())]
    return (
        validated["error"]["message"] if "error" in validated else "; ".join(named) or "whole",
        restored["error"]["message"] if "error" in restored else "ok",
        "-" if "error" in rest else f"{rest['messagesRestored']} of {CHANNELS * MESSAGES}",
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(table(HEADS, asyncio.run(measure(Path(folder)))))


if __name__ == "__main__":
    main()
