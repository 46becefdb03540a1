"""`ctxr push`, `ctxr pull` and `ctxr status`: exchange with the registry of CTXR_REMOTE_URL."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cli.operations import with_orchestrator, with_registry
from cli.output import TerminalError, as_json_option, counted, printed, show
from cli.terminal import SERVED, NotHere
from registry.errors import InvalidRequest
from registry.settings import Settings, read_settings

if TYPE_CHECKING:
    from orchestrator.remote.exchange import Exchanged
    from orchestrator.service import Orchestrator


@click.command()
@as_json_option
def push(as_json: bool) -> None:
    """Send new messages and edits to the registry of CTXR_REMOTE_URL.

    A running server and every chat window do this every few seconds. Messages
    that cannot be sent now wait; duplicates are stored once. Refused messages are
    sent again.
    """
    _exchange("push", as_json)


@click.command()
@as_json_option
def pull(as_json: bool) -> None:
    """Fetch new messages and edits from the registry of CTXR_REMOTE_URL.

    A running server and every chat window do this every few seconds.
    """
    _exchange("pull", as_json)


def _exchange(direction: str, as_json: bool) -> None:
    settings = _settings_with_remote()
    if SERVED.get():
        raise NotHere  # it may take long
    done = with_orchestrator(lambda orchestrator: _run_exchange(orchestrator, settings, direction))
    show(asdict(done), as_json, lambda done: _exchanged_lines(done, direction))
    if done.why:
        sys.exit(1)


def _exchanged_lines(done: dict[str, Any], direction: str) -> Iterator[str]:
    if direction == "push":
        yield f"{counted(done['sent'], 'message')} sent."
    else:
        yield f"{counted(done['received'], 'message')} received."
    if done["edits"]:
        yield f"{counted(done['edits'], 'edit')} (names, tags, deletions), too."
    if done["refused"]:
        click.echo(f"{done['refused']} were refused: {done['why']}", err=True)
    elif done["why"]:
        click.echo(f"Some edits were not applied there: {done['why']}", err=True)


def _status_lines(found: dict[str, Any]) -> Iterator[str]:
    answered = f"last answered at {found['answered_at']}" if found["answered_at"] else "never answered so far"
    again = " (ctxr push sends them again, and says why)" if found["refused"] else ""
    yield f"{found['url']}: {answered}."
    yield f"Messages: {found['sent']} sent, {found['waiting']} waiting, {found['refused']} refused{again}."
    if found["edits"]:
        yield f"{found['edits']} names, tags, deletions and longer texts wait."
    if found["edit_refused"]:
        yield f"Not applied there: {found['edit_refused']} (ctxr push tries again)"
    if found["local_copy"]:
        why = "It does not answer now (ctxr pull says why)"
        if not found["answered_at"]:
            why = "Nothing was received yet (ctxr pull)"
        yield f"{why}: answers come from the copy on this machine, and say so."


@click.command()
@printed(_status_lines)
def status() -> dict[str, Any]:
    """Show what is exchanged with the registry of CTXR_REMOTE_URL, and what waits."""
    from orchestrator.remote.background_exchange import exchange_status

    url = _settings_with_remote().remote_url
    return {"url": url, **with_registry(lambda registry: exchange_status(registry, url))}


def _settings_with_remote() -> Settings:
    settings = read_settings()
    if not settings.remote_url:
        raise InvalidRequest("No other registry is configured.", "set CTXR_REMOTE_URL and CTXR_TOKEN")
    return settings


async def _run_exchange(orchestrator: Orchestrator, settings: Settings, direction: str) -> Exchanged:
    from orchestrator.remote.background_exchange import retry_refused
    from orchestrator.remote.client import AccessRefused, RateLimited, RemoteRegistry, Unreachable
    from orchestrator.remote.exchange import Exchanged
    from orchestrator.remote.pull import detect_replacement, pull
    from orchestrator.remote.push import push

    done = Exchanged()
    async with RemoteRegistry(settings.remote_url, settings.token.get_secret_value()) as remote:
        try:
            if direction == "push":
                await retry_refused(orchestrator.registry, settings.remote_url)
                await detect_replacement(orchestrator, remote, done)
                await push(orchestrator, remote, done)
            else:
                await pull(orchestrator, remote, done)
        except Unreachable as exc:
            failures = {AccessRefused: "refuses access", RateLimited: "takes no more requests for now"}
            failure = failures.get(type(exc), "does not answer")
            details = f"{exc}; nothing is lost, it waits"
            raise TerminalError("REMOTE_UNAVAILABLE", f"The other registry {failure}.", details) from exc
    return done
