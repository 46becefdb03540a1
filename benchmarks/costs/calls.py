"""Time tool calls through the official Python client: the product compared with an echo of the same arguments."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

from mcp import Client

from benchmarks.costs.breakdown import Division, division_of
from benchmarks.setup import servers
from benchmarks.setup.conversations import Message, conversation, questions
from benchmarks.setup.figures import Comparison, Spread

CALLS = 40
WARM_UP = 5
STORED = 100  # messages of a conversation before the measured turn
CHANNEL_SIZE = 10_000
SEND_AT_ONCE = 500
ARCHIVE = "cursor_session_archive"
BASELINES = ("echo", "acknowledge")
AIMS = {"conversation_log": 3.0, "extract": 4.0}

Arguments = dict[str, Any]


async def measure(calls: int = CALLS) -> tuple[list[Comparison], list[Division]]:
    """Compare both tools over HTTP and over stdio, on one registry."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with (
            servers.http(servers.PRODUCT_HTTP, home) as product,
            servers.http(servers.BARE_HTTP, home) as bare,
        ):
            async with Client(f"{product}/mcp") as one, Client(f"{bare}/mcp") as other:
                await fill_archive(one)
                over_http = await compare("http", one, other, calls, product)
            over_stdio = await compare_over_stdio(home, calls, product)
    return over_http[0] + over_stdio[0], over_http[1] + over_stdio[1]


async def compare_over_stdio(home: Path, calls: int, backoffice: str) -> tuple[list[Comparison], list[Division]]:
    """Compare both tools on stdio servers that the client starts."""
    product = servers.stdio(servers.PRODUCT_STDIO, home)
    bare = servers.stdio(servers.BARE_STDIO, home)
    async with Client(product) as one, Client(bare) as other:
        return await compare("stdio", one, other, calls, backoffice)


async def compare(
    transport: str, product: Client, bare: Client, calls: int, backoffice: str
) -> tuple[list[Comparison], list[Division]]:
    """Compare both tools over one transport, and divide the product's time."""
    turns = [turn async for turn in started_conversations(product, transport, WARM_UP + calls)]
    arguments: dict[str, Iterable[Arguments]] = {
        "conversation_log": turns,
        "extract": searches(WARM_UP + calls),
    }
    comparisons, divisions = [], []
    for tool, requests in arguments.items():
        *baselines, ours = await timed_in_turn(product, bare, tool, requests)
        for baseline, spread in zip(BASELINES, baselines, strict=True):
            what = f"{tool} over {transport}, to {baseline}"
            comparisons.append(Comparison(what, spread, ours, AIMS[tool]))
        divisions.append(division_of(tool, transport, ours, backoffice))
    return comparisons, divisions


async def timed_in_turn(product: Client, bare: Client, tool: str, requests: Iterable[Arguments]) -> Iterator[Spread]:
    """Send each request to the baselines and to the product; return their times, the product's last."""
    rounds = [
        [await timed(bare, baseline, request) for baseline in BASELINES] + [await timed(product, tool, request)]
        for request in requests
    ]
    return map(Spread.of, zip(*rounds[WARM_UP:], strict=True))


async def timed(client: Client, tool: str, arguments: Arguments) -> float:
    """Return the seconds that one successful call takes."""
    started = time.perf_counter()
    answer = await client.call_tool(tool, arguments)
    took = time.perf_counter() - started
    assert not answer.is_error, answer.content
    return took


async def started_conversations(product: Client, transport: str, count: int) -> AsyncIterator[Arguments]:
    """Log `count` conversations of `STORED` messages; yield for each the call that resends it with two more."""
    for number in range(count):
        channel = f"claude_session_{transport}_{number}"
        messages = conversation(seed=number, count=STORED + 2)
        await log(product, channel, messages[:STORED])
        yield {"channel": channel, "messages": messages}


def searches(count: int) -> Iterator[Arguments]:
    """Yield `count` searches in the archive."""
    for text in itertools.islice(questions(seed=1), count):
        yield {"channel": ARCHIVE, "query": {"text": text}}


async def fill_archive(product: Client) -> None:
    """Log one conversation of `CHANNEL_SIZE` messages; each call sends new turns only."""
    messages = conversation(seed=0, count=CHANNEL_SIZE)
    for start in range(0, CHANNEL_SIZE, SEND_AT_ONCE):
        await log(product, ARCHIVE, messages[start : start + SEND_AT_ONCE])


async def log(product: Client, channel: str, messages: list[Message]) -> None:
    answer = await product.call_tool("conversation_log", {"channel": channel, "messages": messages})
    assert not answer.is_error, answer.content
