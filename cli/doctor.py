"""`ctxr doctor`: what is configured, what is reachable, and what to do."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from cli.checks import Finding, check_all, shown_address
from cli.output import as_json_option, line_width, print_json
from cli.text import pad, wrap
from registry.errors import RegistryError
from registry.settings import Settings, read_settings

COLOURS = {"ok": "green", "note": "yellow", "broken": "red"}
STATE_WIDTH, NAME_WIDTH = 8, 16


@click.command()
@as_json_option
def doctor(as_json: bool) -> None:
    """Say what is configured, what is reachable, and what to do.

    Changes nothing. Exit status 1 if something is broken.
    """
    settings: dict[str, dict[str, Any]] = {}
    try:
        configured = read_settings()
        settings = origins(configured)
        findings = list(check_all(configured, Path.home()))
    except RegistryError as exc:
        findings = [Finding("broken", "configuration", exc.message, exc.details)]
    is_healthy = all(finding.state != "broken" for finding in findings)
    if as_json:
        print_json({"ok": is_healthy, "settings": settings, "findings": [asdict(finding) for finding in findings]})
    else:
        show(settings, findings)
    if not is_healthy:
        raise click.exceptions.Exit(1)


def origins(settings: Settings) -> dict[str, dict[str, Any]]:
    """Every setting's value and where it comes from: environment, config.toml or default."""
    return {name: {"value": _shown(settings, name), "from": _origin(settings, name)} for name in Settings.model_fields}


def _shown(settings: Settings, name: str) -> str | int | float:
    value = getattr(settings, name)
    return value if isinstance(value, int | float) else shown_address(str(value))


def _origin(settings: Settings, name: str) -> str:
    variable = f"CTXR_{name.upper()}"
    if variable in (given.upper() for given in os.environ):
        return variable
    return "config.toml" if name in settings.model_fields_set else "default"


def show(settings: dict[str, dict[str, Any]], findings: list[Finding]) -> None:
    """The same for a reader: settings first, then what was found."""
    for name, setting in settings.items():
        value = "-" if setting["value"] == "" else setting["value"]
        click.echo(f"{pad('', STATE_WIDTH)}{pad(name, NAME_WIDTH)}{value}  {_dim('(' + setting['from'] + ')')}")
    width = line_width() - STATE_WIDTH - NAME_WIDTH
    for finding in findings:
        state = click.style(pad(finding.state, STATE_WIDTH), fg=COLOURS[finding.state])
        first, *more = wrap(finding.found, width)
        click.echo(f"{state}{pad(finding.what, NAME_WIDTH)}{first}")
        to_do = wrap(f"to do: {finding.remedy}", width) if finding.remedy else ()
        for line in [*more, *map(_dim, to_do)]:
            click.echo(" " * (STATE_WIDTH + NAME_WIDTH) + line)


def _dim(text: str) -> str:
    return click.style(text, dim=True)
