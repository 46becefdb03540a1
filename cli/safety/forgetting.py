"""`ctxr forget`, `ctxr scan`, `ctxr redact`: what shall not be kept."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from cli.operations import ProjectFolder, SessionId, operation, run_operation
from cli.output import counted
from registry.domain import names_message
from registry.errors import InvalidRequest, NotFound
from registry.settings import read_settings

if TYPE_CHECKING:
    from registry.ingest.redact_existing import Held

LEFT = "Files that you exported, backups, and what the clients themselves keep are left as they are."
_json_option = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.command()
@click.argument("named", metavar="[ID]", required=False, type=SessionId(), help="A message by its id, or as --channel.")
@click.option("--channel", type=SessionId(), help="A whole conversation, by any of its names.")
@click.option("--project", type=ProjectFolder(), help="All of a project: current, a path, or a folder's name.")
@click.option("--before", metavar="TIME", help="What is older: 2025-01-31, 90d, last year.")
@click.option("--matching", metavar="WORDS", help="Messages that hold exactly these words, in any case.")
@click.option("--dry-run", is_flag=True, help="Only say what would be forgotten.")
@click.option("--yes", is_flag=True, help="Without asking.")
@_json_option
def forget(
    named: str | None,
    channel: str | None,
    project: str | None,
    before: str | None,
    matching: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Forget for good: it cannot be restored, and does not come back.

    All that is named must hold: --project with --before forgets what is old in one
    project. Messages, index, vectors and what was recorded of them go. A resend, a
    hook or a client's own file that tells of it again is recognised and not stored;
    of a conversation forgotten as a whole, nothing said in it later is kept either.
    """
    message_id = named if named and names_message(named) else None
    channel = channel or (named if named and not message_id else None)
    query = {"id": message_id, "project": project, "before": before, "matching": matching, "soft": False}
    if not any((message_id, channel, project, before, matching)):
        raise InvalidRequest("Nothing to forget was named.", "allowed: ID, --channel, --project, --before, --matching")
    meant = run_operation(operation("delete", {**query, "dry_run": True}, channel))
    found = meant["receipt"]
    if not dry_run:
        if not yes:
            click.confirm(f"Forget {_counted(found)}{_named(meant)} for good?", abort=True, err=True)
        found = run_operation(operation("delete", query, channel))["receipt"]
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=2))
    elif dry_run:
        click.echo(f"Would forget {_counted(found)}.")
    else:
        beside = f"{found['vectors']} vectors, {found['executions']} records, {found['results']} results"
        click.echo(f"Forgotten: {_counted(found)}, with {beside}. Receipt {found['id']}, {found['forgotten_at']}.")
        click.echo(LEFT)


def _named(meant: dict[str, Any]) -> str:
    row = meant.get("channel")
    return f", {row['title'] or row['channel']!r}," if row else ""


def _counted(receipt: dict[str, Any]) -> str:
    whole = counted(receipt["channels"], "whole conversation")
    return f"{counted(receipt['messages'], 'message')} ({whole})"


@click.command()
@_json_option
def scan(as_json: bool) -> None:
    """Count the secrets that are stored: from before they were masked, or by a setting."""
    _report(_held("Scanning"), "are stored", as_json)


@click.command()
@click.option("--existing", is_flag=True, required=True, help="What is stored already; what comes in is masked anyway.")
@click.option("--dry-run", is_flag=True, help="Only say what would be masked.")
@click.option("--yes", is_flag=True, help="Without asking.")
@_json_option
def redact(existing: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Mask the secrets that are stored: in messages, index, titles and records.

    Stopped in the middle, it masks the rest when it is run again. At the end the
    registry's file is written anew, which needs as much room as it has.
    """
    found = _held("Scanning")
    if found.rows and not dry_run:
        if not yes:
            click.confirm(f"Mask {found.kinds.total()} secrets for good?", abort=True, err=True)
        found = _held("Masking", is_dry=False)
    _report(found, "would be masked" if dry_run else "were masked", as_json)


def _report(held: Held, what: str, as_json: bool) -> None:
    told = held.as_dict()
    if as_json:
        click.echo(json.dumps(told, ensure_ascii=False, indent=2))
    if not held.rows:
        raise NotFound("No secrets.", "nothing in the registry looks like one")
    if not as_json:
        for kind, count in told["secrets"].items():
            click.echo(f"{count:6}  {kind}")
        rows = f"{told['messages']} messages, {told['channels']} titles and summaries, {told['executions']} records"
        click.echo(f"{told['total']} secrets {what}, in {rows}.")


def _held(label: str, *, is_dry: bool = True) -> Held:
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def show(done: int, total: int) -> None:
            bar.length = max(total, 1)
            bar.update(done - bar.pos)

        return asyncio.run(_walk(show, is_dry))


async def _walk(show: Callable[[int, int], None], is_dry: bool) -> Held:
    from registry.ingest.intake import Keeping
    from registry.ingest.redact_existing import Held, note_scanned, redact, scan
    from registry.registry import Registry
    from registry.text.privacy.rules import load_rules, use_own_rules

    settings = read_settings()
    use_own_rules(settings.home)
    if load_rules().problem:
        raise InvalidRequest("The rules for secrets are wrong", load_rules().problem)
    registry = Registry(settings.url, keeping=Keeping(settings.unmasked_projects, settings.never_keep))
    try:
        held = await (scan if is_dry else redact)(registry, show)
        note_scanned(settings.home, held if is_dry else Held())
        return held
    finally:
        registry.close()
