"""`ctxr push`, `ctxr pull`, `ctxr status`: the registry elsewhere that this one keeps up with."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from cli.output import TerminalError, as_json_option, counted, print_json
from cli.terminal import SERVED, NotHere
from registry.errors import InvalidRequest
from registry.settings import Settings, read_settings

if TYPE_CHECKING:
    from orchestrator.remote.client import RemoteRegistry
    from orchestrator.remote.exchange import Exchanged
    from orchestrator.service import Orchestrator
    from registry.storage.database import Database

    Exchange = Callable[[Orchestrator, RemoteRegistry, Exchanged], Awaitable[None]]


class RemoteUnavailable(TerminalError):
    """The registry elsewhere does not answer, or lets nobody in."""

    code = "REMOTE_UNAVAILABLE"


@click.command()
@as_json_option
def push(as_json: bool) -> None:
    """Send what is new here to the registry of CTXR_REMOTE_URL.

    A running server and every chat window do this by themselves, every few seconds.
    What cannot be sent now waits; what is sent twice is stored once. What was not taken there is tried again.
    """
    _exchange("push", as_json=as_json)


@click.command()
@as_json_option
def pull(as_json: bool) -> None:
    """Bring in what is new in the registry of CTXR_REMOTE_URL.

    A running server and every chat window do this by themselves, every few seconds.
    """
    _exchange("pull", as_json=as_json)


@click.command()
@as_json_option
def status(as_json: bool) -> None:
    """Say how far this registry and the one of CTXR_REMOTE_URL have come together."""
    from registry.registry import Registry

    settings = _configured()
    found = {"url": settings.remote_url, **standing(settings, Registry(settings.url))}
    if as_json:
        print_json(found)
        return
    answered = f"last answered at {found['answered_at']}" if found["answered_at"] else "never answered so far"
    click.echo(f"{settings.remote_url}: {answered}.")
    again = " (ctxr push tries it again, and says why)" if found["refused"] else ""
    click.echo(
        f"{found['sent']} messages are there too, {found['waiting']} wait,"
        f" {found['refused']} are not taken there{again}."
    )
    if found["edits"]:
        click.echo(f"{found['edits']} names, tags, deletions and longer texts wait.")
    if found["edit_refused"]:
        click.echo(f"Not done there: {found['edit_refused']} (ctxr push tries it again)")
    if found["local_copy"]:
        why = "It does not answer now" if found["answered_at"] else "Nothing came from it yet (ctxr pull asks it)"
        click.echo(f"{why}: questions are answered from the copy on this machine, and say so.")


def standing(settings: Settings, registry: Database) -> dict[str, Any]:
    """Return the state of the exchange: `Waiting`'s figures, and whether answers come from the local copy."""
    try:
        return asyncio.run(_waiting(settings.remote_url, registry))
    finally:
        registry.close()


def _exchange(way: str, *, as_json: bool) -> None:
    settings = _configured()
    if SERVED.get():
        raise NotHere  # it may take a while
    done = asyncio.run(_exchanged(settings, way))
    if as_json:
        print_json(asdict(done))
    else:
        sent, came = counted(done.sent, "message"), counted(done.received, "message")
        click.echo(f"{sent} sent." if way == "push" else f"{came} came.")
        if done.edits:
            click.echo(f"{done.edits} names, tags and deletions, too.")
        if done.refused:
            click.echo(f"{done.refused} were not taken: {done.why}", err=True)
        elif done.why:
            click.echo(f"Not all was done there: {done.why}", err=True)
    if done.why:
        sys.exit(1)


def _configured() -> Settings:
    settings = read_settings()
    if not settings.remote_url:
        raise InvalidRequest("No registry elsewhere is set.", "set CTXR_REMOTE_URL and CTXR_TOKEN, or config.toml's")
    return settings


async def _exchanged(settings: Settings, way: str) -> Exchanged:
    from orchestrator.opening import open_orchestrator
    from orchestrator.remote import exchange
    from orchestrator.remote.client import Closed, RemoteRegistry, Unreachable
    from registry.storage.exchange.edits import tell_again
    from registry.storage.exchange.remote import send_again

    done = exchange.Exchanged()
    go: Exchange = exchange.push if way == "push" else exchange.pull
    token = settings.token.get_secret_value()
    async with open_orchestrator(settings) as orchestrator, RemoteRegistry(settings.remote_url, token) as remote:
        if way == "push":
            for once_more in (tell_again, send_again):
                await orchestrator.registry.write(partial(once_more, url=settings.remote_url))
        try:
            if way == "push":
                await exchange.check_place(orchestrator.registry, remote)
            await go(orchestrator, remote, done)
        except Unreachable as exc:
            does = "does not let this machine in" if isinstance(exc, Closed) else "does not answer"
            raise RemoteUnavailable(f"The registry elsewhere {does}.", f"{exc}; nothing is lost, it waits") from exc
    return done


async def _waiting(url: str, registry: Database) -> dict[str, Any]:
    from orchestrator.remote.background_exchange import copy_of
    from registry.storage.exchange.remote import waiting_for

    waiting = (await registry.read(lambda tx: waiting_for(tx, url))).as_dict()
    return {**waiting, "local_copy": await copy_of(registry, url) is not None}
