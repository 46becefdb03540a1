"""Find error messages in a text and normalise them, so that the same error is recognised elsewhere. Pure."""

import re
from collections.abc import Iterator

_EXCEPTION = re.compile(r"\b((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Panic|Fault|Failure)): +(\S.{5,})")
_LABELLED = re.compile(
    r"\b(?:fatal|panic|error(?:[ \[]+[A-Z]{1,4}\d{2,5}\]?)?)\s*: +(\S.{5,})|(?:오류|에러)\s*: *(\S.{3,})", re.I
)
_CODE = re.compile(
    r"\b(?:ECONN(?:REFUSED|RESET)|EADDRINUSE|ENOENT|EACCES|EPERM|ETIMEDOUT|ENOSPC|EMFILE|ERR_[A-Z_]{4,})\b"
)
# A prefilter of the patterns above, which takes a fifth of their time.
_MAY_MATCH = re.compile(
    r"[EePpFf오에](?:[Rr][Rr][Oo][Rr]|[Aa][Nn][Ii][Cc]|[Aa][Tt][Aa][Ll]|xception|ault|ailure|류|러).*:|E[A-Z]"
)
_IS_SOURCE = re.compile(r"^\s*(?:except|raise|throw|catch|import|from|#|//)\b")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|‘[^’]*’|“[^”]*”")
_DRIVE, _START = r"(?:[A-Za-z]:)", r"(?<![\w.@~-])"  # starting inside a word is slow and finds no other path
_PATH = re.compile(rf"(?:{_START}|(?={_DRIVE})){_DRIVE}?(?:[\w.@~-]*[/\\])+[\w.@-]*|\b\w+://\S+")
_NUMBER = re.compile(r"\b(?:0x)?[0-9a-f]*\d[0-9a-f]*\b", re.IGNORECASE)
LONGEST_LINE, LONGEST = 400, 120


def find_problems(text: str) -> dict[str, str]:
    """Return the lines with error messages, by the error's constant part."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if _MAY_MATCH.search(line) and len(line) <= LONGEST_LINE and not _IS_SOURCE.match(line):
            for signature in _signatures(line):
                found.setdefault(signature, line.strip())
    return found


def _signatures(line: str) -> Iterator[str]:
    if exception := _EXCEPTION.search(line):
        yield _normalise(f"{exception[1].rpartition('.')[2]}: {exception[2]}")
    elif labelled := _LABELLED.search(line):
        yield _normalise(labelled[1] or labelled[2])
    elif code := _CODE.search(line):
        yield code[0]


def _normalise(message: str) -> str:
    """Replace quotations, paths and numbers, which vary between occurrences."""
    for pattern, placeholder in ((_QUOTED, "…"), (_PATH, "…"), (_NUMBER, "N")):
        message = pattern.sub(placeholder, message)
    return " ".join(message.split())[:LONGEST].rstrip(" .,;:")
