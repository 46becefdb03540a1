"""Mask the secrets in any JSON value: in texts, and under names such as `password`. Pure."""

from collections.abc import Mapping
from typing import Any

MAX_CLEAN = 50_000  # hashes, 6 MB: more texts than a long chat has with all parts of its tool calls
_CLEAN: set[int] = set()
"""Hashes of texts without secrets, so that a chat that is sent again is not searched again."""


def mask_value(value: Any, key: bytes) -> Any:
    """Return the value with each secret in its texts replaced by a mark."""
    match value:
        case str():
            return _mask_text(value, key)
        case Mapping():
            return {mask_value(name, key): _mask_item(name, item, key) for name, item in value.items()}
        case list() | tuple():
            return [mask_value(item, key) for item in value]
    return value


def contains_secret(value: Any) -> bool:
    """Return True if any text of a value contains a secret."""
    return bool(value) and mask_value(value, b"any") != value


def marks_of(value: Any, masked: Any, key: bytes | None) -> dict[str, str]:
    """Return the private texts and, with a key, the secrets that were masked in a value, and their marks."""
    from registry.domain import texts_in
    from registry.text.privacy.secrets import PRIVATE, find_secrets, mask, private_texts, without_private

    marks: dict[str, str] = {}
    for was, now in zip(texts_in(value), texts_in(masked), strict=True):
        if was != now:
            marks |= {" ".join(text.split()): PRIVATE for text in private_texts(was)}
            if key is None:
                continue
            spans = [(was[one.start : one.end], one.kind) for one in find_secrets(was)]
            if not spans and now != without_private(was):  # replaced as a whole
                spans = [(was, "secret")]
            marks |= {" ".join(secret.split()): mask(secret, kind, key) for secret, kind in spans}
    return marks


def mask_cut(text: str, marks: Mapping[str, str]) -> str:
    """Mask known secrets in a text that was derived before masking, also one that is cut off at the text's end."""
    for secret, mark in marks.items():
        text = text.replace(secret, mark)
        line = text.rstrip("… ")
        lengths = range(min(len(secret), len(line)), 4, -1)
        cut = next((length for length in lengths if line.endswith(secret[:length])), 0)
        text = line[:-cut] + mark if cut else text
    return text


def _mask_item(name: object, value: Any, key: bytes) -> Any:
    if isinstance(name, str) and isinstance(value, str):
        from registry.text.privacy.secrets import is_secret_value, mask

        if is_secret_value(name, value):
            return mask(value, "password" if "pass" in name.lower() else "secret", key)
    return mask_value(value, key)


def _mask_text(text: str, key: bytes) -> str:
    if len(text) < 8 or hash(text) in _CLEAN:  # a name and its secret are at least as long
        return text
    from registry.text.privacy.secrets import mask_secrets  # only processes that store messages load the rules

    found = mask_secrets(text, key)
    if found == text:
        if len(_CLEAN) >= MAX_CLEAN:
            _CLEAN.clear()
        _CLEAN.add(hash(text))
    return found
