"""What hooks write into the spool, without its secrets: marked as the registry marks them, so that a reader's copy of
the same message is recognised.

A client waits for its hooks. Most of what is said cannot hold a secret, and that is seen without importing anything;
for the rest the rules are loaded, which takes some 0.03 s. Imported by every hook: the standard library only.
"""

from __future__ import annotations

import os

from orchestrator.sync.spool import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

FILE = "masking.json"
"""In the registry's folder: the key of its marks, and the projects whose secrets are kept."""
SAID = ("prompt", "text", "last_assistant_message", "attachments")

HINTS = (
    *("pass", "pw", "비", "패스워드", "암호", "パス", "密", "주민", "secret", "token", "토큰", "시크릿", "credential"),
    *("key", "키", "://", "</", "bearer", "ssws", "authorization", "auth", "aws", "akia", "asia", "cookie", "sig"),
    *("mnemonic", "phrase", "니모닉", "시드", "앱", "app", "asana", "vault", "mailgun", "wif", "wallet", "bitcoin"),
    *("_pat", "cred", "admin", "root", "curl ", "mysql", "mariadb", "login", "redis-cli", "htpasswd", "openssl"),
    *(
        "sudo ",
        ":5432:",
        "private-lines",
        "ldap",
        "mongo",
        "zip",
        "7z",
        "계좌",
        "jdbc:",
        "identified ",
        "--body",
        "-----begin",
    ),
)
"""One of these, a word of `LONGEST` characters or `DIGITS` digits stands in every text in which a rule of
`registry.text.privacy.secrets` finds anything."""
LONGEST = 20
"""What a key has at least, that is known by its own signs."""
DIGITS = 13
"""A resident number has so many, a card no fewer."""


def share_masking(home: str, key: bytes, unmasked: Sequence[str]) -> None:
    """Let hooks mark secrets as the registry does; written only where it is not said yet. OSError if it cannot be."""
    path = os.path.join(home, FILE)
    told = dumps({"key": key.hex(), "unmasked": list(unmasked)})
    if _read(path) == told:
        return
    beside = f"{path}.{os.getpid()}"
    os.makedirs(home, mode=0o700, exist_ok=True)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(file, told.encode("ascii"))
    finally:
        os.close(file)
    os.replace(beside, path)


def without_secrets(home: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """What a hook was told, with marks in the place of what is never kept.

    Where no registry has told its key yet, secrets are marked without one.
    """
    held = {name: payload[name] for name in SAID if any(map(may_hold_secret, _texts(payload.get(name))))}
    if not held:
        return dict(payload)
    from registry.text.privacy.secrets import mask_secrets
    from registry.text.privacy.unkept import without_private

    said = _each_text(held, without_private)
    rules = loads(_read(os.path.join(home, FILE)) or "{}")
    if not _is_unmasked(payload, rules.get("unmasked", ())):
        key = bytes.fromhex(rules.get("key", ""))
        said = _each_text(said, lambda text: mask_secrets(text, key))
    return {**payload, **said}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for held in value.values() if isinstance(value, dict) else value:
            yield from _texts(held)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """The same with all texts in it changed; the names of fields are the client's."""
    if isinstance(value, dict):
        return {name: _each_text(held, change) for name, held in value.items()}
    if isinstance(value, list):
        return [_each_text(held, change) for held in value]
    return change(value) if isinstance(value, str) else value


def may_hold_secret(text: str) -> bool:
    """Whether it is worth while to look; never False for a text that holds one."""
    lowered = text.lower()
    if any(hint in lowered for hint in HINTS) or sum(map(text.count, "0123456789")) >= DIGITS:
        return True
    return any(len(word) >= LONGEST for word in text.split()) or any(sign in text for sign in ("\\u", "%"))


def _is_unmasked(payload: Mapping[str, Any], patterns: Sequence[str]) -> bool:
    """All folders that the hook names must be such projects: which of them it is, the registry will say."""
    if not patterns:
        return False
    from registry.text.privacy.unkept import is_like

    roots = payload.get("workspace_roots")
    folders = [one for one in (*(roots if isinstance(roots, list) else ()), payload.get("cwd")) if isinstance(one, str)]
    return bool(folders) and all(any(is_like(folder, pattern) for pattern in patterns) for folder in folders)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (OSError, ValueError):
        return ""
