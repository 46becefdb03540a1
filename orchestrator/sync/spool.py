"""Queue hook events in a file until `drain` stores them.

Hooks append JSON lines to one file. A process that drains it renames it first; locks keep hooks from writing into a
renamed file. Secrets are masked with the registry's key, so that a reader's copy of a message is recognised.

It imports the standard library only, because clients wait for hooks.
"""

from __future__ import annotations

import json
import os
import sys
from json import dumps as dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
    from typing import Any

if sys.platform == "win32":
    fcntl = None  # Windows does not rename open files, so no lock is needed
else:
    import fcntl

FOLDER = "spool"
CURRENT = "events.jsonl"
TAKEN_PREFIX = "taken-"


def registry_home() -> str:
    """Return `Settings.home`, the registry's folder, without loading the settings."""
    given = os.environ.get("CTXR_HOME")
    if given:
        return os.path.expanduser(given)
    if sys.platform != "linux":
        from platformdirs import user_data_path

        return str(user_data_path("context-registry", appauthor=False))
    data = os.environ.get("XDG_DATA_HOME", "").strip()
    return os.path.join(data or os.path.expanduser("~/.local/share"), "context-registry")


def open_folder(home: str) -> str:
    """Return the spool's folder; create it, private to this user, if it is missing. Raises OSError."""
    folder = os.path.join(home, FOLDER)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def append(home: str, event: Mapping[str, Any]) -> None:
    """Append one event to a file that only this user can read. Raises OSError."""
    path = os.path.join(open_folder(home), CURRENT)
    line = dumps(event).encode("ascii") + b"\n"
    for _ in range(20):
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        try:
            if _can_append(file, path):
                _write(file, line)
                return
        finally:
            os.close(file)
    raise OSError(f"{path} was renamed again and again while being opened")


def _write(file: int, line: bytes) -> None:
    """Write a line in one call, so that lines of several processes never mix; a full disk damages only this line."""
    written = os.write(file, line)
    if written < len(line):
        os.write(file, b"\n")
        raise OSError("only a part was written")


def _can_append(file: int, path: str) -> bool:
    """Lock the file against draining; return False if it is no longer the current one."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(file), os.stat(path))
    except (BlockingIOError, FileNotFoundError):  # another process drains it, or has done so
        return False


def take(home: str) -> Generator[tuple[str, list[dict[str, Any]]]]:
    """Yield each file that no other process drains, with its events in order of arrival.

    A file stays locked until the next one is yielded; remove it when its events are stored. Files of killed processes
    are yielded again.
    """
    folder = os.path.join(home, FOLDER)
    try:
        names = os.listdir(folder)
    except OSError:
        return
    if CURRENT in names:
        names.append(_take_current(folder))
    for name in sorted(name for name in names if name.startswith(TAKEN_PREFIX)):
        path = os.path.join(folder, name)
        try:
            with open(path, "rb") as file:
                if _can_drain(file.fileno()):
                    yield path, list(_events(file))
        except OSError:
            continue  # removed, or unreadable now


def waiting(home: str) -> bool:
    """Return True if the spool has events."""
    try:
        return bool(os.listdir(os.path.join(home, FOLDER)))
    except OSError:
        return False


def _take_current(folder: str) -> str:
    import time

    name = f"{TAKEN_PREFIX}{time.time_ns()}-{os.getpid()}.jsonl"
    try:
        os.rename(os.path.join(folder, CURRENT), os.path.join(folder, name))
    except OSError:  # another process was faster, or a hook has it open on Windows
        return ""
    return name


def _can_drain(file: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a hook is writing, or another process drains it
        return False
    return os.fstat(file).st_nlink > 0


def _events(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the events; skip incomplete lines of killed processes."""
    for line in lines:
        try:
            event = loads(line.decode())
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def loads(text: str) -> Any:
    """Parse JSON; allow control characters in strings. Raises ValueError."""
    return json.loads(text, strict=False)


MASKING = "masking.json"
"""File in the registry's folder: the masking key, the unmasked projects, and the words of the rules."""
TEXTS = ("prompt", "text", "last_assistant_message", "attachments")
BUILT_IN_RULES = os.path.join(__file__, "../../../registry/text/privacy/rules.toml")
OWN_RULES = "secret-rules.toml"  # file name, as in `registry.text.privacy.rules`
MIN_KEY = 20  # characters of the shortest key that is recognised by its prefix
MIN_PASSWORD = 8  # characters of the shortest password that is recognised by its form


