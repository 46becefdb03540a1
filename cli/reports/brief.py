"""`ctxr brief`: what a day brought."""

from __future__ import annotations

import click

from cli.operations import operation, run_operation
from cli.output import as_json_option, print_json, printable
from orchestrator.requests.calls import utc_offset_minutes

FAILED = 1


@click.command()
@click.argument("date", default="yesterday", help="2026-01-31, or words: today, yesterday, 어제.")
@click.option("--language", type=click.Choice(["en", "ko"]), help="Default: the one that was mostly spoken.")
@click.option("--again", is_flag=True, help="Hand it also to a system where it is not known whether it has it.")
@as_json_option
def brief(date: str, language: str | None, again: bool, as_json: bool) -> None:
    """Say what a day brought: what was decided, what is open, what was worked on.

    It is kept, and handed once to the tools of config.toml's [[actions]]. Where one
    of them fails, the briefing stays, the exit status is 1, and the same command
    tries that one again.
    """
    query = {"date": date, "language": language, "again": again, "utc_offset_minutes": utc_offset_minutes()}
    done = run_operation(operation("daily_briefing", query))["briefing"]
    if as_json:
        print_json(done)
    else:
        click.echo(printable(done["text"]), nl=False)
        for action in done["actions"]:
            click.echo(f"{action['name']}: {action.get('error') or action.get('result') or action['status']}", err=True)
    if any(action["status"] != "done" for action in done["actions"]):
        click.get_current_context().exit(FAILED)
