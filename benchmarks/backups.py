"""Make backups while eight writers write, restore them and compare each message: python -m benchmarks.backups

`ctxr backup create` runs while the server does. Each backup is restored into a new SQLite registry. It must hold, in
whole turns, all messages acknowledged before it began, and each must equal the registry's in every field.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from mcp import Client

from benchmarks.crowd import TIMEOUT_S
from benchmarks.setup import servers
from benchmarks.setup.figures import table
from benchmarks.setup.registries import postgresql, sqlite
from benchmarks.setup.writers import Writer
from registry.registry import Registry

WRITERS, BACKUPS = 8, 2
FIRST_TURNS = 10
REGISTRIES = {"sqlite": sqlite, "postgresql": postgresql}
UNLIMITED = 1_000_000
HEADS = ("registry", "backup", "acknowledged before", "messages in it", "missing", "different", "half turns")


async def measure_backups(name: str, url: str) -> list[tuple[str, ...]]:
    """Back up a registry several times, and return a table row for each backup."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        env = servers.environment(home) | {"CTXR_EMBED_MODEL": "off"} | ({"CTXR_DATABASE_URL": url} if url else {})
        process = servers.start_http(servers.PRODUCT_HTTP, home, port := servers.free_port(), env)
        writers = [Writer(f"writer{number}", f"cursor_session_{number}") for number in range(WRITERS)]
        try:
            made = await _back_up_while_writing(writers, f"http://127.0.0.1:{port}/mcp", env, Path(folder))
        finally:
            servers.kill(process)
        whole = await _stored_messages(url or f"sqlite:///{env['CTXR_HOME']}/registry.db", writers)
        return [
            (name, str(number), *await _compare(path, known, whole, writers, Path(folder) / f"back{number}"))
            for number, (path, known) in enumerate(made, 1)
        ]


async def _back_up_while_writing(
    writers: Sequence[Writer], address: str, env: Mapping[str, str], folder: Path
) -> list[tuple[Path, list[int]]]:
    """Return the backups, each with the number of messages per writer that were acknowledged before it."""
    is_over = asyncio.Event()

    async def write(writer: Writer, client: Client, turns: int = UNLIMITED) -> None:
        while turns > 0 and not is_over.is_set():
            turns -= 1
            await writer.log_turn(client)

    made: list[tuple[Path, list[int]]] = []
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(address, read_timeout_seconds=TIMEOUT_S)) for _ in writers]
        await asyncio.gather(
            *(write(writer, client, FIRST_TURNS) for writer, client in zip(writers, clients, strict=True))
        )
        async with asyncio.TaskGroup() as group:
            for writer, client in zip(writers, clients, strict=True):
                group.create_task(write(writer, client))
            for number in range(BACKUPS):
                known, path = [len(writer.acknowledged) for writer in writers], folder / f"{number}.zip"
                await asyncio.to_thread(_ctxr, env, "backup", "create", str(path))
                made.append((path, known))
            is_over.set()
    return made


def _ctxr(env: Mapping[str, str], *words: str) -> None:
    subprocess.run([servers.CTXR, *words], env=dict(env), check=True, stdout=subprocess.DEVNULL)


async def _stored_messages(url: str, writers: Sequence[Writer]) -> dict[str, list[dict[str, Any]]]:
    registry = Registry(url)
    found = {writer.channel: await registry.get_conversations(writer.channel, UNLIMITED) for writer in writers}
    registry.close()
    return found


async def _compare(
    path: Path, known: Sequence[int], whole: Mapping[str, Any], writers: Sequence[Writer], home: Path
) -> list[str]:
    env = servers.environment(home) | {"CTXR_EMBED_MODEL": "off"}
    _ctxr(env, "backup", "restore", str(path))
    back = await _stored_messages(f"sqlite:///{env['CTXR_HOME']}/registry.db", writers)
    counts = [len(back[writer.channel]) for writer in writers]
    missing = sum(max(0, before - there) for before, there in zip(known, counts, strict=True))
    different = sum(
        json.dumps(one, sort_keys=True, default=str) != json.dumps(other, sort_keys=True, default=str)
        for channel, messages in back.items()
        for one, other in zip(messages, whole[channel], strict=False)
    )
    return [*map(str, (sum(known), sum(counts), missing, different, sum(count % 2 for count in counts)))]


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.backups", description=__doc__)
    options.add_argument("--on", action="append", choices=REGISTRIES, help="one registry; may be repeated")
    lines: list[tuple[str, ...]] = []
    for name in options.parse_args().on or REGISTRIES:
        with REGISTRIES[name]() as url:
            lines += asyncio.run(measure_backups(name, url))
    print(table(HEADS, lines))


if __name__ == "__main__":
    main()
