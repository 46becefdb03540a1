"""Who is let in by a server with these settings; and that none starts which lets in others unawares."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from backoffice.admission import Gate, Rules
from cli.output import TerminalError
from cli.running.addresses import LOOPBACK, local_address
from registry.errors import StorageError
from registry.settings import Settings
from registry.storage.safety.tokens import PREFIX

if TYPE_CHECKING:
    from backoffice.admission import Verify

SECRET_FILE = "local-secret"  # noqa: S105, its name
PEOPLE = range(1000, 60_000)
"""The numbers of accounts that people have, not services."""
NO_SHELLS = ("nologin", "false", "sync")


class Unsafe(TerminalError):
    """The server would let in others than it should."""

    code = "UNSAFE"


def rules_of(settings: Settings) -> Rules:
    """Return the rules of admission for these settings."""
    address = settings.public_url or f"{'https' if settings.tls_cert else 'http'}://{settings.host}:{settings.port}"
    is_private = settings.host in LOOPBACK and not settings.public_url
    return Rules(
        is_open=is_private and not settings.oauth_issuer,
        secret=local_secret(settings.home) if _is_secret_wanted(settings) else "",
        verify=_verifier(settings),
        metadata_url=f"{address}/.well-known/oauth-protected-resource/mcp" if settings.oauth_issuer else "",
        is_secure=address.startswith("https"),
        known_as=urlsplit(settings.public_url).hostname or "",
        origins=settings.allowed_origins,
    )


def resource_of(settings: Settings) -> str:
    """The address of `/mcp` as tokens of an OAuth issuer name it."""
    return settings.oauth_audience or f"{settings.public_url}/mcp"


def _verifier(settings: Settings) -> Verify | None:
    if not settings.oauth_issuer:
        return None
    from mcp_server.transport.oauth import verifier_of  # only who has an issuer needs it

    return verifier_of(settings.oauth_issuer, resource_of(settings))


def check_exposure(settings: Settings, *, has_tokens: bool) -> None:
    """Unsafe if others can reach the server, and there is no token, or what they send can be read on its way."""
    if settings.host in LOOPBACK and not settings.public_url:
        return
    lacking = []
    if not (has_tokens or settings.oauth_issuer or _is_secret_wanted(settings)):
        lacking.append("a token: ctxr token create --name NAME --scope write")
    if not (settings.tls_cert or settings.public_url):
        lacking.append(
            "TLS: CTXR_TLS_CERT and CTXR_TLS_KEY; or the address of the proxy that does it: CTXR_PUBLIC_URL=https://…"
        )
    if lacking:
        raise Unsafe(
            f"Not started: {settings.host} can be reached from other machines.",
            "\n".join(
                ["It takes", *(f"  {one}" for one in lacking), "Or keep it to this machine: CTXR_HOST=127.0.0.1"]
            ),
        )


def page_address(settings: Settings, gate: Gate) -> str:
    """The address of the pages for this machine's user; where a secret is needed, one that signs in once."""
    address = local_address(settings)
    return f"{address}/login?code={gate.sessions.new_code()}" if gate.rules.secret else f"{address}/"


def local_secret(home: Path) -> str:
    """The secret of this machine's user, made if there is none, in a file that nobody else can read.

    Who serves a registry that he can only read has one that ends with the process: nothing can be kept there.
    """
    try:
        return _kept_secret(home)
    except OSError as exc:
        if exc.errno in _MAY_NOT and (home / "registry.db").is_file():
            return _new_secret()
        raise StorageError(
            "The folder of the registry cannot be used.", f"{home}: {exc.strerror}; CTXR_HOME names another one"
        ) from exc


_MAY_NOT = (errno.EACCES, errno.EPERM, errno.EROFS)


def _kept_secret(home: Path) -> str:
    file = home / SECRET_FILE
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        file.chmod(0o600)
        return file.read_text(encoding="utf-8").strip()
    secret = _new_secret()
    with os.fdopen(made, "w", encoding="utf-8") as written:
        written.write(secret)
    return secret


def _new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def _is_secret_wanted(settings: Settings) -> bool:
    if settings.local_secret == "auto":  # noqa: S105, a choice
        return settings.host in LOOPBACK and has_other_people()
    return settings.local_secret == "on"  # noqa: S105, a choice


def has_other_people() -> bool:
    """Return whether somebody else has an account on this machine that one can sign in to.

    Of root's own registry, as in a container, that says nothing: accounts of people are not what it is among.
    """
    try:
        import pwd
    except ImportError:  # Windows: accounts are told by their own permissions
        return False
    if os.getuid() == 0:
        return False
    accounts = (one for one in pwd.getpwall() if one.pw_uid in PEOPLE and one.pw_uid != os.getuid())
    return any(os.path.isdir(one.pw_dir) and not one.pw_shell.endswith(NO_SHELLS) for one in accounts)
