"""`ctxr doctor`: report the configuration, what works, and how to fix what does not."""

import asyncio
import errno
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import click

from cli.connect.connections import connection_of
from cli.connect.snippets import with_command_name
from cli.output import as_json_option, dim, line_width, pad, show, wrap
from cli.running.addresses import is_registry, local_address, shown_address
from cli.terminal import terminal
from orchestrator.semantic.embedders import Embedder
from registry.errors import RegistryError
from registry.extras import install_command
from registry.settings import ActionSettings, McpServerSettings, Settings, read_settings
from sources.base import EMPTY, Paths, is_drift
from sources.client import Client
from sources.clients import CLIENTS
from sources.purging import LONG_ENOUGH_DAYS


@click.command()
@click.option("--deep", is_flag=True, help="Also read the whole registry, and report damage.")
@as_json_option
def doctor(deep: bool, as_json: bool) -> None:
    """Report what is configured, what works, and what to do.

    Changes nothing. The exit status is 1 if something is broken.
    """
    settings: dict[str, dict[str, Any]] = {}
    try:
        configured = read_settings()
        settings = origins(configured)
        checks = {**CHECKS, "integrity": check_integrity} if deep else CHECKS
        findings = [(name, result) for name, check in checks.items() for result in check(configured)]
    except RegistryError as exc:
        findings = [("configuration", Result("broken", exc.message, exc.details))]
    is_healthy = all(result.state != "broken" for _, result in findings)
    listed = [{"state": result.state, "what": name, **asdict(result)} for name, result in findings]
    show({"ok": is_healthy, "settings": settings, "findings": listed}, as_json, _lines)
    if not is_healthy:
        sys.exit(1)


def _lines(report: dict[str, Any]) -> Iterator[str]:
    for name, setting in report["settings"].items():
        if setting["from"] != "default":
            yield f"{'set':8}{name} = {setting['value']}  {dim('(' + setting['from'] + ')')}"
    for finding in report["findings"]:
        colour = {"ok": "green", "note": "yellow", "broken": "red"}[finding["state"]]
        first, *more = wrap(finding["found"], line_width() - 24)
        yield f"{click.style(pad(finding['state'], 8), fg=colour)}{pad(finding['what'], 16)}{first}"
        yield from (" " * 24 + line for line in more)
        if finding["remedy"]:  # on one line, to be copied
            yield " " * 24 + dim(f"to do: {with_command_name(finding['remedy'])}")


def origins(settings: Settings) -> dict[str, dict[str, Any]]:
    given = {name.upper() for name in os.environ}
    found = {}
    for name in Settings.model_fields:
        default = "config.toml" if name in settings.model_fields_set else "default"
        variable = f"CTXR_{name.upper()}"
        found[name] = {
            "value": _printable_value(getattr(settings, name)),
            "from": variable if variable in given else default,
        }
    return found


def _printable_value(value: Any) -> str | int | float:
    if isinstance(value, int | float):
        return value
    if isinstance(value, tuple):
        return ", ".join(str(_printable_value(one)) for one in value)
    if isinstance(value, McpServerSettings):
        return _name_of(value)
    return "" if value is None else shown_address(str(value))


def _name_of(server: McpServerSettings) -> str:
    """Return the name of a server or action; its other settings may hold a secret."""
    if isinstance(server, ActionSettings):
        return server.name
    if server.command:
        return server.command[0]
    with suppress(ValueError):
        return urlsplit(server.url).hostname or ""
    return ""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check: only `broken` is a failure, a `note` is a suggestion."""

    state: Literal["ok", "note", "broken"]
    found: str
    remedy: str = ""


def check_program(_settings: Settings) -> Iterator[Result]:
    """Report versions, and whether this terminal can show every letter."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("mcp", "langgraph", "sqlalchemy", "fastapi"))
    ours = f"ctxr {version('context-registry')}, Python {platform.python_version()}"
    yield Result("ok", f"{ours}, {libraries}")
    if not terminal().is_utf8:
        found = f"the terminal's encoding is {sys.stdout.encoding}: other letters are shown as ?"
        yield Result("note", found, "set PYTHONUTF8=1, or a UTF-8 locale such as LANG=C.UTF-8")


def check_folder(settings: Settings) -> Iterator[Result]:
    """Check whether the registry's folder, or the one it will be made in, can be written."""
    folder = settings.home
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(bytes(65_536))  # on a full disk an empty file can be made
    except OSError as exc:
        remedy = "free some space" if exc.errno in (errno.ENOSPC, errno.EDQUOT) else "change its permissions"
        remedy += ", or set CTXR_HOME to another folder"
        yield Result("broken", f"{folder} cannot be written: {exc.strerror}", remedy)
        return
    if existing == folder:
        yield Result("ok", f"{folder} can be written")
    else:
        yield Result("note", f"{folder} does not exist yet", "ctxr up makes it")


