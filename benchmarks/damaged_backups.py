"""What a backup's damage costs: python -m benchmarks.damaged_backups

A backup of a made registry is damaged in many ways. Of each are told what `validate` names, whether `restore` refuses
it, and how many of the messages `restore --rest` would give back.
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


def damaged(whole: bytes, parts: Parts) -> Iterator[tuple[str, bytes]]:
    """The kinds of damage, each with the file that is left."""
    yield "none", whole
    yield "cut in the middle", whole[: len(whole) // 2]
    yield "cut, the last 100 bytes", whole[:-100]
    yield "empty", b""
    yield "another file", b"hello " * 100
    yield "another zip", packed({"a.txt": b"x"})
    for name in (MANIFEST, ABOUT, FIRST, CHANNEL):
        yield f"{name} missing", packed({other: content for other, content in parts.items() if other != name})
        yield f"{name}: a byte turned over", _turned_over(whole, parts[name], name)
    yield "manifest is no JSON", packed({**parts, MANIFEST: b'{"vers'})
    for damage, change in CHANGES.items():
        about = json.loads(parts[MANIFEST])
        change(about)
        yield f"manifest: {damage}", packed({**parts, MANIFEST: json.dumps(about).encode()})
    yield "a line edited", packed({**parts, FIRST: parts[FIRST].replace(b"1", b"2")})
    yield "two parts swapped", packed({**parts, FIRST: parts[CHANNEL], CHANNEL: parts[FIRST]})
    yield "two parts of messages swapped", packed({**parts, FIRST: parts[SECOND], SECOND: parts[FIRST]})
    yield "parts in another order", packed(dict(reversed(parts.items())))
    yield "a part of another backup", packed({**parts, "registry/conversation.jsonl.9999": b'{"x":1}\n'})
    yield "a file from elsewhere", packed({**parts, "../../evil": b"x"})


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "other counts": lambda about: about["stats"].update(messageCount=7),
    "another version": lambda about: about.update(version="99"),
    "no version": lambda about: about.pop("version"),
    "another revision": lambda about: about.update(revision="zzzz"),
    "odd parts": lambda about: about.update(parts=[1, 2]),
    "another SHA-256": lambda about: [one.update(sha256="0" * 64) for one in about["parts"] if one["name"] == FIRST],
    "a part less": lambda about: about.update(parts=[one for one in about["parts"] if one["name"] != FIRST]),
}


def packed(parts: Parts) -> bytes:
    """A zip of these parts, whose own checksums are right."""
    with tempfile.TemporaryFile() as file:
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            for name, content in parts.items():
                archive.writestr(name, content)
        file.seek(0)
        return file.read()


def _turned_over(whole: bytes, content: bytes, name: str) -> bytes:
    """The file with one byte turned over, in the middle of what is packed of a part."""
    begin = whole.index(name.encode()) + len(name)
    at = begin + len(packed({"x": content})) // 4
    return whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :]


async def measure(folder: Path) -> list[tuple[str, ...]]:
    """A line of the table for each kind of damage."""
    registry = Registry(f"sqlite:///{folder}/registry.db")
    orchestrator = Orchestrator(
        registry, local_files=LocalFiles(folder / "backups", [], Paths(folder, {}), folder / "resume")
    )
    await _fill(orchestrator)
    made = (await orchestrator.run({"operation": "create_backup"}))["path"]
    lines: list[tuple[str, ...]] = [
        (damage, *await _told(orchestrator, path)) for damage, path in await asyncio.to_thread(_written, made, folder)
    ]
    registry.close()
    return lines


def _written(made: str, folder: Path) -> list[tuple[str, str]]:
    """The kinds of damage, each with its file."""
    with ZipFile(made) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    files = []
    for number, (damage, content) in enumerate(damaged(Path(made).read_bytes(), parts)):
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


async def _told(orchestrator: Orchestrator, path: str) -> tuple[str, str, str]:
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
    """Damage, ask and print."""
    with tempfile.TemporaryDirectory() as folder:
        print(table(HEADS, asyncio.run(measure(Path(folder)))))


if __name__ == "__main__":
    main()
