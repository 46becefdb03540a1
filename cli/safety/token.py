"""`ctxr token`: who else may read and write the registry over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.operations import ProjectFolder
from cli.output import as_json_option, cut, local_time, pad, print_json
from registry.access import Level
from registry.settings import read_settings

if TYPE_CHECKING:
    from registry.registry import Registry
    from registry.storage.database import WriteTransaction

T = TypeVar("T")

_SPAN = re.compile(r"(\d{1,5})\s*([hdwy])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "y": 365 * 24}
NEVER = "never"


class Expiry(click.ParamType[datetime | None]):
    """`90d`, `12h`, `4w`, `1y`, a day such as 2027-01-31, or `never`."""

    name = "WHEN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | None:
        """The instant; None for never."""
        if value == NEVER:
            return None
        now = datetime.now(UTC)
        span = _SPAN.fullmatch(value)
        try:
            moment = now + timedelta(hours=int(span[1]) * _HOURS[span[2]]) if span else datetime.fromisoformat(value)
            moment = moment if moment.tzinfo else moment.astimezone()
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time; give 90d, 12h, 4w, 1y, a day such as 2027-01-31, or never", param, ctx)
        if moment <= now:
            self.fail(f"{value!r} is over already", param, ctx)
        return moment


@click.group()
def token() -> None:
    """Say who else may use this registry over HTTP, and what they may do.

    As soon as there is a token, nobody gets in over HTTP without one. Commands
    and the servers that clients start on this machine need none: who can read
    the registry's files can read it all.
    """


@token.command()
@click.option("--name", required=True, help="What it is for: a person, a machine. Records show it.")
@click.option(
    "--scope",
    type=click.Choice([level.value for level in Level]),
    default=Level.READ.value,
    show_default=True,
    help="read; write: also log, name, delete, restore; admin: also delete for good, sync.",
)
@click.option(
    "--channels",
    multiple=True,
    metavar="PATTERN",
    help="Only channels called so, such as 'cursor_*'. May be repeated, or given with commas.",
)
@click.option(
    "--project", "projects", type=ProjectFolder(), multiple=True, help="Only this project: a path, or a folder's name."
)
@click.option("--expires", type=Expiry(), default="90d", show_default=True, help="90d, 12h, a day, or never.")
@as_json_option
def create(
    name: str,
    scope: str,
    channels: Sequence[str],
    projects: Sequence[str | None],
    expires: datetime | None,
    as_json: bool,
) -> None:
    """Make a token, and print it: this once, for only a digest of it is kept."""
    from registry.storage.safety.tokens import create_token

    patterns = [pattern.strip() for given in channels for pattern in given.split(",")]
    folders = [] if None in projects else [project for project in projects if project]
    made = _write(lambda tx: create_token(tx, name, Level(scope), patterns, folders, expires))
    if as_json:
        print_json({"token": made.secret, **made.item})
        return
    click.echo(made.secret)
    click.echo(f"{_about(made.item)}. It is not shown again. Send it as `Authorization: Bearer …`.", err=True)


@token.command(name="list")
@as_json_option
def list_(as_json: bool) -> None:
    """The tokens that were made: what for, until when, and when they were used last."""
    from registry.storage.safety.tokens import list_tokens

    items = _in_registry(lambda registry: registry.read(list_tokens))
    if as_json:
        print_json({"tokens": items})
        return
    if not items:
        click.echo("No tokens: over HTTP the registry is open to this machine alone.")
        return
    for item in items:
        used = f"used {local_time(item['used_at'])}" if item["used_at"] else "never used"
        click.echo(f"{pad(item['name'], 24)}  {pad(item['state'], 8)}  {used}")
        click.echo(cut(f"  {item['id']}  {_about(item)}", 120))


@token.command()
@click.argument("token_name", metavar="NAME|ID", help="Its name or id, as `ctxr token list` shows them.")
@as_json_option
def revoke(token_name: str, as_json: bool) -> None:
    """End a token: it opens nothing from now on."""
    from registry.storage.safety.tokens import revoke_token

    item = _write(lambda tx: revoke_token(tx, token_name))
    if as_json:
        print_json(item)
        return
    click.echo(f"{item['name']} opens nothing from now on.")


def _about(item: dict[str, Any]) -> str:
    where = ", ".join([*item["channels"], *item["projects"]]) or "all channels"
    until = f"until {local_time(item['expires_at'])}" if item["expires_at"] else "without end"
    return f"{item['scope']}, {where}, {until}"


def _write(work: Callable[[WriteTransaction], T]) -> T:
    return _in_registry(lambda registry: registry.write(work))


def _in_registry(work: Callable[[Registry], Coroutine[Any, Any, T]]) -> T:
    from registry.registry import Registry  # SQLAlchemy, which `ctxr -h` does not need

    registry = Registry(read_settings().url)
    try:
        return asyncio.run(work(registry))
    finally:
        registry.close()
