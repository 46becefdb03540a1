"""Admission rules for a server, and a check that others cannot reach it without a token and TLS."""

import errno
import os
import secrets
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from backoffice.admission import OAUTH_CALLBACK, AdmissionRules, Verify, sign_in_code
from cli.output import TerminalError
from cli.running.addresses import LOOPBACK, local_address
from orchestrator.outside.sign_in import SignIn
from orchestrator.views.tokens import PREFIX
from registry.errors import StorageError
from registry.settings import Settings

SECRET_FILE = "local-secret"  # noqa: S105, its name


def rules_of(settings: Settings) -> AdmissionRules:
    address = settings.public_url or f"{'https' if settings.tls_cert else 'http'}://{settings.host}:{settings.port}"
    verify: Verify | None = None
    sign_in: SignIn | None = None
    if settings.oauth_issuer:
        from mcp_server.transport.oauth import verifier_of  # an optional extra
        from orchestrator.outside.issuer import Issuer

        issuer = Issuer(settings.oauth_issuer, settings.oauth_groups)
        verify = verifier_of(issuer, resource_of(settings))
        if settings.oauth_client_id:
            secret = settings.oauth_client_secret.get_secret_value()
            sign_in = SignIn(issuer, settings.oauth_client_id, secret, settings.public_url + OAUTH_CALLBACK)
    is_private = settings.host in LOOPBACK and not settings.public_url and not _needs_secret(settings)
    return AdmissionRules(
        is_open=is_private and not settings.oauth_issuer,
        secret=_secret(settings),
        verify=verify,
        sign_in=sign_in,
        metadata_url=f"{address}/.well-known/oauth-protected-resource/mcp" if settings.oauth_issuer else "",
        is_secure=address.startswith("https"),
        known_as=urlsplit(settings.public_url).hostname or "",
        origins=settings.allowed_origins,
        per_minute=settings.requests_per_minute,
    )


def resource_of(settings: Settings) -> str:
    """Return the address of `/mcp`, as an OAuth issuer's tokens name it."""
    return settings.oauth_audience or f"{settings.public_url}/mcp"


def check_exposure(settings: Settings, *, has_tokens: bool) -> None:
    """Raise TerminalError if others can reach the server and it has no token or no TLS."""
    if settings.host in LOOPBACK and not settings.public_url:
        return
    missing = []
    if not (has_tokens or settings.oauth_issuer or _needs_secret(settings)):
        missing.append("a token: ctxr token create --name NAME --scope write")
    if not (settings.tls_cert or settings.public_url):
        missing.append("TLS: CTXR_TLS_CERT and CTXR_TLS_KEY; or the address of a proxy: CTXR_PUBLIC_URL=https://…")
    if missing:
        lines = ["It needs", *(f"  {one}" for one in missing), "Or restrict it to this machine: CTXR_HOST=127.0.0.1"]
        found = f"Not started: {settings.host} can be reached from other machines."
        raise TerminalError("UNSAFE", found, "\n".join(lines))


def page_address(settings: Settings, *, is_open: bool, path: str = "/") -> str:
    """Return a page's address for this machine's user: a link that signs in once, unless the server is open."""
    address = local_address(settings)
    secret = "" if is_open else _secret(settings)
    return f"{address}/login?{urlencode({'code': sign_in_code(secret), 'next': path})}" if secret else address + path


def _secret(settings: Settings) -> str:
    """Return the secret of this machine's user; "" if the settings or the file system allow none."""
    if settings.local_secret == "off":  # noqa: S105, a choice
        return ""
    try:
        return local_secret(settings.home)
    except StorageError:
        if _needs_secret(settings):
            raise
        return ""


def local_secret(home: Path) -> str:
    """Return the secret of this machine's user, from a private file, which is created if missing.

    If the user may only read the registry, the secret lasts as long as the process.
    """
    file = home / SECRET_FILE
    new = PREFIX + secrets.token_urlsafe(32)
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            file.chmod(0o600)
            return file.read_text(encoding="utf-8").strip()
        with os.fdopen(made, "w", encoding="utf-8") as written:
            written.write(new)
    except OSError as exc:
        is_read_only = exc.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
        if not (is_read_only and (home / "registry.db").is_file()):
            details = f"{home}: {exc.strerror}; CTXR_HOME names another one"
            raise StorageError("The folder of the registry cannot be used.", details) from exc
    return new


def _needs_secret(settings: Settings) -> bool:
    if settings.local_secret == "auto":  # noqa: S105, a choice
        return settings.host in LOOPBACK and has_other_users()
    return settings.local_secret == "on"  # noqa: S105, a choice


def has_other_users() -> bool:
    """Return whether another person has a login account on this machine.

    For root, as in a container, the machine's accounts say nothing about who reaches the server.
    """
    try:
        import pwd
    except ImportError:  # Windows
        return False
    if os.getuid() == 0:
        return False
    users = (one for one in pwd.getpwall() if 1000 <= one.pw_uid < 60_000 and one.pw_uid != os.getuid())
    return any(os.path.isdir(one.pw_dir) and not one.pw_shell.endswith(("nologin", "false", "sync")) for one in users)
