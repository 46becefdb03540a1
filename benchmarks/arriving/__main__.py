"""Measure the context that a chat gets without asking: python -m benchmarks.arriving [--misses]

- hints: prompts that a past conversation answers, chatty ones, and tasks that no conversation answers. Each passes the
  hook's filter and the operation `hint`. The conversations are in the same file or in `benchmarks/retrieval/strangers`.
- acts: commands and edits, some of which a past chat of the project warns of. Each passes the hook's filter and `hint`.
- compactions: chats with the summary of a compaction, in Claude Code's format. A fact counts as given back if its
  needle, a few words of the chat, is in the note after the compaction.

The authors of the texts had not seen the code.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from benchmarks.retrieval.product import product_with
from benchmarks.retrieval.question_sets import read_set
from benchmarks.setup.figures import table
from cli.conversations.note import act_query
from cli.incoming.hook import changes_something, is_task
from cli.main import cli
from orchestrator.service import Orchestrator
from registry.registry import Registry
from sources.kit.drafts import COMPLETED, FAILED, call_title
from tests.sources.claude_code.claude_code_files import CWD, Dialogue, session_id, write

TEXTS = Path(__file__).parent / "texts"
SETS = Path(__file__).parents[1] / "retrieval" / "strangers"


async def hints(name: str, misses: list[str]) -> Iterator[tuple[str, ...]]:
    """Return a row for each kind of prompt: how many there are, hints, right conversations, right evidence."""
    given = json.loads((TEXTS / f"hints_{name}.json").read_text(encoding="utf-8"))
    prompts = given["prompts"]
    if "sessions" not in given:
        given = json.loads((SETS / f"{name}.json").read_text(encoding="utf-8"))
    for one in given["sessions"]:
        one.pop("user", None)  # all users share one registry
    count, hinted, right, quoted = (Counter[str]() for _ in range(4))
    async with product_with(read_set({**given, "questions": []}), by_meaning=True) as product:
        orchestrator = Orchestrator(product.registry, meaning=product.meaning)
        stored = product.stored_ids()
        for prompt in prompts:
            count[prompt["kind"]] += 1
            if not is_task(prompt["text"]):
                continue
            answer = await orchestrator.run({"operation": "hint", "query": {"text": prompt["text"]}, "source": "codex"})
            if answer["hint"]:
                is_right = product.sessions[answer["channel"]] == prompt["session"]
                hinted[prompt["kind"]] += 1
                right[prompt["kind"]] += is_right
                evidence = {stored[one] for one in prompt["evidence"]}
                quoted[prompt["kind"]] += bool(evidence.intersection(answer["told_of"]))
                if not is_right:
                    misses.append(f"{name} {prompt['kind']}: {prompt['text']}\n{answer['hint']}")
        await orchestrator.settle()
    return (
        (f"{name}: {kind}", f"{n}", f"{hinted[kind]}", f"{right[kind]}", f"{quoted[kind]}") for kind, n in count.items()
    )


async def acts(name: str, misses: list[str]) -> Iterator[tuple[str, ...]]:
    """Return a row for the acts that a history warns of, and one for the others."""
    given = json.loads((TEXTS / f"{name}.json").read_text(encoding="utf-8"))
    count, hinted, right, quoted = (Counter[str]() for _ in range(4))
    with tempfile.TemporaryDirectory() as home:
        orchestrator = Orchestrator(Registry(f"sqlite:///{home}/registry.db"))
        stored: dict[str, str] = {}
        for history in given["histories"]:
            log = {"channel": f"session_{history['id']}", "messages": [_logged(one) for one in history["messages"]]}
            meta = {"source": history["source"], "project": history["project"]}
            done = await orchestrator.run({"operation": "conversation_log", **log, "meta": meta})
            stored |= zip((one["id"] for one in history["messages"]), done["stored_ids"], strict=True)
        for act in given["acts"]:
            kind = "expected" if (expected := act["expects"]) else "others"
            count[kind] += 1
            asked = (
                act_query(json.dumps(act["input"]), act["project"], None) if changes_something(act["input"]) else None
            )
            answer = await orchestrator.run({"operation": "hint", "query": asked}) if asked else {"hint": ""}
            if answer["hint"]:
                is_right = bool(expected) and answer["channel"] == f"session_{expected['history']}"
                hinted[kind] += 1
                right[kind] += is_right
                quoted[kind] += is_right and any(stored[one] in answer["told_of"] for one in expected["messages"])
                if not is_right:
                    misses.append(f"{act['id']}: {act['input']}\n{answer['hint']}")
        await orchestrator.settle()
    return (
        (f"{name}: {kind}", f"{n}", f"{hinted[kind]}", f"{right[kind]}", f"{quoted[kind]}") for kind, n in count.items()
    )


def _logged(message: Mapping[str, Any]) -> dict[str, Any]:
    logged = {name: message[name] for name in ("role", "text", "timestamp")}
    if "tool" not in message:
        return logged
    tool = message["tool"]
    call = {"name": tool["name"], "params": tool["input"], "result": tool["output"]}
    title = call_title(tool["name"], tool["input"])
    status = FAILED if tool["failed"] else COMPLETED
    return {**logged, "text": f"{title}\n\n{message['text']}", "tool": {**call, "status": status}}


def compactions(name: str, misses: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kind of fact: how many there are, and how many are given back."""
    transcripts = json.loads((TEXTS / f"{name}.json").read_text(encoding="utf-8"))["transcripts"]
    facts, given_back = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, CTXR_HOME=f"{home}/ctxr", CTXR_EMBED_MODEL="off", CTXR_SHARED="off")
        for number, transcript in enumerate(transcripts, 1):
            write(Path(home) / ".claude", _dialogue(number, transcript["messages"], transcript["summary"]))
        CliRunner().invoke(cli, ["sync"], prog_name="ctxr")
        for number, transcript in enumerate(transcripts, 1):
            words = ["note", CWD, "--session", session_id(number), "--compacted"]
            note = _plain(CliRunner().invoke(cli, words, prog_name="ctxr").output)
            for fact in transcript["dropped"]:
                is_back = _plain(fact["needle"]) in note
                facts[fact["kind"]] += 1
                given_back[fact["kind"]] += is_back
                if not is_back:
                    misses.append(f"{transcript['id']} {fact['kind']}: {fact['what']}")
    yield from ((f"{name}: {kind}", f"{n}", f"{given_back[kind]}") for kind, n in facts.items())
    yield f"{name}: all", f"{facts.total()}", f"{given_back.total()}"