def check_secrets(settings: Settings) -> Iterator[Result]:
    from registry.ingest.redact_existing import read_last_scan
    from registry.text.privacy.rules import load_rules, use_own_rules

    use_own_rules(settings.home)
    rules, last = load_rules(), read_last_scan(settings.home)
    if rules.problem:
        yield Result("broken", rules.problem, "correct the file, or remove it")
    elif last.get("total"):
        yield Result("note", f"{last['total']} are stored unmasked", "ctxr redact --existing masks them")
    elif last.get("rules") == rules.digest:
        yield Result("ok", f"none is stored unmasked, by {len(rules.all)} rules")
    else:
        yield Result("ok", f"{len(rules.all)} rules, not scanned by them yet")


def check_database(settings: Settings) -> Iterator[Result]:
    from registry.storage.migrations import HEAD
    from registry.storage.upkeep.inspection import has_fts5, inspect_database

    url = settings.url
    if url.startswith("sqlite") and not has_fts5():
        remedy = "use a Python whose SQLite is built with FTS5, or PostgreSQL with CTXR_DATABASE_URL"
        yield Result("broken", "this Python's SQLite has no FTS5", remedy)
    try:
        inspection = inspect_database(url)
    except RegistryError as exc:
        remedy = SALVAGE if url.startswith("sqlite") else "is the database running, and is CTXR_DATABASE_URL right?"
        yield Result("broken", f"{shown_address(url)}: {exc.message} {exc.details}", remedy)
        return
    where = f"{inspection.server} at {shown_address(url)}"
    if inspection.revision is None:
        yield Result("note", f"{where}, without tables yet", "ctxr up makes them")
    elif inspection.revision > HEAD:
        found = f"{where} has revision {inspection.revision}, this program knows {HEAD}"
        yield Result("broken", found, "update Context Registry")
    elif inspection.revision < HEAD:
        yield Result("note", f"{where} has revision {inspection.revision} of {HEAD}", "ctxr db upgrade")
    else:
        images, size = inspection.images
        counts = f"channels: {inspection.channels}, messages: {inspection.messages}, images: {images}"
        counts += f" ({size / 1e6:.1f} MB)" if images else ""
        yield Result("ok", f"{where}, revision {inspection.revision}, {counts}")


SALVAGE = "ctxr db salvage NEW_FILE writes what can be read to a new registry"


def check_histories(settings: Settings) -> Iterator[Result]:
    """Report what the last sync could not read, or did not understand; `ctxr sync` also lists damage in a file."""
    from registry.storage.upkeep.inspection import inspect_database

    stores: Sequence[Mapping[str, Any]] = ()
    with suppress(RegistryError):  # reported as the database's
        stores = inspect_database(settings.url).stores
    for store in stores:
        failures = [one for one in store["skipped"] if _is_failure(store["path"], one["what"], one["why"])]
        if failures and Path(store["path"]).exists():
            others = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
            found = f"{store['source']}: {failures[0]['what']} was not read: {failures[0]['why']}{others}"
            yield Result("note", found, "ctxr sync tries again and lists all")


def _is_failure(store: str, what: str, why: str) -> bool:
    """Return True if a store or a file could not be read, or its client is newer than our reader."""
    return is_drift(why) or (what.startswith(store) and why != EMPTY)


def check_replica(settings: Settings) -> Iterator[Result]:
    """Check whether the replica that answers questions is reachable, and how far behind it is."""
    if not settings.database_read_url:
        return
    from registry.storage.upkeep.inspection import replication_lag

    where = shown_address(settings.database_read_url)
    try:
        count = replication_lag(settings.url, settings.database_read_url)
    except RegistryError as exc:
        remedy = "reads go to the original until it runs again; is CTXR_DATABASE_READ_URL right?"
        yield Result("note", f"{where}: {exc.message} {exc.details}", remedy)
        return
    yield Result("ok", f"{where} answers questions, {count} bytes of log behind")


def check_remote(settings: Settings) -> Iterator[Result]:
    """Check whether the registry of CTXR_REMOTE_URL has answered lately, and what waits for it."""
    if not settings.remote_url:
        return
    from orchestrator.remote.background_exchange import exchange_status
    from registry.storage.database import Database

    registry = Database(settings.url)  # makes no tables
    try:
        status = asyncio.run(exchange_status(registry, settings.remote_url))
    except RegistryError:
        yield Result("note", f"{settings.remote_url}: nothing is known of it yet", "ctxr pull")
        return
    finally:
        registry.close()
    waiting = f"{status['waiting']} messages and {status['edits']} names, tags, deletions and longer texts wait"
    if status["local_copy"]:
        since = f"not answered since {status['answered_at']}" if status["answered_at"] else "never answered so far"
        found = f"{settings.remote_url} has {since}; {waiting}"
        yield Result("note", found, "ctxr push says what is wrong; until then this copy answers")
    else:
        yield Result("ok", f"{settings.remote_url} answers; {waiting}")
    if status["edit_refused"]:
        yield Result("note", f"not applied there: {status['edit_refused']}", "ctxr push tries again")


