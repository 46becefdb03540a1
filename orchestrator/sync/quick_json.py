"""JSON for hooks, for which a client waits: `json` imports `re`, which takes as long as all the rest together.

This is the C code that `json` itself runs, called directly. Where Python has none, or calls it otherwise, and for
whatever it refuses, `json` has the last word.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _AsUsual:
    """What `json.JSONDecoder(strict=False)` tells the scanner."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float
    memo: dict[str, str] = {}  # noqa: RUF012


_BLANKS = " \t\r\n"


def loads(text: str) -> Any:
    """The value that a text is; control characters in strings are let pass. Raises ValueError."""
    try:
        from _json import make_scanner

        body = text.strip(_BLANKS)
        value, end = make_scanner(_AsUsual())(body, 0)  # type: ignore[arg-type]
        if end == len(body):
            return value
    except Exception:  # noqa: S110  # json says what is wrong, if anything is
        pass
    import json

    return json.loads(text, strict=False)


def dumps(value: Any) -> str:
    """The value as ASCII text in one line. Raises TypeError or ValueError."""
    try:
        from _json import encode_basestring_ascii, make_encoder

        encode = make_encoder(None, None, encode_basestring_ascii, None, ": ", ", ", False, False, True)  # type: ignore[arg-type]
        return "".join(encode(value, 0))
    except Exception:
        import json

        return json.dumps(value)
