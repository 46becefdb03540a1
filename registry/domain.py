"""Domain types: roles, messages, sessions, times. No I/O, no framework."""

import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import blake2b
from json import JSONEncoder
from math import isfinite
from os import urandom
from typing import Any, Self

# payload key for fields that a caller claims but only the client's store can know; stored, so it must not change
CLAIMED = "claimed"


# fields that identify a message or session: not searched for secrets
IDENTITY = frozenset({"native_id", "request_id", "session_id", "parent", "project", "time", "timestamp"})


class Role(StrEnum):
    """The speaker of a message: the three of every chat, and those of clients' histories."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"
    THINKING = "thinking"
    ERROR = "error"


class Actor(StrEnum):
    """The writer of a message: a tool call or another machine (`ao`), a client's hook, the reader of a client's store,
    or the reader of a shortened copy.
    """

    TOOL = "ao"
    HOOK = "hook"
    READER = "reader"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it arrives. `timestamp` None: the time of receipt is used."""

    role: Role
    text: str
    timestamp: datetime | None = None
    context: Mapping[str, Any] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)  # other fields that the client sent, stored in the payload
    images: Mapping[int, bytes] = field(default_factory=dict)  # by position in the attachments of `more`

    @property
    def native_id(self) -> str | None:
        """Return the client's own id of the message."""
        given = self.more.get("native_id")
        return given if isinstance(given, str) else None

    @property
    def digest(self) -> bytes:
        """Return `digest_of` the message; computed at each call."""
        return digest_of(self.role, storable(self.text))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Parse `{role, text, timestamp?, context?, …}`. Raises ValueError."""
        timestamp = given.get("timestamp")
        return cls(
            role=Role(given["role"]),
            text=given["text"],
            timestamp=parse_time(timestamp) if timestamp is not None else None,
            context=given.get("context"),
            more={key: given[key] for key in given if key not in ("role", "text", "timestamp", "context")},
        )


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation in a client's store.

    `messages` are in the client's order. `more` of a message may have `native_id`, `model`, `usage` (token counts, as
    `usage_of` of the readers has them), `tool` {name, params, result, status}, `attachments`, `time` = "inferred" where
    the client stored none, and `injected` = True for context that no user typed. `parent` is the native id of the
    session that this one is a sub-agent or a fork of. `is_copy`: a shortened copy that a client stores next to the
    original; it adds only turns that no other source has, until one does. `undone`: times (from, to) of messages that
    the user undid and the client then deleted.
    """

    session_id: str
    messages: tuple[Message, ...]
    title: str | None = None
    project: str | None = None
    parent: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    is_copy: bool = False
    undone: tuple[tuple[datetime, datetime], ...] = ()


EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)  # an earlier message time is an error: no client is older


def is_within(folder: str, other: str) -> bool:
    """Return True if a folder is the other one or below it, for paths of any system."""
    inner, outer = (path.replace("\\", "/").rstrip("/") + "/" for path in (folder, other))
    return inner.startswith(outer)


def clamp_year(moment: datetime) -> datetime:
    """Return the moment moved to the years 2 to 9998, in which adding hours cannot overflow."""
    return moment.replace(year=min(max(moment.year, 2), 9998))


def parse_time(given: str | datetime) -> datetime:
    """Parse ISO 8601, truncated to milliseconds as stored; a naive time is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(given.strip()) if isinstance(given, str) else given
    try:
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as exc:
        raise ValueError("outside the years 1 to 9999 in UTC") from exc
    return clamp_year(moment.replace(microsecond=moment.microsecond // 1000 * 1000))


def format_time(moment: datetime) -> str:
    """Return ISO 8601 in UTC with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"


def local_day(instant: str) -> str:
    """Return the day of an instant by this machine's clock."""
    return parse_time(instant).astimezone().date().isoformat()


def instant_of(moment: datetime | None) -> int | None:
    """Return milliseconds since 1970, the unit in which times are compared."""
    return None if moment is None else round(moment.timestamp() * 1000)


def now() -> datetime:
    """Return the current time in UTC, truncated to milliseconds."""
    return parse_time(datetime.now(UTC))


_ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(prefix: str) -> str:
    """Return an id such as `conv_…`: 32 bits of time in seconds, so that new ids are adjacent in an index, then 48
    random bits. Ids are short because models pay for each token of an answer."""
    bits = int(time.time()) << 48 | int.from_bytes(urandom(6))
    return f"{prefix}_" + "".join([_ID_ALPHABET[bits >> shift & 31] for shift in range(75, -1, -5)])


def is_message_id(given: str) -> bool:
    """Return True for the id of a message or of a page's snapshot."""
    return given.startswith(("conv_", "snap_"))


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(value: Any) -> Any:
    """Replace what PostgreSQL, UTF-8 or JSON cannot store (NUL, lone surrogates, NaN) by text or U+FFFD."""
    match value:
        case float() if not isfinite(value):
            return str(value)
        case str():
            is_usual = value.isascii() and "\x00" not in value  # takes a tenth of the search's time
            return value if is_usual else _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)
        case None | int() | float():
            return value
        case Mapping():
            return {storable(str(key)): storable(item) for key, item in value.items()}
        case list() | tuple():
            return [storable(item) for item in value]
    return value


def json_writer(default: Callable[[Any], Any] | None = None) -> Callable[[Any], str]:
    """Return a function that writes values as compact JSON; `default` converts other values."""
    return JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=default).encode


as_json = json_writer()  # writes a value for a JSON column


_SIGNATURES = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}


def image_type(content: bytes) -> str | None:
    """Return the media type of an image by its first bytes; None for another format, such as SVG, which has scripts."""
    return next((name for name, signature in _SIGNATURES.items() if signature.match(content)), None)


MAX_DEPTH = 64  # levels of nested lists and mappings


def is_too_deep(value: Any) -> bool:
    """Return True if lists and mappings are nested too deep to be stored or shown."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for container in level for item in _items(container)]
        if not level:
            return False
    return True


def _items(value: Any) -> Iterable[Any]:
    match value:
        case Mapping():
            return value.values()
        case list() | tuple():
            return value
    return ()


def texts_in(value: Any) -> Iterator[str]:
    """Yield the strings in a JSON value, without the names of fields."""
    if isinstance(value, str):
        yield value
    for item in _items(value):
        yield from texts_in(item)


def digest_of(role: Role, text: str) -> bytes:
    """Return a digest of role and text that ignores differences in white space."""
    words = unicodedata.normalize("NFC", text).split()
    return blake2b(f"{role}\0{' '.join(words)}".encode(), digest_size=16).digest()


def preview_of(text: str, width: int = 120) -> str:
    """Return the first words of a text on one line."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width else line[: width - 1] + "…"