def share_masking(home: str, key: bytes, unmasked: Sequence[str]) -> None:
    """Share the masking key with hooks. Raises OSError."""
    path = os.path.join(home, MASKING)
    known, rules = _shared(home), _rule_file_states(home)
    words = known.get("words") if known.get("rules") == rules else None
    if words is None:
        from registry.text.privacy.rules import load_rules, use_own_rules

        use_own_rules(home)
        words = load_rules().trigger_words
    shared = dumps({"key": key.hex(), "unmasked": list(unmasked), "rules": rules, "words": words})
    if _read(path) != shared:
        os.makedirs(home, mode=0o700, exist_ok=True)
        replace_private_file(path, shared)


def replace_private_file(path: str, text: str) -> None:
    """Replace a file that only this user can read, atomically. Raises OSError."""
    draft = f"{path}.{os.getpid()}"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)
    except OSError:  # on a full disk
        if os.path.exists(draft):
            os.remove(draft)
        raise


def without_secrets(home: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Mask the secrets in a hook's payload; with an empty key if the registry has shared none yet."""
    shared = _shared(home)
    words = shared["words"] if shared.get("rules") == _rule_file_states(home) else [""]  # each text contains ""
    found = {
        name: payload[name]
        for name in TEXTS
        if any(may_contain_secret(text, words) for text in _texts(payload.get(name)))
    }
    if not found:
        return dict(payload)
    from registry.text.privacy.rules import use_own_rules
    from registry.text.privacy.secrets import map_texts, mask_secrets, without_private

    use_own_rules(home)
    masked = map_texts(found, without_private)
    if not _is_unmasked(payload, shared.get("unmasked", ())):
        key = bytes.fromhex(shared.get("key", ""))
        masked = map_texts(masked, lambda text: mask_secrets(text, key))
    return {**payload, **masked}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def may_contain_secret(text: str, words: Iterable[str]) -> bool:
    """Return False if no rule can match, so that the rules, which take most of a hook's time, need not be loaded.

    `words`: the rules' words in lower case. A secret without one has a long or mixed word, many digits, escapes or
    decomposed letters.
    """
    lowered = text.lower()
    if any(word in lowered for word in words) or sum(map(text.count, "0123456789")) >= 13:  # a resident number
        return True
    if any(sign in text for sign in ("\\u", "%", "&#", "</")):  # escapes, and tags of private text
        return True
    if not text.isascii():
        from unicodedata import is_normalized

        if not is_normalized("NFC", text):
            return True
    mixed = (word for word in text.split() if any(map(str.isdigit, word)) and any(map(str.isalpha, word)))
    return any(len(word) >= MIN_PASSWORD for word in mixed) or any(len(word) >= MIN_KEY for word in text.split())


def _shared(home: str) -> dict[str, Any]:
    """Return the contents of the masking file; {} if it is missing or broken."""
    try:
        shared = loads(_read(os.path.join(home, MASKING)))
    except ValueError:
        return {}
    return shared if isinstance(shared, dict) else {}


def _rule_file_states(home: str) -> list[list[int]]:
    """Return time and size of each rule file, to detect changed rules."""
    found = []
    for path in (BUILT_IN_RULES, os.path.join(home, OWN_RULES)):
        try:
            state = os.stat(path)
            found.append([state.st_mtime_ns, state.st_size])
        except OSError:
            found.append([])
    return found


def _is_unmasked(payload: Mapping[str, Any], patterns: Sequence[str]) -> bool:
    """Return True if all folders of the hook's payload belong to unmasked projects."""
    if not patterns:
        return False
    from registry.text.privacy.secrets import is_like

    roots = payload.get("workspace_roots")
    folders = [one for one in (*(roots if isinstance(roots, list) else ()), payload.get("cwd")) if isinstance(one, str)]
    return bool(folders) and all(any(is_like(folder, pattern) for pattern in patterns) for folder in folders)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (OSError, ValueError):
        return ""
