"""`ctxr doctor`: what is configured, what is reachable, and what to do."""

from __future__ import annotations

import asyncio
import errno
import os
import platform
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import click

from backoffice.connections import Connection, ConnectionPart
from cli.connect.connections import connection_of
from cli.output import as_json_option, is_utf8, line_width, pad, print_json, wrap
from cli.running.addresses import is_registry, is_taken, local_address, shown_address
from registry.errors import RegistryError
from registry.extras import install_command
from registry.settings import ActionSettings, McpServerSettings, Settings, read_settings
from sources.base import Places
from sources.client import Client
from sources.clients import CLIENTS
from sources.purging import LONG

if TYPE_CHECKING:
    from orchestrator.semantic.embedders import Embedder

COLOURS = {"ok": "green", "note": "yellow", "broken": "red"}
STATE_WIDTH, NAME_WIDTH = 8, 16
PROBE = 65_536
"""So many bytes are written for trial: about as much as a turn takes."""
LIBRARIES = ("mcp", "langgraph", "sqlalchemy", "fastapi", "uvicorn")


@click.command()
@click.option("--deep", is_flag=True, help="Also read all of the registry, and say what of it is damaged.")
@as_json_option
def doctor(deep: bool, as_json: bool) -> None:
    """Say what is configured, what is reachable, and what to do.

    Changes nothing. Exit status 1 if something is broken.
    """
    settings: dict[str, dict[str, Any]] = {}
    try:
        configured = read_settings()
        settings = origins(configured)
        checks = [check for check in CHECKS if deep or not check.is_deep]
        findings = [(check.name, result) for check in checks for result in check.look(configured)]
    except RegistryError as exc:
        findings = [("configuration", Result("broken", exc.message, exc.details))]
    is_healthy = all(result.state != "broken" for _, result in findings)
    if as_json:
        listed = [{"state": result.state, "what": name, **asdict(result)} for name, result in findings]
        print_json({"ok": is_healthy, "settings": settings, "findings": listed})
    else:
        show(settings, findings)
    if not is_healthy:
        raise click.exceptions.Exit(1)


def origins(settings: Settings) -> dict[str, dict[str, Any]]:
    """Every setting's value and where it comes from: environment, config.toml or default."""
    return {name: {"value": _shown(settings, name), "from": _origin(settings, name)} for name in Settings.model_fields}


def _shown(settings: Settings, name: str) -> str | int | float:
    value = getattr(settings, name)
    if isinstance(value, int | float):
        return value
    several = value if isinstance(value, tuple) else () if value is None else (value,)
    return ", ".join(_named(one) if isinstance(one, McpServerSettings) else shown_address(str(one)) for one in several)


def _named(server: McpServerSettings) -> str:
    """An MCP server, or the action it is for, by what names it: all the rest may hold a secret."""
    if isinstance(server, ActionSettings):
        return server.name
    if server.command:
        return server.command[0]
    with suppress(ValueError):  # it is no address
        return urlsplit(server.url).hostname or ""
    return ""


def _origin(settings: Settings, name: str) -> str:
    variable = f"CTXR_{name.upper()}"
    if variable in (given.upper() for given in os.environ):
        return variable
    return "config.toml" if name in settings.model_fields_set else "default"


def show(settings: dict[str, dict[str, Any]], findings: list[tuple[str, Result]]) -> None:
    """Print what is set, then the findings. A remedy stays on one line, to be copied."""
    for name, setting in settings.items():
        if setting["from"] != "default":
            click.echo(f"{pad('set', STATE_WIDTH)}{name} = {setting['value']}  {_dim('(' + setting['from'] + ')')}")
    width = line_width() - STATE_WIDTH - NAME_WIDTH
    for name, result in findings:
        state = click.style(pad(result.state, STATE_WIDTH), fg=COLOURS[result.state])
        first, *more = wrap(result.found, width)
        click.echo(f"{state}{pad(name, NAME_WIDTH)}{first}")
        to_do = [f"to do: {result.remedy}"] if result.remedy else []
        for line in [*more, *map(_dim, to_do)]:
            click.echo(" " * (STATE_WIDTH + NAME_WIDTH) + line)


