"""Send invalid requests over stdio and HTTP: python -m benchmarks.fuzz [--cases N] [--seed N]

Requests for all tools and other methods are mutated: values are replaced by hostile ones (lone surrogates, huge
numbers, deep nesting, wrong types), removed, or added under unknown names, and bytes of some lines are changed. Each
must be answered or refused. `internal` counts internal errors, `silent` missing answers of a running server, and
`crashes` servers that ended. All three should be 0.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import json
import random
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.setup import servers
from benchmarks.setup.figures import table
from orchestrator.operations import tools

TIMEOUT_S = 180.0
HOSTILE_VALUES: tuple[Callable[[], Any], ...] = (
    lambda: "\ud800",
    lambda: "a\udfffb" * 50,
    lambda: "\x00",
    lambda: "\u202e\U000e0041",
    lambda: "x" * 300_000,
    lambda: "../" * 40 + "etc/passwd",
    lambda: "0001-01-01T00:00:00Z",
    lambda: "9999-12-31T23:59:59.999999Z",
    lambda: "%s{0}'\";--",
    lambda: "((((" * 500,
    lambda: 2**63,
    lambda: -(2**200),
    lambda: 10**4000,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: 1e308,
    lambda: True,
    lambda: None,
    list,
    dict,
    lambda: {"a" * 5000: {"\ud800": [None] * 100}},
    lambda: [{}] * 2000,
    lambda: _nested(60),
    lambda: _nested(400),
)
OTHER_METHODS: tuple[dict[str, Any], ...] = (
    {"method": "resources/read", "params": {"uri": "registry://channels/fuzz/summary"}},
    {"method": "prompts/get", "params": {"name": "search", "arguments": {"query": "heron"}}},
    {"method": "completion/complete", "params": {"ref": {"type": "ref/prompt", "name": "load"}, "argument": {}}},
    {"method": "resources/subscribe", "params": {"uri": "registry://channels/fuzz"}},
    {"method": "logging/setLevel", "params": {"level": "debug"}},
    {"method": "tools/list", "params": {"cursor": "x"}},
)
HEADS = ("door", "cases", "answered", "refused", "internal", "silent", "crashes")
OPENING = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}

Ask = Callable[[bytes], Awaitable[dict[str, Any] | None]]
"""Sends a line and returns the answer, None if there is none. Raises ConnectionError if the server has ended."""


def _nested(depth: int) -> Any:
    made: Any = "deep"
    for number in range(depth):
        made = [made] if number % 2 else {"a": made}
    return made


def cases_of(tools: list[dict[str, Any]], count: int, chance: random.Random) -> Iterator[bytes]:
    """Yield `count` mutated requests, one JSON line each."""
    names = [tool["name"] for tool in tools]
    calls = [
        {"method": "tools/call", "params": {"name": name, "arguments": {**_all_arguments(tool), **_example(name)}}}
        for name, tool in zip(names, tools, strict=True)
    ]
    calls += [{"method": "tools/call", "params": {"name": name, "arguments": _example(name)}} for name in names]
    for number in range(count):
        request = {"jsonrpc": "2.0", "id": f"case-{number}", **copy.deepcopy(chance.choice([*calls, *OTHER_METHODS]))}
        for _ in range(chance.choice((0, 1, 1, 1, 2))):
            _mutate(request, chance)
        line = json.dumps(request).encode()
        yield _with_other_bytes(line, chance) if chance.random() < 0.2 else line


def _example(name: str) -> dict[str, Any]:
    return dict(tools()[name].example) if name in tools() else {}


def _all_arguments(tool: dict[str, Any]) -> dict[str, Any]:
    """Return every argument of the tool's schema, with the value None."""
    return dict.fromkeys(tool["inputSchema"].get("properties", {}))


def _mutate(request: dict[str, Any], chance: random.Random) -> None:
    """Replace or remove one value in the request's params, or add one under an unknown name."""
    locations = list(_locations(request["params"], request, "params"))
    inside, at = chance.choice(locations)
    how = chance.random()
    if how < 0.1 and isinstance(inside, dict) and inside is not request:
        del inside[at]
    elif how < 0.2 and isinstance(inside[at], dict):
        inside[at]["\ud83dnobody"] = chance.choice(HOSTILE_VALUES)()
    else:
        inside[at] = chance.choice(HOSTILE_VALUES)()


def _locations(value: Any, inside: Any, at: Any) -> Iterator[tuple[Any, Any]]:
    yield inside, at
    if isinstance(value, dict | list):
        for name, held in value.items() if isinstance(value, dict) else enumerate(value[:20]):
            yield from _locations(held, value, name)


