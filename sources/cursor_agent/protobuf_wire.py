"""Read the fields of a protocol buffers message by tag, without a schema. Pure.

A damaged message is read up to the damage. Nested messages are read only on request, so depth costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTH = {_FIXED64: 8, _FIXED32: 4}


@dataclass(frozen=True, slots=True)
class WireMessage:
    """A message: the values of its fields by tag, in order. Not `is_whole`: it is damaged at its end."""

    is_whole: bool
    _varints: dict[int, list[int]] = field(default_factory=dict)
    _bytes: dict[int, list[bytes]] = field(default_factory=dict)

    def blocks(self, tag: int) -> list[bytes]:
        """Return all values of a repeated field of bytes, text or messages."""
        return self._bytes.get(tag, [])

    def texts(self, tag: int) -> list[str]:
        """Return all values of a repeated field of text; invalid UTF-8 becomes U+FFFD."""
        return [block.decode("utf-8", "replace") for block in self.blocks(tag)]

    def nodes(self, tag: int) -> list[WireMessage]:
        return [read_node(block) for block in self.blocks(tag)]

    def text(self, tag: int) -> str:
        """Return the last value of a field of text, as protocol buffers demand; empty if none."""
        return next(iter(self.texts(tag)[-1:]), "")

    def number(self, tag: int) -> int | None:
        return next(iter(self._varints.get(tag, [])[-1:]), None)

    def all_texts(self) -> list[str]:
        """Return the text of every field, for a message whose tags are not known."""
        return [text for tag in self._bytes for text in self.texts(tag)]


def read_node(data: bytes) -> WireMessage:
    """Parse any bytes as a message, perhaps not a whole one. Numbers of fixed width are passed over."""
    varints: dict[int, list[int]] = {}
    blocks: dict[int, list[bytes]] = {}
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            tag, wire_type = key >> 3, key & 7
            if not tag:
                raise ValueError("no field has the number 0")
            if wire_type == _VARINT:
                value, at = _varint(data, at)
                varints.setdefault(tag, []).append(value)
                continue
            width, at = _varint(data, at) if wire_type == _BYTES else (_WIDTH[wire_type], at)
            if at + width > len(data):
                raise ValueError("a field is longer than its message")
            if wire_type == _BYTES:
                blocks.setdefault(tag, []).append(data[at : at + width])
            at += width
    except (ValueError, KeyError, IndexError):  # a torn number, an unknown wire type, the end within a number
        return WireMessage(False, varints, blocks)
    return WireMessage(True, varints, blocks)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(10):  # 64 bits, 7 in each byte
        byte = data[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("a number without end")
