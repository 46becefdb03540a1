"""Find error messages in a text, without what varies, so that the same error is recognised elsewhere. Pure."""

import re
from collections.abc import Iterator

_NAMED = re.compile(r"\b((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Panic|Fault|Failure)): +(\S.{5,})")
_TOLD = re.compile(
    r"\b(?:fatal|panic|error(?:[ \[]+[A-Z]{1,4}\d{2,5}\]?)?)\s*: +(\S.{5,})|(?:오류|에러)\s*: *(\S.{3,})", re.I
)
_CODE = re.compile(
    r"\b(?:ECONN(?:REFUSED|RESET)|EADDRINUSE|ENOENT|EACCES|EPERM|ETIMEDOUT|ENOSPC|EMFILE|ERR_[A-Z_]{4,})\b"
)
# Matches in every line in which one of these does, and takes a fifth of the time.
_SIGN = re.compile(
    r"[EePpFf오에](?:[Rr][Rr][Oo][Rr]|[Aa][Nn][Ii][Cc]|[Aa][Tt][Aa][Ll]|xception|ault|ailure|류|러).*:|E[A-Z]"
)
_IS_SOURCE = re.compile(r"^\s*(?:except|raise|throw|catch|import|from|#|//)\b")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|‘[^’]*’|“[^”]*”")
_DRIVE, _START = r"(?:[A-Za-z]:)", r"(?<![\w.@~-])"  # to begin inside of a word takes long, and finds no other place
_PLACE = re.compile(rf"(?:{_START}|(?={_DRIVE})){_DRIVE}?(?:[\w.@~-]*[/\\])+[\w.@-]*|\b\w+://\S+")
_NUMBER = re.compile(r"\b(?:0x)?[0-9a-f]*\d[0-9a-f]*\b", re.IGNORECASE)
LONGEST_LINE, LONGEST = 400, 120


def problems_in(text: str) -> dict[str, str]:
    """Return each named problem's constant part and its line."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if _SIGN.search(line) and len(line) <= LONGEST_LINE and not _IS_SOURCE.match(line):
            for sign in _signs(line):
                found.setdefault(sign, line.strip())
    return found


def _signs(line: str) -> Iterator[str]:
    if named := _NAMED.search(line):
        yield _plain(f"{named[1].rpartition('.')[2]}: {named[2]}")
    elif told := _TOLD.search(line):
        yield _plain(told[1] or told[2])
    elif code := _CODE.search(line):
        yield code[0]


def _plain(said: str) -> str:
    """Replace quotations, paths and numbers, which vary from one place to the next."""
    for pattern, sign in ((_QUOTED, "…"), (_PLACE, "…"), (_NUMBER, "N")):
        said = pattern.sub(sign, said)
    return " ".join(said.split())[:LONGEST].rstrip(" .,;:")