def _with_other_bytes(line: bytes, chance: random.Random) -> bytes:
    """Return the line, perhaps truncated, with up to eight bytes changed and without line breaks."""
    changed = bytearray(line[: chance.randint(1, len(line))] if chance.random() < 0.3 else line)
    for _ in range(chance.randint(1, 8)):
        changed[chance.randrange(len(changed))] = chance.choice([*range(32, 256), 0, 9])
    return bytes(changed)


async def fuzz(door: str, ask: Ask, cases: int, seed: int) -> tuple[str, ...]:
    """Send all cases to one door and return its table row. RuntimeError if it has no tools."""
    listed = await ask(json.dumps({"jsonrpc": "2.0", "id": "tools", "method": "tools/list"}).encode())
    if not listed:
        raise RuntimeError(f"{door}: no tools")
    counted = Counter[str]()
    for line in cases_of(listed["result"]["tools"], cases, random.Random(seed)):
        try:
            counted[_kind(await ask(line))] += 1
        except ConnectionError:
            counted["crashes"] += 1
            print(f"{door} ended: {line[:300]!r}", flush=True)
            break
    return (door, str(counted.total()), *(str(counted[name]) for name in HEADS[2:]))


def _kind(answer: dict[str, Any] | None) -> str:
    if answer is None:
        return "silent"
    if "INTERNAL_ERROR" in json.dumps(answer) or answer.get("error", {}).get("code") == -32603:
        print("internal:", json.dumps(answer)[:300], flush=True)
        return "internal"
    return "refused" if "error" in answer or answer.get("result", {}).get("isError") else "answered"


async def over_stdio(cases: int, seed: int) -> tuple[str, ...]:
    """Fuzz `ctxr mcp`. A ping follows each case, so that a missing answer differs from a hanging server."""
    with tempfile.TemporaryDirectory() as folder:
        # CTXR_SHARED: through the local process, as clients connect
        env = servers.environment(Path(folder)) | {"CTXR_EMBED_MODEL": "off", "HOME": folder, "CTXR_SHARED": "on"}
        pipe = asyncio.subprocess.PIPE
        server = await asyncio.create_subprocess_exec(
            servers.CTXR, "mcp", env=env, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, limit=2**26
        )
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no pipes")
        stdin, stdout, numbers = server.stdin, server.stdout, iter(range(10**9))

        async def ask(line: bytes) -> dict[str, Any] | None:
            ping = f"ping-{next(numbers)}"
            last = json.dumps({"jsonrpc": "2.0", "id": ping, "method": "ping"}).encode()
            stdin.write(line.replace(b"\n", b" ") + b"\n" + last + b"\n")
            await stdin.drain()
            found: dict[str, Any] | None = None
            is_alive = False
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    while not (found and is_alive):
                        answer = await stdout.readline()
                        if not answer:
                            raise ConnectionResetError
                        said = json.loads(answer)
                        if said.get("id") == ping:
                            is_alive = True
                        elif ("result" in said or "error" in said) and not str(said.get("id")).startswith("ping-"):
                            found = said
            except TimeoutError:
                if not is_alive:
                    raise ConnectionResetError from None
            return found

        await ask(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": OPENING}).encode())
        try:
            return await fuzz("stdio", ask, cases, seed)
        finally:
            server.kill()
            await server.wait()


async def over_http(cases: int, seed: int) -> tuple[str, ...]:
    """Fuzz `ctxr serve` with an HTTP request for each case."""
    with tempfile.TemporaryDirectory() as folder:
        env = servers.environment(Path(folder)) | {"CTXR_EMBED_MODEL": "off", "HOME": folder}
        with servers.http(servers.PRODUCT_HTTP, Path(folder), env) as address:
            headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
            async with httpx2.AsyncClient(base_url=address, headers=headers, timeout=TIMEOUT_S) as client:

                async def ask(line: bytes) -> dict[str, Any] | None:
                    try:
                        answer = await client.post("/mcp", content=line)
                    except httpx2.TimeoutException:
                        return None
                    except httpx2.TransportError as exc:
                        raise ConnectionResetError from exc
                    if answer.status_code >= 500:
                        return {"error": {"code": -32603, "message": answer.text[:200]}}
                    return _body(answer.text) or {"error": {"code": answer.status_code}}

                return await fuzz("HTTP", ask, cases, seed)


def _body(text: str) -> dict[str, Any]:
    """Return the answer in a body of JSON or of server-sent events; empty if there is none."""
    data = next((line[6:] for line in reversed(text.splitlines()) if line.startswith("data: ")), text)
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="number of requests over stdio, and over HTTP")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = [asyncio.run(door(options.cases, options.seed)) for door in (over_stdio, over_http)]
    print(table(HEADS, rows))


if __name__ == "__main__":
    main()
