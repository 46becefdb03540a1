"""Draw docs/demo.svg, the README's animation, from a real run: python -m benchmarks.demo

The conversations of `ctxr try` are logged, and `extract` is asked one question; all texts shown come from this run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from textwrap import wrap
from typing import Any

from benchmarks.retrieval.product import product_with
from benchmarks.retrieval.question_sets import Message, QuestionSet, Session
from benchmarks.setup.servers import ROOT

PICTURE = ROOT / "docs" / "demo.svg"
NOW = datetime(2026, 1, 15, 10, tzinfo=UTC)
QUESTION = "How long do our access tokens live?"
SHOWN = 2  # messages shown of the conversation, and of the answer

COLUMNS, LINE, PADDING = 52, 17, 10  # characters per line; line height and padding in px
WIDTH, PANEL, TOP = 800, 385, 34  # px
BETWEEN_S = 1.3  # seconds between the appearance of two steps

STYLE = """
    text { font: 13px ui-sans-serif, system-ui, 'Segoe UI', Roboto, sans-serif; fill: #1f2328 }
    .head { font-weight: 600; font-size: 15px }
    .call { font: 12px ui-monospace, Consolas, monospace; fill: #59636e }
    rect { fill: #f6f8fa; stroke: #d1d9e0 }
    .user rect { fill: #ddf4ff; stroke: #54aeff }
    .found rect { fill: #dafbe1; stroke: #4ac26b }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .call { fill: #9198a1 } rect { fill: #161b22; stroke: #3d444d }
      .user rect { fill: #0c2d6b; stroke: #1f6feb } .found rect { fill: #04260f; stroke: #238636 }
    }
    @media (prefers-reduced-motion: no-preference) { g { animation: appear .6s both } }
    @keyframes appear { from { opacity: 0 } }"""


@dataclass(frozen=True)
class Step:
    """A text that appears in panel 0 or 1; `kind` is its CSS class."""

    panel: int
    kind: str
    text: str


def sessions() -> Iterator[Session]:
    """Yield the conversations of `ctxr try`, dated relative to `NOW`."""
    given = json.loads((ROOT / "orchestrator" / "sample.json").read_text(encoding="utf-8"))
    for number, one in enumerate(given):
        start = NOW - timedelta(days=one["days_ago"])
        said = [
            Message(f"{number}.{minute}", role, text, (start + timedelta(minutes=minute)).isoformat())
            for minute, (role, text) in enumerate(one["messages"])
        ]
        yield Session(str(number), said, one["source"], title=one["title"])


async def answer(held: Sequence[Session]) -> Mapping[str, Any]:
    """Log the conversations and return the result of `extract` for the question."""
    async with product_with(QuestionSet("demo", NOW, "UTC", held, ())) as product:
        return (await product.ask("extract", {"query": {"text": QUESTION}})).result


def steps(held: Sequence[Session], result: Mapping[str, Any]) -> Iterator[Step]:
    """Yield the messages in Cursor, then the question to Claude Code and the result of `extract`."""
    for said in held[-1].messages[:SHOWN]:
        yield Step(0, said.role, said.text)
    yield Step(0, "call", "kept on this machine")
    yield Step(1, "user", QUESTION)
    yield Step(1, "call", f"extract: from {result['source']}, confidence {result['confidence']}")
    for message in result["messages"][:SHOWN]:
        yield Step(1, "found", message["text"])


def picture(shown: Sequence[Step]) -> str:
    """Return the SVG, in which the steps appear one after the other."""
    drawn, heights = [], [TOP, TOP]
    for number, step in enumerate(shown):
        lines = [step.text] if step.kind == "call" else wrap(step.text, COLUMNS)
        top, height = heights[step.panel], len(lines) * LINE + PADDING
        drawn.append(_box(step, lines, top, number * BETWEEN_S))
        heights[step.panel] = top + height + PADDING
    heads = [f'<text class="head" x="{left}" y="20">{name}</text>' for left, name in zip(_LEFT, _HEADS, strict=True)]
    alt = f"Said in Cursor, asked in Claude Code: {QUESTION}"
    size = f"0 0 {WIDTH} {max(heights)}"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img" aria-label="{alt}">
  <style>{STYLE}
  </style>
  {"".join(heads)}
{"".join(drawn)}</svg>
"""


_LEFT = (1, WIDTH - PANEL - 1)
_HEADS = ("Cursor, yesterday", "Claude Code, today")


def _box(step: Step, lines: Sequence[str], top: int, after_s: float) -> str:
    left, is_call = _LEFT[step.panel], step.kind == "call"
    height = len(lines) * LINE + PADDING
    box = "" if is_call else f'<rect x="{left}" y="{top}" width="{PANEL}" height="{height}" rx="8"/>'
    style = ' class="call"' if is_call else ""
    texts = (
        f'<text{style} x="{left + PADDING}" y="{top + LINE * number}">{escape(line)}</text>'
        for number, line in enumerate(lines, 1)
    )
    return f'  <g class="{step.kind}" style="animation-delay: {after_s:.1f}s">{box}{"".join(texts)}</g>\n'


def draw() -> str:
    """Run the demo and return its SVG."""
    held = list(sessions())
    return picture(list(steps(held, asyncio.run(answer(held)))))


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
