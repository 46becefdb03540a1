"""What `ctxr doctor` looks at: each check gives findings, and what to do about a problem. Nothing is changed."""

from __future__ import annotations

import asyncio
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from backoffice.connections import ConnectionPart
from cli.connect.clients import Client, known_clients
from cli.connect.connections import connection_of
from cli.connect.installation import command_name
from cli.output import is_utf8
from cli.probe import is_registry, is_taken, local_address
from registry.errors import RegistryError
from registry.extras import install_command
from registry.settings import Settings

LIBRARIES = ("mcp", "langgraph", "sqlalchemy", "fastapi", "uvicorn")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. Only `broken` is a failure; a `note` is something one may want to do."""

    state: Literal["ok", "note", "broken"]
    what: str
    found: str
    remedy: str = ""


def check_all(settings: Settings, home: Path) -> Iterator[Finding]:
    """Every check, from the ground up. `home` is the user's home folder."""
    yield check_program()
    yield check_output()
    yield check_folder(settings.home)
    yield from check_database(settings.url)
    yield from check_meaning(settings)
    yield check_server(settings)
    for client in known_clients(home):
        yield from check_client(client, home)


def check_program() -> Finding:
    """The versions, for a report."""
    ours = version("context-registry")
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return Finding("ok", "program", f"ctxr {ours}, Python {platform.python_version()}, {libraries}")


def check_output() -> Finding:
    """Whether this terminal can show every letter."""
    if is_utf8():
        return Finding("ok", "output", "UTF-8")
    remedy = "set PYTHONUTF8=1, or a UTF-8 locale such as LANG=C.UTF-8"
    return Finding("note", "output", f"{sys.stdout.encoding}: other letters are shown as ?", remedy)


def check_folder(folder: Path) -> Finding:
    """Whether the registry's folder, or the one it will be made in, can be written."""
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as exc:
        remedy = "change its permissions, or set CTXR_HOME to another folder"
        return Finding("broken", "folder", f"{folder} cannot be written: {exc.strerror}", remedy)
    if existing != folder:
        return Finding("note", "folder", f"{folder} is not made yet", "ctxr up makes it")
    return Finding("ok", "folder", f"{folder} can be written")


def check_database(url: str) -> Iterator[Finding]:
    """Whether the database answers, and whether its tables are ours."""
    from registry.storage.inspection import has_fts5, inspect_database  # SQLAlchemy
    from registry.storage.migrations import HEAD

    if url.startswith("sqlite") and not has_fts5():
        remedy = "use a Python whose SQLite is built with FTS5, or PostgreSQL with CTXR_DATABASE_URL"
        yield Finding("broken", "search", "this Python's SQLite has no FTS5", remedy)
    try:
        seen = inspect_database(url)
    except RegistryError as exc:
        remedy = "is the database running, and is CTXR_DATABASE_URL right?"
        yield Finding("broken", "database", f"{shown_address(url)}: {exc.message} {exc.details}", remedy)
        return
    where = f"{seen.server} at {shown_address(url)}"
    if seen.revision is None:
        yield Finding("note", "database", f"{where}, without tables yet", "ctxr up makes them")
    elif seen.revision > HEAD:
        found = f"{where} has revision {seen.revision}, this program knows {HEAD}"
        yield Finding("broken", "database", found, "update Context Registry")
    elif seen.revision < HEAD:
        yield Finding("note", "database", f"{where} has revision {seen.revision} of {HEAD}", "ctxr db upgrade")
    else:
        counts = f"channels: {seen.channels}, messages: {seen.messages}"
        yield Finding("ok", "database", f"{where}, revision {seen.revision}, {counts}")


def shown_address(url: str) -> str:
    """A database address without its password; a file's path as it is."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url.removeprefix("sqlite:///"))


def check_meaning(settings: Settings) -> Iterator[Finding]:
    """Whether the embedding model answers; nothing where none is configured."""
    if not settings.embed_model:
        return
    needed = ["numpy"] if settings.embed_base_url else ["numpy", "model2vec"]
    if not all(map(find_spec, needed)):
        found = "the extra `embed` is not installed: searches go by words alone"
        yield Finding("broken", "meaning", found, install_command("embed"))
    elif not settings.embed_base_url:
        yield Finding("ok", "meaning", f"by {settings.embed_model}, in each process that searches")
    else:
        yield _check_endpoint(settings)


def _check_endpoint(settings: Settings) -> Finding:
    from orchestrator.semantic.embedders import Endpoint, Refused, Unavailable

    async def ask() -> int:
        endpoint = Endpoint(settings.embed_base_url, settings.embed_model, settings.embed_api_key.get_secret_value())
        try:
            async with asyncio.timeout(endpoint.patience_s):
                return len((await endpoint.embed(["hello"]))[0])
        finally:
            await endpoint.close()

    try:
        return Finding("ok", "meaning", f"by {settings.embed_model}, {asyncio.run(ask())} dimensions")
    except (Unavailable, Refused, TimeoutError) as exc:
        found = f"{settings.embed_model} does not answer ({str(exc) or 'too slow'}): searches go by words alone"
        return Finding("note", "meaning", found, "is it running, and are CTXR_EMBED_BASE_URL and its key right?")


def check_server(settings: Settings) -> Finding:
    """Whether `ctxr serve` runs at the configured address."""
    address = local_address(settings)
    if is_registry(address):
        return Finding("ok", "server", f"runs at {address}")
    if is_taken(settings):
        remedy = "stop it, or set CTXR_PORT to another port"
        return Finding("broken", "server", f"another program uses port {settings.port}", remedy)
    remedy = "ctxr serve; not needed for clients that start ctxr mcp themselves"
    return Finding("note", "server", f"does not run at {address}", remedy)


def check_client(client: Client, home: Path) -> Iterator[Finding]:
    """Whether a client that is on this machine knows us; nothing for one that is not."""
    parts = {part.what: part for part in connection_of(client, home).parts}
    if not parts:
        return
    state = parts["server"].state
    if state == "unreadable":
        yield Finding("note", client.name, f"{client.config} could not be read")
    elif state == "missing":
        yield Finding("note", client.name, "found, not connected", _how_to_connect(client))
    else:
        yield Finding("ok", client.name, f"connected in {client.config}{_told_by_hooks(parts.get('hooks'))}")


def _how_to_connect(client: Client) -> str:
    name = command_name(client.name)
    return f"ctxr install {name}" if name else f"put into {client.config} what ctxr up prints"


def _told_by_hooks(hooks: ConnectionPart | None) -> str:
    """Whether its hooks tell us what is said, for a client that has hooks."""
    if hooks is None:
        return ""
    return ", hooks installed" if hooks.state in ("installed", "differs") else ", hooks not installed"