def _dim(text: str) -> str:
    return click.style(text, dim=True)


@dataclass(frozen=True, slots=True)
class Result:
    """Hold what a check found: only `broken` is a failure, a `note` suggests something."""

    state: Literal["ok", "note", "broken"]
    found: str
    remedy: str = ""


class Check(NamedTuple):
    """A row of the table of checks. A deep one reads the whole registry, and is run by `--deep` only."""

    name: str
    look: Callable[[Settings], Iterator[Result]]
    is_deep: bool = False


def check_program(_settings: Settings) -> Iterator[Result]:
    """The versions, for a report."""
    ours = version("context-registry")
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    yield Result("ok", f"ctxr {ours}, Python {platform.python_version()}, {libraries}")


def check_output(_settings: Settings) -> Iterator[Result]:
    """Return whether this terminal can show every letter."""
    remedy = "set PYTHONUTF8=1, or a UTF-8 locale such as LANG=C.UTF-8"
    found = f"{sys.stdout.encoding}: other letters are shown as ?"
    yield Result("ok", "UTF-8") if is_utf8() else Result("note", found, remedy)


def check_folder(settings: Settings) -> Iterator[Result]:
    """Return whether the registry's folder, or the one it will be made in, can be written."""
    folder = settings.home
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(bytes(PROBE))  # on a full disk a file can be made
    except OSError as exc:
        remedy = "make room" if exc.errno in (errno.ENOSPC, errno.EDQUOT) else "change its permissions"
        remedy += ", or set CTXR_HOME to another folder"
        yield Result("broken", f"{folder} cannot be written: {exc.strerror}", remedy)
    else:
        unmade = Result("note", f"{folder} is not made yet", "ctxr up makes it")
        yield unmade if existing != folder else Result("ok", f"{folder} can be written")


def check_names(settings: Settings) -> Iterator[Result]:
    """Return whether what is configured has the name of a setting: what has not is passed over without a word.

    Of variables only those that look like a setting: a client's folder, or compose.yaml, has names of its own.
    """
    file = settings.home / "config.toml"
    written = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in sorted(name for name in written if name.lower() not in Settings.model_fields):
        yield _no_such_setting(f"{name} in {file}", get_close_matches(name.lower(), Settings.model_fields))
    variables = [f"CTXR_{name.upper()}" for name in Settings.model_fields]
    for name in os.environ:
        near = get_close_matches(name.upper(), variables, cutoff=ALIKE) if name.upper().startswith("CTXR_") else []
        if near and name.upper() not in variables:
            yield _no_such_setting(name, near)


ALIKE = 0.75


def check_secrets(settings: Settings) -> Iterator[Result]:
    """Return whether the rules for secrets can be used, and what the last scan by them found."""
    from registry.ingest.redact_existing import scanned
    from registry.text.privacy.rules import load_rules, use_own_rules

    use_own_rules(settings.home)
    rules, last = load_rules(), scanned(settings.home)
    if rules.problem:
        yield Result("broken", rules.problem, "correct the file, or remove it")
    elif last.get("total"):
        yield Result("note", f"{last['total']} are stored in clear", "ctxr redact --existing masks them")
    elif last.get("rules") == rules.digest:
        yield Result("ok", f"none is stored in clear, by {len(rules.all)} rules")
    else:
        yield Result("ok", f"{len(rules.all)} rules, not scanned by them yet")


"""A variable is a misspelt setting if it is so much like one."""


def _no_such_setting(what: str, near: Sequence[str]) -> Result:
    remedy = f"is {near[0]} meant?" if near else "docs/configuration.md lists the settings"
    return Result("note", f"{what} is no setting, and changes nothing", remedy)


def check_search(settings: Settings) -> Iterator[Result]:
    """Return whether SQLite can search; nothing if it can."""
    from registry.storage.upkeep.inspection import has_fts5  # SQLAlchemy

    if settings.url.startswith("sqlite") and not has_fts5():
        remedy = "use a Python whose SQLite is built with FTS5, or PostgreSQL with CTXR_DATABASE_URL"
        yield Result("broken", "this Python's SQLite has no FTS5", remedy)


