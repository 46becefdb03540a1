"""`ctxr brief`: a day's briefing."""

from __future__ import annotations

import sys

import click

from cli.operations import run_operation
from cli.output import as_json_option, print_json, printable
from orchestrator.requests.calls import utc_offset_minutes


@click.command()
@click.argument("date", default="yesterday", help="2026-01-31, or words: today, yesterday, 어제.")
@click.option("--language", type=click.Choice(["en", "ko"]), help="Default: the language used most that day.")
@click.option("--again", is_flag=True, help="Also retry deliveries whose outcome is unknown.")
@as_json_option
def brief(date: str, language: str | None, again: bool, as_json: bool) -> None:
    """Print a day's briefing: decisions, open questions, what was worked on.

    It is stored, and delivered once to the tools of config.toml's [[actions]]. If
    a delivery fails, the exit status is 1 and the same command tries it again.
    """
    query = {"date": date, "language": language, "again": again, "utc_offset_minutes": utc_offset_minutes()}
    done = run_operation("daily_briefing", query)["briefing"]
    if as_json:
        print_json(done)
    else:
        click.echo(printable(done["text"]), nl=False)
        for action in done["actions"]:
            click.echo(f"{action['name']}: {action.get('error') or action.get('result') or action['status']}", err=True)
    if any(action["status"] != "done" for action in done["actions"]):
        sys.exit(1)