def _dialogue(number: int, messages: Sequence[Mapping[str, Any]], summary: str) -> Dialogue:
    talk = Dialogue(session_id(number))
    for at, message in enumerate(messages):
        if message["role"] == "user":
            talk.user(message["text"])
        elif message["role"] == "assistant":
            talk.says(message["text"], f"m{at}")
        else:
            talk.calls(message["name"], message["params"], f"c{at}", f"m{at}")
            talk.result(f"c{at}", message["result"], is_error=bool(message.get("is_error")))
    talk.add("system", subtype="compact_boundary", content="Conversation compacted")
    talk.user(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    return talk


def _plain(text: str) -> str:
    return " ".join(text.split()).lower()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--misses", action="store_true", help="also print wrong hints and missing facts")
    options = parser.parse_args()
    misses: list[str] = []
    names = [file.stem.removeprefix("hints_") for file in sorted(TEXTS.glob("hints_*.json"))]
    rows = [row for name in names for row in asyncio.run(hints(name, misses))]
    print(table(("prompts", "of", "hints", "right conversation", "its evidence"), rows), end="\n\n")
    names = [file.stem for file in sorted(TEXTS.glob("acts*.json"))]
    rows = [row for name in names for row in asyncio.run(acts(name, misses))]
    print(table(("acts", "of", "lines", "right conversation", "its evidence"), rows), end="\n\n")
    names = [file.stem for file in sorted(TEXTS.glob("compactions*.json"))]
    rows = [row for name in names for row in compactions(name, misses)]
    print(table(("facts that a summary dropped", "of", "given back"), rows))
    if options.misses:
        print("", *misses, sep="\n")


if __name__ == "__main__":
    main()
