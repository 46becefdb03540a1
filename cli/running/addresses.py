"""Addresses: the one that `ctxr serve` would take and who listens there, and the database's as it may be shown."""

from __future__ import annotations

import re
import socket

from registry.settings import Settings

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104, addresses a user may give
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
PATIENCE_S = 1.0


def local_address(settings: Settings) -> str:
    """The server's address as this machine reaches it."""
    host = EVERYWHERE.get(settings.host, settings.host)
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://[{host}]:{settings.port}" if ":" in host else f"{scheme}://{host}:{settings.port}"


def is_registry(address: str) -> bool:
    """Return whether a Context Registry answers there."""
    import httpx  # 80 ms, for commands that look only

    try:
        answer = httpx.get(f"{address}/health", timeout=PATIENCE_S, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return answer.is_success and "application/json" in answer.headers.get("content-type", "")


def is_taken(settings: Settings) -> bool:
    """Return whether anybody listens there."""
    host = EVERYWHERE.get(settings.host, settings.host)
    try:
        with socket.create_connection((host, settings.port), timeout=PATIENCE_S):
            return True
    except OSError:
        return False


def shown_address(url: str) -> str:
    """A database address without its password; a file's path as it is."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url.removeprefix("sqlite:///"))
