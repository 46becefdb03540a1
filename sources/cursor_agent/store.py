"""Read the database of a Cursor agent: blobs stored by their hash, which are messages, or nodes with ids of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import chain
from typing import NamedTuple

from registry.domain import Role
from sources.cursor.times import moment
from sources.cursor_agent.messages import cursor_options
from sources.kit.jsonl import MAX_LINE_BYTES, TOO_LONG
from sources.kit.loose_json import Record, mapping, object_in, read_json, string
from sources.kit.sqlite_store import ClientDatabase
from sources.kit.workspace_files import path_of

# the only fields of the description that are read: another one is a key that encrypts blobs
_WANTED = ("agentId", "latestRootBlobId", "name", "mode", "createdAt", "lastUsedModel")
_BEGIN_OF_ROOT = b"\x0a\x20"


class PromptElement(NamedTuple):
    """A message of the prompt, named by its blob id, or the reason why it cannot be read."""

    name: str
    message: Record | None
    why: str = ""


class AgentStore:
    """One `store.db`: the description of a conversation, and blobs by their hash."""

    def __init__(self, database: ClientDatabase) -> None:
        self._database = database
        self._tables = database.tables()

    def description(self) -> Record:
        """Return the description of the conversation, stored as hexadecimal text or plain JSON; empty if missing."""
        if "meta" not in self._tables:
            return {}
        rows = self._database.rows("SELECT value FROM meta WHERE key = '0'")
        value = rows[0][0] if rows else ""
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else string(value)
        with suppress(ValueError):
            text = bytes.fromhex(text).decode("utf-8", "replace")
        given = object_in(text) or {}
        return {key: given[key] for key in _WANTED if key in given}

    def latest_root(self, named: str) -> tuple[str, Root] | None:
        """Return the latest state with its id: the named one if it is stored, else the newest stored one."""
        data = self.blob(named) if named else None
        return (named, read_root(data)) if data else next(self._roots(2**63 - 1), None)

    def blob(self, blob_id: str) -> bytes | None:
        """Return the contents of a blob; None if it is missing or too long."""
        return self._blob(blob_id)[0]

    def elements(self, root_id: str, root: Root) -> Iterator[PromptElement]:
        """Yield the messages of the prompt, including those before each summary, one at a time in memory.

        A repeated message gets a distinct name, which remains stable when messages are added.
        """
        counts: dict[str, int] = {}
        listed = (*self._with_summarised(root_id, root.prompt), *root.waiting)
        for element in chain.from_iterable(map(self._messages_below, listed)):
            count = counts[element.name] = counts.get(element.name, 0) + 1
            yield element if count == 1 else element._replace(name=f"{element.name}~{count}")

    def turns(self, root: Root) -> Iterator[tuple[str, Role, str]]:
        """Yield name, role and text of the messages shown to the user; the text of a tool call is unknown."""
        turns = (self._node(turn_id) for turn_id in root.turns)
        for turn in (agents[0] for turn in turns if (agents := turn.nodes(1))):  # not the turns of the shell
            for question in _ids(turn, 1)[:1]:
                yield question, Role.USER, self._node(question).text(1)
            for step_id in _ids(turn, 2):
                step = self._node(step_id)
                texts = ((Role.THINKING, step.nodes(3)), (Role.ASSISTANT, step.nodes(1)))
                parts = [(role, node.text(1)) for role, nodes in texts for node in nodes]
                parts += [(Role.TOOL, "") for _ in step.blocks(2)]
                yield from ((f"{step_id}.{index}", *part) for index, part in enumerate(parts))

    def _node(self, blob_id: str) -> WireMessage:
        return read_node(self.blob(blob_id) or b"")

    def _messages_below(self, given: str | bytes) -> Iterator[PromptElement]:
        """Yield a message; or all messages below a node, in stores of the first generation."""
        open_nodes, done = [(given, 0)], set[str]()
        while open_nodes:
            node, depth = open_nodes.pop()
            if isinstance(node, bytes):
                yield _element(sha256(node).hexdigest(), node, "")
                continue
            data, why = self._blob(node)
            links = links_of(data) if data and not data.startswith(b"{") else []
            if not links:
                yield _element(node, data, why)
            elif depth < 64 and node not in done:
                done.add(node)
                open_nodes += [(link, depth + 1) for link in reversed(links)]

    def _with_summarised(self, root_id: str, prompt: list[str | bytes]) -> list[str | bytes]:
        """Return the prompt; if it begins with a summary, including the summarised messages from earlier states."""
        summary = self._summary_in(prompt)
        earlier = self._roots(self._row(root_id)) if summary else iter(())
        for _, root in earlier:
            before = root.prompt
            if summary in before:
                continue
            known = set(before)
            prompt = [*before, *(given for given in prompt if given not in known)]
            summary = self._summary_in(before)
            if summary is None:
                break
        return prompt

    def _summary_in(self, prompt: list[str | bytes]) -> str | bytes | None:
        for given in prompt[:8]:  # a summary follows the system prompt and its context
            data = given if isinstance(given, bytes) else self.blob(given)
            if data and b"isSummary" in data and cursor_options(mapping(read_json(data))).get("isSummary") is True:
                return given
        return None

    def _roots(self, before_row: int) -> Iterator[tuple[str, Root]]:
        """Yield the states that were stored before a row, newest first."""
        statement = (
            "SELECT CAST(id AS TEXT) FROM blobs WHERE rowid < ? AND length(data) <= ?"
            " AND substr(CAST(data AS BLOB), 1, 2) = ? ORDER BY rowid DESC"
        )
        if "blobs" not in self._tables:
            return
        for (blob_id,) in self._database.rows(statement, (before_row, MAX_LINE_BYTES, _BEGIN_OF_ROOT)):
            data = self.blob(blob_id) or b""
            links = links_of(data)
            if links and self._row(str(links[0])):
                yield blob_id, read_root(data)

    def _row(self, blob_id: str) -> int:
        """Return the row number of a blob, which ascends in order of writing; 0 if it is missing."""
        rows = self._database.rows("SELECT rowid FROM blobs WHERE id = ?", (blob_id,))
        return rows[0][0] if rows else 0

    def _blob(self, blob_id: str) -> tuple[bytes | None, str]:
        """Return the contents, or the reason why there are none. The length is checked before reading."""
        statement = "SELECT CASE WHEN length(data) <= ? THEN data END, length(data) FROM blobs WHERE id = ?"
        rows = self._database.rows(statement, (MAX_LINE_BYTES, blob_id)) if "blobs" in self._tables else []
        if not rows or rows[0][1] is None:
            return None, "not stored"
        data = rows[0][0]
        if data is None:
            return None, TOO_LONG
        return data if isinstance(data, bytes) else str(data).encode("utf-8", "replace"), ""


def _element(name: str, data: bytes | None, why: str) -> PromptElement:
    message = read_json(data) if data is not None else None
    return (
        PromptElement(name, message)
        if isinstance(message, dict)
        else PromptElement(name, None, why or "not a JSON object")
    )


# The states of a conversation and the nodes below them. Pure.

ID_BYTES = 32
_PROMPT, _WAITING, _TURNS, _FOLDERS, _MODE = 1, 4, 8, 9, 10
_WORKSPACE, _TURN_BEGAN = 21, 26
_MODES = {1: "agent", 2: "ask", 3: "plan", 4: "debug", 5: "triage"}


@dataclass(frozen=True, slots=True)
class Root:
    """A state of a conversation. Blob ids are hexadecimal. If not `is_whole`, only its beginning could be parsed.

    `prompt`: blob ids as text, and inline JSON as bytes. `waiting`: answers with pending tool calls, as JSON.
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
    """Split a node into its references and the JSON message that the first generation may append to them."""
    end = 0
    while data.startswith(b"\x0a\x20", end) and end + 2 + ID_BYTES <= len(data):
        end += 2 + ID_BYTES
    begin = data.find(b"{", end)
    if begin < 0 or read_node(data).is_whole or not isinstance(read_json(data[begin:]), dict):
        return data, []
    return data[:end], [data[begin:]]


