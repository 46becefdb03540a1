"""Mask the secrets in any value: texts, and what stands under names such as `password`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CLEAN: set[int] = set()
"""The hashes of texts without secrets: a chat that is sent again is not searched again."""
_PLAIN_NAMES: set[str] = set()
"""Names of fields that neither hold a secret nor announce one."""
_NUMBERS = frozenset((bool, int, float, type(None)))


def mask_value(value: Any, key: bytes) -> Any:
    """Put a mark in the place of each secret in the texts of a value. A value without any is returned itself."""
    return value if _is_clean(value) else _masked(value, key)


def holds_secret(value: Any) -> bool:
    """Return whether some text in it holds a secret."""
    return bool(value) and mask_value(value, b"any") != value


def marks_of(value: Any, masked: Any, key: bytes) -> dict[str, str]:
    """Return the secrets that were masked in a value, and their marks."""
    from registry.domain import texts_in
    from registry.text.privacy.secrets import find_secrets, mask

    marks: dict[str, str] = {}
    for was, now in zip(texts_in(value), texts_in(masked), strict=True):
        if was != now:
            spans = [(was[one.start : one.end], one.kind) for one in find_secrets(was)] or [(was, "secret")]
            marks |= {" ".join(secret.split()): mask(secret, kind, key) for secret, kind in spans}
    return marks


def mask_cut(text: str, marks: Mapping[str, str]) -> str:
    """Mask known secrets in a text that was derived before masking: also one that is cut off at its end."""
    line = text.rstrip("… ")
    for secret, mark in marks.items():
        text = text.replace(secret, mark)
        cut = next(
            (length for length in range(min(len(secret), len(line)), 4, -1) if line.endswith(secret[:length])), 0
        )
        line = text = line[:-cut] + mark if cut else text
    return text


def _is_clean(value: Any) -> bool:
    """Return whether nothing in it is masked; without making it anew, for records hold thousands of numbers."""
    left = [value]
    while left:
        held = left.pop()
        kind = type(held)
        if kind in _NUMBERS:
            continue
        if isinstance(held, str):
            if _mask_text(held, b"any") != held:
                return False
        elif kind is dict:
            if not (held.keys() <= _PLAIN_NAMES or all([_is_plain(name, of) for name, of in held.items()])):
                return False
            left += [one for one in held.values() if type(one) not in _NUMBERS]
        elif kind is list or kind is tuple:
            left += held if {*map(type, held)} - _NUMBERS else ()
        elif isinstance(held, Mapping | list | tuple):
            return False  # of no kind that a record is made of
    return True


def _is_plain(name: Any, held: Any) -> bool:
    if not isinstance(name, str):
        return _is_clean(name)
    from registry.text.privacy.secrets import is_secret_value, may_hold_secret

    if _mask_text(name, b"any") != name:
        return False
    if may_hold_secret(name):
        return not (isinstance(held, str) and is_secret_value(name, held))
    if len(_PLAIN_NAMES) < 10_000:
        _PLAIN_NAMES.add(name)
    return True


def _masked(value: Any, key: bytes) -> Any:
    match value:
        case str():
            return _mask_text(value, key)
        case dict() | Mapping():  # whether it is a dict is told at once
            return {_masked(name, key): _mask_item(name, held, key) for name, held in value.items()}
        case list() | tuple():
            return [_masked(held, key) for held in value]
    return value


def _mask_item(name: object, value: Any, key: bytes) -> Any:
    if isinstance(name, str) and isinstance(value, str):
        from registry.text.privacy.secrets import is_secret_value, mask

        if is_secret_value(name, value):
            return mask(value, "password" if "pass" in name.lower() else "secret", key)
    return _masked(value, key)


def _mask_text(text: str, key: bytes) -> str:
    if len(text) < 8 or hash(text) in _CLEAN:  # nothing shorter is taken for a secret with its name
        return text
    from registry.text.privacy.secrets import mask_secrets  # the rules are loaded where something is stored

    found = mask_secrets(text, key)
    if found == text:
        if len(_CLEAN) >= 200_000:
            _CLEAN.clear()
        _CLEAN.add(hash(text))
    return found
