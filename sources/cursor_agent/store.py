"""The SQL statements for the database of a Cursor agent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

from sources.cursor_agent.messages import cursors_own
from sources.cursor_agent.state import Root, links_of, read_root
from sources.kit.jsonl import LONGEST_LINE
from sources.kit.loose_json import Record, mapping, object_in, read_json, string
from sources.kit.sqlite_store import ClientDatabase

LONGEST_BLOB = LONGEST_LINE  # bytes; a longer one is passed over unread

# of the description: beside them is a key that encrypts blobs
_WANTED = ("agentId", "latestRootBlobId", "name", "mode", "createdAt", "lastUsedModel")
_BEGIN_OF_ROOT = b"\x0a\x20"
_MISSING, _TOO_LONG, _NOT_JSON = "not stored", f"longer than {LONGEST_BLOB // 2**20} MB", "not a JSON object"


Prompt = list[str | bytes]  # blob ids as text, inline JSON messages as bytes


class PromptElement(NamedTuple):
    """A message of the prompt, named by its blob; if it cannot be read, `why`."""

    name: str
    message: Record | None
    why: str = ""


class AgentStore:
    """One `store.db`: the description of a conversation, and blobs by the hash of their contents."""

    def __init__(self, database: ClientDatabase) -> None:
        self._database = database
        self._tables = database.tables()

    def description(self) -> Record:
        """Return the description of the conversation, stored as hexadecimal text or plain JSON; empty if missing."""
        if "meta" not in self._tables:
            return {}
        rows = self._database.rows("SELECT value FROM meta WHERE key = '0'")
        given = next((_description(value) for (value,) in rows), {})
        return {key: given[key] for key in _WANTED if key in given}

    def latest_root(self, named: str) -> tuple[str, Root] | None:
        """Return the latest state with its id: the named one, else the newest one that is stored."""
        data = self.blob(named) if named else None
        return (named, read_root(data)) if data else next(self._roots(2**63 - 1), None)

    def blob(self, blob_id: str) -> bytes | None:
        """Return the contents of a blob; None if it is missing or too long."""
        return self._blob(blob_id)[0]

    def elements(self, root_id: str, root: Root) -> Iterator[PromptElement]:
        """Yield the prompt, one message at a time in memory, with the messages before each summary.

        A repeated message gets a name of its own, which stays the same when more follow.
        """
        counts: dict[str, int] = {}
        listed = (*self._with_earlier(root_id, root.prompt), *root.waiting)
        for element in chain.from_iterable(map(self._below, listed)):
            count = counts[element.name] = counts.get(element.name, 0) + 1
            yield element if count == 1 else element._replace(name=f"{element.name}~{count}")

    def _below(self, given: str | bytes) -> Iterator[PromptElement]:
        """Yield a message, or in stores of the first generation all messages below a node of ids."""
        open_nodes, done = [(given, 0)], set[str]()
        while open_nodes:
            here, depth = open_nodes.pop()
            if isinstance(here, bytes):
                yield _element(sha256(here).hexdigest(), here, "")
                continue
            data, why = self._blob(here)
            links = links_of(data) if data and not data.startswith(b"{") else []
            if not links:
                yield _element(here, data, why)
            elif depth < 64 and here not in done:
                done.add(here)
                open_nodes += [(link, depth + 1) for link in reversed(links)]

    def _with_earlier(self, root_id: str, prompt: Prompt) -> Prompt:
        """Return the prompt. If it begins with a summary, the messages before it are taken from an earlier state."""
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

    def _summary_in(self, prompt: Prompt) -> str | bytes | None:
        for given in prompt[:8]:  # a summary follows the system prompt and its context
            data = given if isinstance(given, bytes) else self.blob(given)
            if data and b"isSummary" in data and cursors_own(mapping(read_json(data))).get("isSummary") is True:
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
        for (blob_id,) in self._database.rows(statement, (before_row, LONGEST_BLOB, _BEGIN_OF_ROOT)):
            data = self.blob(blob_id) or b""
            links = links_of(data)
            if links and self._row(str(links[0])):
                yield blob_id, read_root(data)

    def _row(self, blob_id: str) -> int:
        """Return the row of a blob, which grows with each new blob; 0 if it is missing."""
        rows = self._database.rows("SELECT rowid FROM blobs WHERE id = ?", (blob_id,))
        return rows[0][0] if rows else 0

    def _blob(self, blob_id: str) -> tuple[bytes | None, str]:
        """Return the contents, or why there are none; the length is checked before reading."""
        statement = "SELECT CASE WHEN length(data) <= ? THEN data END, length(data) FROM blobs WHERE id = ?"
        rows = self._database.rows(statement, (LONGEST_BLOB, blob_id)) if "blobs" in self._tables else []
        if not rows or rows[0][1] is None:
            return None, _MISSING
        data = rows[0][0]
        if data is None:
            return None, _TOO_LONG
        return data if isinstance(data, bytes) else str(data).encode("utf-8", "replace"), ""


def _element(name: str, data: bytes | None, why: str) -> PromptElement:
    message = read_json(data) if data is not None else None
    return PromptElement(name, message) if isinstance(message, dict) else PromptElement(name, None, why or _NOT_JSON)


def _description(value: Any) -> Record:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else string(value)
    with suppress(ValueError):  # it may stand there as it is
        text = bytes.fromhex(text).decode("utf-8", "replace")
    return object_in(text) or {}
