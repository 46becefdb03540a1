"""Undo escapes in a text: JSON in JSON, percent encoding, HTML entities, decomposed Hangul. Pure."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

_ESCAPE = re.compile(  # begins with one of a few characters, so that the search is fast
    r"[\\%&\u1100-\u1112](?:(?<=\\)\\*(?:u(?P<unit>[0-9a-fA-F]{4})|(?P<sign>[\"'/nrt]))"
    r"|(?<=[\u1100-\u1112])(?P<vowel>[\u1161-\u1175])[\u11a8-\u11c2]?"  # as in names of files on macOS
    r"|(?<=%)(?P<octets>(?:25)*[0-9a-fA-F]{2}(?:%(?:25)*[0-9a-fA-F]{2})*)"
    r"|(?<=&)(?:amp;)*(?P<entity>quot|apos|lt|gt|amp|#\d{2,5}|#x[0-9a-fA-F]{2,4});)"
)
_OCTET = re.compile(r"%(?:25)*(?P<hex>[0-9a-fA-F]{2})")
_ENTITIES = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "amp": "&"}
_LETTERS = {"n": "\n", "r": "\n", "t": "\t"}
_SIGNS = ("\\u", "%", "&", '\\"', "\\'")  # a text without any of them has no escapes


def unescaped(text: str) -> tuple[str, Sequence[int]]:
    """Unescape the lines with escapes and the line before each; return them, and each character's position in `text`.

    The last position is the end. Both are empty if nothing is escaped.
    """
    parts, positions, end, line_end = list[str](), list[int](), 0, 0
    may_have_escapes = any(map(text.__contains__, _SIGNS)) or not unicodedata.is_normalized("NFC", text)
    for escape in _ESCAPE.finditer(text) if may_have_escapes else ():
        if escape.start() >= line_end:
            parts.append(text[end:line_end])
            positions += range(end, line_end)
            end = max(line_end, text.rfind("\n", 0, max(0, text.rfind("\n", 0, escape.start()))) + 1)
        parts.append(text[end : escape.start()])
        positions += range(end, escape.start())
        for letter, position in _letters(escape):
            parts.append(letter)
            positions.append(position)
        end = escape.end()
        line_end = max(end, text.find("\n", end) + 1 or len(text))
    return "".join((*parts, text[end:line_end])), [*positions, *range(end, line_end + 1)] if parts else []


def _letters(escape: re.Match[str]) -> Iterator[tuple[str, int]]:
    at = escape.start()
    if unit := escape["unit"]:
        yield chr(int(unit, 16)), at
    elif entity := escape["entity"]:
        yield _ENTITIES.get(entity) or chr(int(f"0{entity[1:]}", 16 if entity[1] == "x" else 10)), at
    elif escape["vowel"]:
        yield unicodedata.normalize("NFC", escape[0]), at
    elif sign := escape["sign"]:
        yield _LETTERS.get(sign, sign), at
    else:
        yield from _in_octets(escape[0], at)


def _in_octets(written: str, at: int) -> Iterator[tuple[str, int]]:
    octets = [(int(octet["hex"], 16), at + octet.start()) for octet in _OCTET.finditer(written)]
    number = 0
    for letter in bytes(value for value, _ in octets).decode(errors="surrogateescape"):
        yield letter, octets[number][1]
        number += len(letter.encode(errors="surrogateescape"))
