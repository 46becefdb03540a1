"""Read the root node of a Cursor agent's conversation and the nodes below it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from registry.domain import Role
from sources.cursor.times import moment
from sources.cursor_agent.protobuf_wire import WireMessage, read_node
from sources.kit.loose_json import read_json
from sources.kit.workspace_files import path_of

ID_BYTES = 32
_PROMPT, _WAITING, _TURNS, _FOLDERS, _MODE = 1, 4, 8, 9, 10
_WORKSPACE, _TURN_BEGAN = 21, 26
_MODES = {1: "agent", 2: "ask", 3: "plan", 4: "debug", 5: "triage"}


class Root:
    """A state of a conversation. Blob ids are hexadecimal."""

    def __init__(self, data: bytes) -> None:
        references, self._embedded = split_embedded(data)
        self._node = read_node(references)

    @property
    def is_whole(self) -> bool:
        """Return False if only its beginning could be read."""
        return self._node.is_whole

    def prompt(self) -> list[str | bytes]:
        """Return the prompt in order: blob ids as text, inline JSON as bytes."""
        listed = (block.hex() if len(block) == ID_BYTES else block for block in self._node.blocks(_PROMPT))
        return [*listed, *self._embedded]

    def waiting(self) -> list[bytes]:
        """Return answers whose tool calls have no result yet, as JSON."""
        return self._node.blocks(_WAITING)

    def turns(self) -> list[str]:
        return _ids(self._node, _TURNS)

    def folder(self) -> str:
        described = (text for node in self._node.nodes(_WORKSPACE) for text in node.all_texts())
        return next(filter(None, map(path_of, (*self._node.texts(_FOLDERS), *described))), "")

    def turn_began(self) -> datetime | None:
        return moment(self._node.number(_TURN_BEGAN))

    def mode(self) -> str:
        return _MODES.get(self._node.number(_MODE) or 0, "")


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