def check_database(settings: Settings) -> Iterator[Result]:
    """Return whether the database answers, and whether its tables are ours."""
    from registry.storage.migrations import HEAD
    from registry.storage.upkeep.inspection import inspect_database  # SQLAlchemy

    url = settings.url
    try:
        seen = inspect_database(url)
    except RegistryError as exc:
        remedy = DAMAGED if url.startswith("sqlite") else "is the database running, and is CTXR_DATABASE_URL right?"
        yield Result("broken", f"{shown_address(url)}: {exc.message} {exc.details}", remedy)
        return
    where = f"{seen.server} at {shown_address(url)}"
    if seen.revision is None:
        yield Result("note", f"{where}, without tables yet", "ctxr up makes them")
    elif seen.revision > HEAD:
        found = f"{where} has revision {seen.revision}, this program knows {HEAD}"
        yield Result("broken", found, "update Context Registry")
    elif seen.revision < HEAD:
        yield Result("note", f"{where} has revision {seen.revision} of {HEAD}", "ctxr db upgrade")
    else:
        counts = f"channels: {seen.channels}, messages: {seen.messages}"
        yield Result("ok", f"{where}, revision {seen.revision}, {counts}")


DAMAGED = "ctxr db salvage NEW_FILE writes what can be read to a new registry"


def check_replica(settings: Settings) -> Iterator[Result]:
    """Return whether the replica that answers questions does, and how far behind it is."""
    if not settings.database_read_url:
        return
    from registry.storage.upkeep.inspection import behind  # SQLAlchemy

    where = shown_address(settings.database_read_url)
    try:
        count = behind(settings.url, settings.database_read_url)
    except RegistryError as exc:
        remedy = "until it runs again the original answers alone; is CTXR_DATABASE_READ_URL right?"
        yield Result("note", f"{where}: {exc.message} {exc.details}", remedy)
        return
    yield Result("ok", f"{where} answers questions, {count} bytes of log behind")


def check_remote(settings: Settings) -> Iterator[Result]:
    """Return whether the registry elsewhere has answered lately, and what waits for it."""
    if not settings.remote_url:
        return
    from cli.incoming.remote import standing
    from registry.storage.database import Database  # SQLAlchemy

    try:
        seen = standing(settings, Database(settings.url))  # it makes no tables
    except RegistryError:
        yield Result("note", f"{settings.remote_url}: nothing is known of it yet", "ctxr pull")
        return
    waiting = f"{seen['waiting']} messages and {seen['edits']} names, tags, deletions and longer texts wait"
    if seen["local_copy"]:
        found = f"{settings.remote_url} has not answered since {seen['answered_at'] or 'ever'}; {waiting}"
        yield Result("note", found, "ctxr push says what is wrong; until then this copy answers")
    else:
        yield Result("ok", f"{settings.remote_url} answers; {waiting}")
    if seen["edit_refused"]:
        yield Result("note", f"not done there: {seen['edit_refused']}", "ctxr push tries it again")


def check_integrity(settings: Settings) -> Iterator[Result]:
    """Return whether all of the registry is as it was stored."""
    from registry.storage.upkeep.integrity import damage_of  # SQLAlchemy

    try:
        damage = damage_of(settings.url)
    except Exception as exc:
        damage = [str(exc)]
    for line in damage:
        yield Result("broken", line, DAMAGED)
    if not damage:
        yield Result("ok", "structure, messages, counts and index are as they should be")


def check_meaning(settings: Settings) -> Iterator[Result]:
    """Which model finds by meaning, what it costs and how much it has embedded; or why none does."""
    from orchestrator.semantic.models import BUILT_IN, embedder_for, missing_extra

    extra, embedder = missing_extra(settings), embedder_for(settings)
    if extra:
        found = f"the extra `{extra}` is not installed: searches go by words alone"
        state: Literal["note", "broken"] = "note" if settings.embed_model == BUILT_IN else "broken"
        yield Result(state, found, install_command(extra))
    elif embedder is None:
        yield Result("ok", "off: searches go by words alone")
    else:
        yield asyncio.run(_ask_model(settings, embedder))


