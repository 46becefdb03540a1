"""The server's address, whether it is in use, and database addresses without passwords."""

import re
import socket
from urllib.parse import urlsplit

from registry.settings import Settings

WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104, addresses a user may give
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def local_address(settings: Settings) -> str:
    host = WILDCARD_HOSTS.get(settings.host, settings.host)
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://[{host}]:{settings.port}" if ":" in host else f"{scheme}://{host}:{settings.port}"


def is_registry(address: str) -> bool | None:
    """Return True if a Context Registry answers there, False if another program does, None if nobody listens."""
    import httpx  # takes 80 ms

    try:
        answer = httpx.get(f"{address}/health", timeout=3.0, trust_env=False)
    except httpx.HTTPError:
        return False if _is_listening(address) else None
    except httpx.InvalidURL:
        return False
    return answer.is_success and "application/json" in answer.headers.get("content-type", "")


def _is_listening(address: str) -> bool:
    """Return True if a TCP connection is accepted, even if TLS or HTTP fails on it."""
    url = urlsplit(address)
    try:
        socket.create_connection((url.hostname, url.port), 3.0).close()
    except OSError:
        return False
    return True


def shown_address(url: str) -> str:
    """Return a database address without its password."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url.removeprefix("sqlite:///"))
