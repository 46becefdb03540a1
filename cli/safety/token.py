"""`ctxr token`: access to the registry over HTTP."""

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from cli.operations import ProjectFolder, run_operation, with_registry
from cli.output import cut, local_time, pad, printed
from registry.access import Level


class Expiry(click.ParamType[datetime | None]):
    """`90d`, `12h`, `4w`, `1y`, a day such as 2027-01-31, or `never`."""

    name = "WHEN"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | None:
        if value == "never":
            return None
        now = datetime.now(UTC)
        span = re.fullmatch(r"(\d{1,5})\s*([hdwy])", value)
        try:
            if span:
                moment = now + int(span[1]) * timedelta(hours={"h": 1, "d": 24, "w": 168, "y": 8760}[span[2]])
            else:
                moment = datetime.fromisoformat(value).astimezone()
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a time; give 90d, 12h, 4w, 1y, a day such as 2027-01-31, or never", param, ctx)
        if moment <= now:
            self.fail(f"{value!r} is in the past", param, ctx)
        return moment


@click.group()
def token() -> None:
    """Manage access tokens for the HTTP side.

    As soon as there is a token, every HTTP request needs one. Commands and the
    servers that clients start on this machine need none: anyone who can read the
    registry's files can read all of it.
    """


def _created_lines(made: dict[str, Any]) -> Iterator[str]:
    yield made["token"]
    for pattern in made["unmatched"]:
        is_folder = pattern.startswith(os.sep) and not pattern.endswith("*")
        below = f" Folders below it: {pattern + '/*'!r}." if is_folder else ""
        click.echo(f"No conversation matches {pattern!r} yet.{below}", err=True)
    click.echo(f"{_about(made)}. It is not shown again. Send it as `Authorization: Bearer …`.", err=True)
    if made["scope"] in (Level.WRITE, Level.ADMIN):
        belongs = f"Conversations stored with it belong to {made['owner']} and are private until shared (ctxr share)."
        click.echo(belongs, err=True)
    click.echo("From now on every HTTP request needs a token. `ctxr open` still signs you in without one.", err=True)


@token.command()
@click.option("--name", required=True, help="A person or machine; records show it.")
@click.option(
    "--scope",
    type=click.Choice([level.value for level in Level]),
    default=Level.READ.value,
    show_default=True,
    help="metrics: only /metrics; read; write: also log, name, delete, restore, erase the owner's own; "
    "admin: also sync, erase all.",
)
@click.option(
    "--channels",
    multiple=True,
    metavar="PATTERN",
    help="Only channels that match, such as 'cursor_*'. May be repeated, or given with commas.",
)
@click.option(
    "--project",
    "projects",
    type=ProjectFolder(),
    multiple=True,
    help="Only this project: a path, a folder's name, or a pattern such as '/home/kim/*' for all below it.",
)
@click.option(
    "--owner",
    metavar="PERSON",
    help="The person who uses it, if not NAME: all tokens of a person see the person's chats. "
    "A person who signs in by OAuth is 'oauth:SUBJECT'.",
)
@click.option(
    "--per-minute",
    type=click.IntRange(0),
    metavar="N",
    help="Requests per minute that it may make; 0: no limit. Default: CTXR_REQUESTS_PER_MINUTE.",
)
@click.option("--expires", type=Expiry(), default="90d", show_default=True, help="90d, 12h, a day, or never.")
@printed(_created_lines)
def create(
    name: str,
    scope: str,
    channels: Sequence[str],
    projects: Sequence[str | None],
    owner: str | None,
    per_minute: int | None,
    expires: datetime | None,
) -> dict[str, Any]:
    """Create a token and print it once: only its digest is stored."""
    from registry.storage.safety.tokens import create_token

    patterns = [pattern.strip() for given in channels for pattern in given.split(",")]
    folders = [] if None in projects else [project for project in projects if project]
    made = with_registry(
        lambda registry: registry.write(
            lambda tx: create_token(tx, name, Level(scope), patterns, folders, expires, owner, per_minute)
        )
    )
    return {"token": made.secret, **made.item, "unmatched": made.unmatched}


def _list_lines(found: dict[str, Any]) -> Iterator[str]:
    for item in found["tokens"]:
        used = f"used {local_time(item['used_at'])}" if item["used_at"] else "never used"
        yield f"{pad(item['name'], 24)}  {pad(item['state'], 8)}  {used}"
        yield cut(f"  {item['id']}  {_about(item)}", 120)
    if not found["tokens"]:
        yield "No tokens: over HTTP the registry is open to this machine only."


@token.command("list")
@printed(_list_lines)
def list_tokens() -> dict[str, Any]:
    """List the tokens: scope, expiry and last use."""
    from registry.storage.safety.tokens import list_tokens

    return {"tokens": with_registry(lambda registry: registry.read(list_tokens))}


@token.command()
@click.argument("token_name", metavar="NAME|ID", help="Its name or id, as `ctxr token list` shows them.")
@printed(lambda item: [f"{item['name']} was {'signed out' if 'sessions' in item else 'revoked'}."])
def revoke(token_name: str) -> dict[str, Any]:
    """Revoke a token, or sign out a person (oauth:SUBJECT)."""
    revoked: dict[str, Any] = run_operation("revoke_token", {"name": token_name})["revoked"]
    return revoked


def _about(item: dict[str, Any]) -> str:
    where = ", ".join([*item["channels"], *item["projects"]]) or "all channels"
    until = f"until {local_time(item['expires_at'])}" if item["expires_at"] else "without expiry"
    holder = "" if item["owner"] == item["name"] else f"of {item['owner']}, "
    limit = f", {item['per_minute']} requests a minute" if item["per_minute"] else ""
    return f"{holder}{item['scope']}, {where}, {until}{limit}"