def check_integrity(settings: Settings) -> Iterator[Result]:
    from registry.storage.upkeep.inspection import damage_of

    try:
        damage = damage_of(settings.url)
    except Exception as exc:
        damage = [str(exc)]
    for line in damage:
        yield Result("broken", line, SALVAGE)
    if not damage:
        yield Result("ok", "structure, messages, counts and index are as they should be")


def check_meaning(settings: Settings) -> Iterator[Result]:
    """Report the embedding model and how much it has embedded, or why there is none."""
    from orchestrator.semantic.models import embedder_for, is_onnx_missing

    embedder = embedder_for(settings)
    if is_onnx_missing(settings):
        found = "the extra `embed` is not installed: searches use words only"
        yield Result("broken", found, install_command("embed"))
    elif embedder is None:
        yield Result("ok", "off: searches use words only")
    else:
        yield asyncio.run(_try_model(settings, embedder))


async def _try_model(settings: Settings, embedder: Embedder) -> Result:
    from orchestrator.semantic.embedders import TextRefused, Unavailable
    from registry.storage.upkeep.inspection import inspect_database

    try:
        async with asyncio.timeout(embedder.query_timeout_s):
            dimensions = len((await embedder.queries(["hello"]))[0])
    except (Unavailable, TextRefused, TimeoutError) as exc:
        found = f"{embedder.name} does not answer ({str(exc) or 'too slow'}): searches use words only"
        return Result("note", found, "is CTXR_EMBED_MODEL right, and its endpoint and key if it has one?")
    finally:
        await embedder.close()
    embedded = "the database does not say how much is embedded"
    with suppress(RegistryError):
        seen = await asyncio.to_thread(inspect_database, settings.url)
        messages, size = seen.embedded.get(embedder.name, (0, 0))
        embedded = f"{min(messages, seen.embeddable)} of {seen.embeddable} messages are embedded ({size / 1e6:.1f} MB)"
    return Result("ok", f"by {embedder.name}, {dimensions} dimensions; {embedded}")


def check_server(settings: Settings) -> Iterator[Result]:
    address = local_address(settings)
    found = is_registry(address)
    if found:
        yield Result("ok", f"runs at {address}")
    elif found is False:
        remedy = "stop it, or set CTXR_PORT to another port"
        yield Result("broken", f"another program uses port {settings.port}", remedy)
    else:
        remedy = "ctxr serve; not needed for clients that start ctxr mcp themselves"
        yield Result("note", f"does not run at {address}", remedy)


def check_client(client: Client, _settings: Settings) -> Iterator[Result]:
    """Check whether a client of this machine is connected; nothing for one that has no server list."""
    connection = connection_of(client, Paths(Path.home(), os.environ))
    parts = {part.what: part for part in connection.parts}
    if "server" not in parts:
        return
    days, state, file = connection.deletes_after_days, parts["server"].state, parts["server"].file
    if days is not None and days < LONG_ENOUGH_DAYS:
        found = f"deletes its conversations after {days:g} days; what was read stays in the registry"
        yield Result("note", found, f"ctxr sync in time, or a larger {connection.deletes_by}")
    if state == "unreadable":
        yield Result("note", f"{file} could not be read")
    elif state == "missing":
        yield Result("note", "found, not connected", f"ctxr install {client.command}")
    else:
        hooks = dict.fromkeys(("installed", "differs"), ", hooks installed") | {
            "untrusted": ", hooks installed, but not trusted: it runs none of them until /hooks in it says so",
            "unreadable": ", hooks not running: their file is not plain JSON",
        }
        about_hooks = hooks.get(parts["hooks"].state, ", hooks not installed") if "hooks" in parts else ""
        yield Result("ok", f"connected in {file}{about_hooks}")


CHECKS: dict[str, Callable[[Settings], Iterator[Result]]] = {
    "program": check_program,
    "folder": check_folder,
    "secrets": check_secrets,
    "database": check_database,
    "histories": check_histories,
    "replica": check_replica,
    "elsewhere": check_remote,
    "meaning": check_meaning,
    "server": check_server,
    **{client.name: partial(check_client, client) for client in CLIENTS},
}
"""Every check, in the order of the report."""
