"""Read the root node of a Cursor agent's conversation and the nodes below it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from registry.domain import Role
from sources.cursor.times import moment
from sources.kit.loose_json import read_json
from sources.kit.workspace_files import path_of

ID_BYTES = 32
_PROMPT, _WAITING, _TURNS, _FOLDERS, _MODE = 1, 4, 8, 9, 10
_WORKSPACE, _TURN_BEGAN = 21, 26
_MODES = {1: "agent", 2: "ask", 3: "plan", 4: "debug", 5: "triage"}


@dataclass(frozen=True, slots=True)
class Root:
    """A state of a conversation. Blob ids are hexadecimal. Not `is_whole`: only its beginning could be read.

    `prompt`: in order, blob ids as text and inline JSON as bytes. `waiting`: answers whose tool calls have no result
    yet, as JSON.
    """

    is_whole: bool
    prompt: list[str | bytes]
    waiting: list[bytes]
    turns: list[str]
    folder: str
    turn_began: datetime | None
    mode: str


def read_root(data: bytes) -> Root:
    references, embedded = split_embedded(data)
    node = read_node(references)
    listed = (block.hex() if len(block) == ID_BYTES else block for block in node.blocks(_PROMPT))
    described = (text for inner in node.nodes(_WORKSPACE) for text in inner.all_texts())
    folders = map(path_of, (*node.texts(_FOLDERS), *described))
    return Root(
        node.is_whole,
        [*listed, *embedded],
        node.blocks(_WAITING),
        _ids(node, _TURNS),
        next(filter(None, folders), ""),
        moment(node.number(_TURN_BEGAN)),
        _MODES.get(node.number(_MODE) or 0, ""),
    )


def split_embedded(data: bytes) -> tuple[bytes, list[bytes]]:
    """Separate the references of a node from the message that the first generation may embed behind them, as JSON."""
    end = 0
    while data.startswith(b"\x0a\x20", end) and end + 2 + ID_BYTES <= len(data):
        end += 2 + ID_BYTES
    begin = data.find(b"{", end)
    if begin < 0 or read_node(data).is_whole or not isinstance(read_json(data[begin:]), dict):
        return data, []
    return data[:end], [data[begin:]]


def links_of(data: bytes) -> list[str | bytes]:
    """Return the children of a node of the first generation, which held only ids, and the JSON message behind them.

    Empty for any other node.
    """
    references, embedded = split_embedded(data)
    node = read_node(references)
    blocks = node.blocks(_PROMPT)
    are_ids = bool(blocks) and all(len(block) == ID_BYTES for block in blocks)
    return [*(block.hex() for block in blocks), *embedded] if node.is_whole and are_ids else []


def read_turn(data: bytes) -> tuple[str, list[str]] | None:
    """Return the ids of the question and of the steps of an agent's turn; None for a turn of the shell."""
    agents = read_node(data).nodes(1)
    return (next(iter(_ids(agents[0], 1)), ""), _ids(agents[0], 2)) if agents else None


def question_of(data: bytes) -> str:
    return read_node(data).text(1)


def steps_of(data: bytes) -> Iterator[tuple[Role, str]]:
    """Yield the roles and texts of a step, usually one; of a tool call the text is not known."""
    node = read_node(data)
    for tag, role in ((3, Role.THINKING), (1, Role.ASSISTANT)):
        yield from ((role, inner.text(1)) for inner in node.nodes(tag))
    yield from ((Role.TOOL, "") for _ in node.blocks(2))


def _ids(node: WireMessage, tag: int) -> list[str]:
    return [block.hex() for block in node.blocks(tag) if len(block) == ID_BYTES]


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTH = {_FIXED64: 8, _FIXED32: 4}


# Protocol buffers, read by tag without a schema. A damaged message is read up to the damage. Nested messages are read
# only on request, so depth costs nothing.


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