def links_of(data: bytes) -> list[str | bytes]:
    """Return the ids in a node of the first generation and the JSON message appended to them; empty for other nodes."""
    references, embedded = split_embedded(data)
    node = read_node(references)
    blocks = node.blocks(_PROMPT)
    are_ids = bool(blocks) and all(len(block) == ID_BYTES for block in blocks)
    return [*(block.hex() for block in blocks), *embedded] if node.is_whole and are_ids else []


def _ids(node: WireMessage, tag: int) -> list[str]:
    return [block.hex() for block in node.blocks(tag) if len(block) == ID_BYTES]


# Protocol buffers, parsed by tag without a schema. A damaged message is parsed up to the damage, a nested one only on
# request, so that depth costs nothing.

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTH = {_FIXED64: 8, _FIXED32: 4}


@dataclass(frozen=True, slots=True)
class WireMessage:
    """A message: the values of its fields by tag, in order. If not `is_whole`, its end is damaged."""

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
        """Return the last value of a text field, as protocol buffers require; empty if there is none."""
        return next(iter(self.texts(tag)[-1:]), "")

    def number(self, tag: int) -> int | None:
        return next(iter(self._varints.get(tag, [])[-1:]), None)

    def all_texts(self) -> list[str]:
        """Return the texts of all fields, for a message with unknown tags."""
        return [text for tag in self._bytes for text in self.texts(tag)]


def read_node(data: bytes) -> WireMessage:
    """Parse any bytes as a message, as far as possible. Numbers of fixed width are skipped."""
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
    except (ValueError, KeyError, IndexError):  # an invalid or truncated number, or an unknown wire type
        return WireMessage(False, varints, blocks)
    return WireMessage(True, varints, blocks)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(10):  # 64 bits, 7 in each byte
        byte = data[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError("a number without end")
