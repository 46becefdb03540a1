"""Conversations that were sent a moment ago, so that one that comes again with a new end costs only its end.

Clients send the whole conversation every turn. What a call begins with, exactly as the last one was, is known by one
digest; whether the registry still ends with it, is asked when the rest is stored (`registry.ingest.from_tool`).
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from marshal import dumps
from typing import Any

from orchestrator.requests.field_types import MOST_MESSAGES
from orchestrator.requests.operation_names import ALIASES, Operation
from orchestrator.requests.shapes import LogRequest, Request
from registry.errors import InvalidRequest

MOST = 64
"""So many conversations are remembered."""
FEWEST = 20
"""Messages. Shorter ones are recognised as quickly as they are looked up."""

_LOGS = {Operation.CONVERSATION_LOG.value, *(name for name, of in ALIASES.items() if of is Operation.CONVERSATION_LOG)}


Given = Mapping[str, Any] | LogRequest


@dataclass(frozen=True, slots=True)
class Sent:
    """A call: what it begins with that is known, by ids, and the digest of all its messages."""

    given: Given
    digest: bytes
    known: Sequence[str] = ()

    def request(self, parse: Callable[[Any], Request]) -> Request:
        """The call as a request; where its beginning is known, with nothing but what comes behind that."""
        if not self.known:
            return parse(self.given)
        try:
            rest = parse(_with_messages(self.given, _messages(self.given)[len(self.known) :]))
        except InvalidRequest:
            return parse(self.given)  # to name the message by its own place
        return rest.behind(self.known, lambda: parse(self.given)) if isinstance(rest, LogRequest) else rest


class Resends:
    """The last call of each conversation, as digests and ids."""

    def __init__(self) -> None:
        self._told: OrderedDict[tuple[str, str], tuple[bytes, Sequence[str]]] = OrderedDict()

    def look(self, given: object) -> Sent | None:
        """Return what is known of a call; None for one that is no conversation, or a short one."""
        if not isinstance(given, LogRequest | Mapping) or not _is_log(given):
            return None
        messages = _messages(given)
        if not isinstance(messages, list) or not FEWEST <= len(messages) <= MOST_MESSAGES:
            return None
        digest, ids = self._told.get(_key(given), (b"", ()))
        try:
            begun = _Digest(messages[: len(ids)]) if 0 < len(ids) < len(messages) else None
            if begun and begun.value == digest:
                return Sent(given, begun.with_more(messages[len(ids) :]), ids)
            return Sent(given, _Digest(messages).value)
        except ValueError:  # checked already, or no JSON, which the check will say
            return None

    def note(self, sent: Sent, ids: Sequence[str]) -> None:
        """The call was stored: its messages have these ids."""
        self._told[_key(sent.given)] = sent.digest, ids
        self._told.move_to_end(_key(sent.given))
        if len(self._told) > MOST:
            self._told.popitem(last=False)


class _Digest:
    """The digest of a list of messages, which can be continued."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self._state = sha256(_written(messages))

    @property
    def value(self) -> bytes:
        return self._state.digest()

    def with_more(self, messages: Sequence[Any]) -> bytes:
        self._state.update(_written(messages))
        return self.value


def _written(messages: Sequence[Any]) -> bytes:
    """A mark of each message, one behind the other: its hash, which nobody can aim at who does not know our process."""
    return array("q", map(_mark, messages)).tobytes()


def _mark(message: Any) -> int:
    if type(message) is dict and {*map(type, message.values())} == _TEXTS:
        return hash((*message, *message.values()))
    return hash(dumps(message, _PLAIN))  # numbers that are equal may be written otherwise, and so are no longer equal


_TEXTS = {str}
_PLAIN = 2
"""The last version of Python's own format in which equal values are written alike, be they one object or not."""


def _is_log(given: Given) -> bool:
    return isinstance(given, LogRequest) or given.get("operation") in _LOGS


def _messages(given: Given) -> Any:
    return given.messages if isinstance(given, LogRequest) else given.get("messages")


def _key(given: Given) -> tuple[str, str]:
    if isinstance(given, LogRequest):
        return given.channel, given.source
    return str(given.get("channel")), str(given.get("source"))


def _with_messages(given: Given, messages: Any) -> Given:
    if isinstance(given, LogRequest):
        return given.model_copy(update={"messages": messages})
    return {**given, "messages": messages}