async def _ask_model(settings: Settings, embedder: Embedder) -> Result:
    from orchestrator.semantic.embedders import Refused, Unavailable

    try:
        async with asyncio.timeout(embedder.patience_s):
            dimensions = len((await embedder.queries(["hello"]))[0])
    except (Unavailable, Refused, TimeoutError) as exc:
        found = f"{embedder.name} does not answer ({str(exc) or 'too slow'}): searches go by words alone"
        return Result("note", found, "is CTXR_EMBED_MODEL right, and its endpoint and key if it has one?")
    finally:
        await embedder.close()
    counted = await asyncio.to_thread(_embedded, settings.url, embedder.name)
    return Result("ok", f"by {embedder.name}, {dimensions} dimensions; {counted}; it takes {embedder.cost}")


def _embedded(url: str, name: str) -> str:
    """Return how many messages have vectors of this model, and the room they take."""
    from registry.storage.upkeep.inspection import inspect_database

    try:
        seen = inspect_database(url)
    except RegistryError:
        return "the database does not say how much is embedded"
    messages, size = seen.embedded.get(name, (0, 0))
    return f"{messages} of {seen.embeddable} messages are embedded ({size / 1e6:.1f} MB)"


def check_server(settings: Settings) -> Iterator[Result]:
    """Return whether `ctxr serve` runs at the configured address."""
    address = local_address(settings)
    if is_registry(address):
        yield Result("ok", f"runs at {address}")
    elif is_taken(settings):
        remedy = "stop it, or set CTXR_PORT to another port"
        yield Result("broken", f"another program uses port {settings.port}", remedy)
    else:
        remedy = "ctxr serve; not needed for clients that start ctxr mcp themselves"
        yield Result("note", f"does not run at {address}", remedy)


def check_client(client: Client, _settings: Settings) -> Iterator[Result]:
    """Check whether a client of this machine is connected; nothing for one that has no server list."""
    connection = connection_of(client, Places(Path.home(), os.environ))
    parts = {part.what: part for part in connection.parts}
    if "server" not in parts:
        return
    yield from check_purging(connection)
    state, file = parts["server"].state, parts["server"].file
    if state == "unreadable":
        yield Result("note", f"{file} could not be read")
    elif state == "missing":
        how = f"ctxr install {client.command}" if client.command else f"put into {file} what ctxr up prints"
        yield Result("note", "found, not connected", how)
    else:
        yield Result("ok", f"connected in {file}{_told_by_hooks(parts.get('hooks'))}")


def check_purging(connection: Connection) -> Iterator[Result]:
    """Return whether the client soon deletes its conversations itself."""
    days = connection.deletes_after_days
    if days is not None and days < LONG:
        found = f"deletes its conversations after {days:g} days; what was read stays in the registry"
        yield Result("note", found, f"ctxr sync in time, or a larger {connection.deletes_by}")


def _told_by_hooks(hooks: ConnectionPart | None) -> str:
    """Return whether its hooks tell us what is said, for a client that has hooks."""
    if hooks is None:
        return ""
    if hooks.state == "untrusted":
        return ", hooks installed, but not trusted: it runs none of them until /hooks in it says so"
    return ", hooks installed" if hooks.state in ("installed", "differs") else ", hooks not installed"


CHECKS = (
    Check("program", check_program),
    Check("output", check_output),
    Check("folder", check_folder),
    Check("setting", check_names),
    Check("secrets", check_secrets),
    Check("search", check_search),
    Check("database", check_database),
    Check("replica", check_replica),
    Check("elsewhere", check_remote),
    Check("meaning", check_meaning),
    Check("server", check_server),
    *(Check(client.name, partial(check_client, client)) for client in CLIENTS),
    Check("integrity", check_integrity, is_deep=True),
)
"""Every check, in the order of the report: from the program up to the clients."""
