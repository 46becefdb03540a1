"""`ctxr try`: read this machine's histories into a temporary folder, and answer one question from them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.conversations.transcript import transcript
from cli.operations import with_orchestrator
from cli.output import counted, cut, local_time, one_line

if TYPE_CHECKING:
    from orchestrator.service import Orchestrator
    from orchestrator.sync.store_report import StoreReport
    from sources.base import Paths


@click.command(name="try")
def try_it() -> None:
    """Try it: read this machine's histories, and see one question answered.

    Everything is written into one new folder, whose name is printed at the end
    with the commands that keep it or remove it. Nothing is installed or connected.
    """
    from cli.connect.snippets import command_name
    from registry.extras import PROGRAM, installer
    from registry.settings import read_settings

    folder = Path(tempfile.mkdtemp(prefix="ctxr-try-"))
    # Embedding would not be finished when the question is asked.
    settings = read_settings(home=folder, database_url="", database_read_url="", remote_url="", embed_model="off")
    with_orchestrator(_tour, settings)
    is_temporary = installer() == "uvx"
    keep = f"uv tool install {PROGRAM} && ctxr up" if is_temporary else f"{command_name()} up"
    click.echo(f"""
Ask more:   CTXR_HOME={folder} {command_name()} extract "your question"
Keep it:    {keep}    (reads the same into {read_settings().home})
Remove it:  rm -r {folder}    (nothing else was written)""")


async def _tour(orchestrator: Orchestrator) -> None:
    from cli.incoming.sync import Bars
    from orchestrator.sample import log_sample
    from orchestrator.sync.sync import sync
    from sources.base import Paths
    from sources.readers import READERS

    paths = Paths(Path.home(), os.environ)
    click.echo("Reading the histories of AI clients on this machine ...", err=True)
    with Bars() as bars:
        reports = await sync(orchestrator, READERS, paths, bars)
    sessions = await _sessions(orchestrator)
    if sessions:
        for line in _by_client(reports, sessions, paths):
            click.echo(line)
    else:
        click.echo("No histories here yet, so this is a sample: a week of somebody who uses four clients.")
        await log_sample(lambda given: orchestrator.run(given, "ctxr try"))
        sessions = await _sessions(orchestrator)
    for line in await _question_and_answer(orchestrator, sessions):
        click.echo(line)


async def _sessions(orchestrator: Orchestrator) -> list[dict[str, Any]]:
    sessions: list[dict[str, Any]] = []
    while True:
        query = {"limit": 1000, "offset": len(sessions)}
        outcome = await orchestrator.run({"operation": "list", "query": query, "source": "ctxr"}, "ctxr try")
        sessions += outcome["sessions"]
        if not outcome["pagination"]["has_more"]:
            return sessions


def _by_client(reports: Sequence[StoreReport], sessions: Sequence[Mapping[str, Any]], paths: Paths) -> Iterator[str]:
    """Return a line for each client: sessions, messages, first and last day, and when it deletes them."""
    from cli.connect.connections import connection_of
    from sources.clients import CLIENTS

    limits = {client.source: connection_of(client, paths).deletes_after_days for client in CLIENTS if client.servers}
    for source in dict.fromkeys(session["source"] for session in sessions):
        group = [session for session in sessions if session["source"] == source]
        first, last = min(one["created_at"] for one in group), max(one["updated_at"] for one in group)
        messages = counted(sum(one["message_count"] for one in group), "message")
        period = f"{local_time(first)[:10]} to {local_time(last)[:10]}"
        line = f"  {source}: {counted(len(group), 'session')}, {messages}, {period}"
        days = limits.get(source)
        yield f"{line}; deleted by the client after {days:g} days" if days else line
    if skipped := sum(report.skipped_count for report in reports):
        yield f"  {counted(skipped, 'item')} skipped; `ctxr sync` lists them"


async def _question_and_answer(orchestrator: Orchestrator, sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ask about the first of the user's latest sessions that its own title finds."""
    from orchestrator.operations.extract import extract_result

    suitable = [one for one in sessions if one["title"] and one["message_count"] >= 4]  # less makes a poor example
    for session in suitable[:5] or sessions[:1]:
        title = cut(one_line(session["title"] or session["first_message_preview"]), 60).rstrip("…")
        question = f"continue the conversation about {title}"
        start = time.perf_counter()
        query = {"text": question, "max_tokens": 1000}
        outcome = await orchestrator.run({"operation": "extract", "query": query, "source": "ctxr"}, "ctxr try")
        seconds = time.perf_counter() - start
        if outcome["success"] and (answer := extract_result(outcome))["channel"] == session["channel"]:
            headline = click.style(f'Any AI that you connect can now ask: "{question}"', bold=True)
            return ["", headline, f"and gets this, in {seconds:.2f} s:", "", *transcript(answer)]
    return ["Ask about anything that you remember:"]
