"""Convert messages for delivery, shorten texts, and measure what reaches the model behind a client. Pure."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from registry.domain import CLAIMED, Role, format_time, json_writer, preview_of
from registry.text.privacy.hidden_characters import shown
from sources.client import SizeLimit

if TYPE_CHECKING:
    from registry.storage.conversations.messages import MessageRow

MessageDict = dict[str, Any]
UNDONE = "undone or replaced in its client"  # describes a `superseded` message


def message_dict(row: MessageRow) -> MessageDict:
    """Convert a stored message to the dict that graph nodes exchange."""
    payload = row.payload
    return {
        "id": row.id,
        "number": row.number,
        "channel": row.channel,
        "channel_number": row.channel_number,
        "source": row.source,
        "seq": row.seq,
        "turn": row.turn,
        "role": row.role,
        "text": row.text,
        "timestamp": format_time(row.timestamp),
        "context": context_of(row.role, payload) if payload else None,
        "tool": payload.get("tool"),
        "time": payload.get("time"),
        "superseded": payload.get("superseded"),
        "payload": payload,
    }


def context_of(role: str, payload: Mapping[str, Any]) -> Any:
    """Return the context of a message; for a question without one, the file and line in its call."""
    return payload.get("context") or _question_location(role, payload.get("meta"))


def _question_location(role: str, meta: object) -> dict[str, Any] | None:
    if role != Role.USER or not isinstance(meta, Mapping):
        return None
    more = meta.get("additional_context")
    extra = dict(more) if isinstance(more, Mapping) else {}
    line = extra.pop("line_number", extra.pop("line", None))
    known = {"file": meta.get("file"), "line": line, "language": meta.get("language"), **extra}
    return {name: value for name, value in known.items() if value is not None} or None


def full_message(message: MessageDict) -> MessageDict:
    """Return a message with its whole payload, without the client's own ids."""
    fields = {name: value for name, value in message["payload"].items() if name not in ("native_id", CLAIMED)}
    return {**fields, **{key: message[key] for key in ("id", "role", "text", "timestamp")}}


def deliver(message: MessageDict, *, whole_tool: bool = False) -> MessageDict:
    """Convert a message for the client, without empty fields.

    `time` "inferred": the client recorded no time. `superseded`: the user undid it, or another message replaced it. A
    tool call is shortened, because the text describes it, unless `whole_tool`.
    """
    more = {name: message[name] for name in ("time", *_MARKS) if message.get(name)}
    if message.get("context"):
        more["context"] = _shorten_context(message["context"])
    if isinstance(tool := message.get("tool"), Mapping):
        more["tool"] = {name: tool.get(name) if whole_tool else _shorten_value(tool.get(name)) for name in _CALL}
    return {key: message[key] for key in ("role", "text", "timestamp", "id")} | more


MAX_CONTEXT = 2_000  # characters of a message's context; each part of a longer one is shortened
_MAX_PART = 200


def _shorten_context(context: Any) -> Any:
    if length_of(context) <= MAX_CONTEXT or not isinstance(context, Mapping):
        return context
    parts = islice(context.items(), MAX_CONTEXT // _MAX_PART)
    return {name: one if isinstance(one, int | float) else preview_of(str(one), _MAX_PART) for name, one in parts}


_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode
_as_json = json_writer(str)


def length_of(value: Any) -> int:
    """Return the characters of a value as JSON."""
    return len(_encode(value))


_MARKS = ("why", "superseded", "replaced_on", "gap_before", "full_length", "offset")
_CALL = ("name", "params", "result", "status")
_TOOL_WIDTH = 200
_TOOL_ITEMS = 10


def _shorten_value(value: Any, deeper: int = 2) -> Any:
    """Return a shortened copy: the beginning of texts, the first items of collections."""
    match value:
        case str():
            return preview_of(value, _TOOL_WIDTH) if len(value) > _TOOL_WIDTH else value
        case Mapping() if deeper:
            return {name: _shorten_value(item, deeper - 1) for name, item in islice(value.items(), _TOOL_ITEMS)}
        case list() if deeper:
            return [_shorten_value(item, deeper - 1) for item in value[:_TOOL_ITEMS]]
        case Mapping() | list():
            return preview_of(str(value), _TOOL_WIDTH)
    return value


DEFAULT_TOKENS = 3_000  # tokens of an answer unless the caller asks for another size
ENVELOPE = 600  # characters around a result: the envelope, the searched place, the mark of quoted material


def fits(limit: SizeLimit | None, result: Mapping[str, Any]) -> bool:
    """Return True if a result, as sent, fits the client's limit, or there is no limit."""
    return limit is None or limit.length_of(_as_json(shown(result))) <= limit.size - ENVELOPE


def tokens_in(text: str) -> int:
    """Estimate the tokens of a text: one per 4 ASCII characters, three per 4 others."""
    ascii_count = len(text if text.isascii() else text.encode("ascii", "ignore"))
    return -(-(ascii_count + 3 * (len(text) - ascii_count)) // 4)


def tokens_of(value: Any) -> int:
    """Estimate the tokens of a value as JSON."""
    return tokens_in(_as_json(value))


def largest_fitting(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `most` that fits, by binary search; 0 if none does."""
    return bisect_left(range(1, most + 1), True, key=lambda number: not fits(number))


def truncate(text: str, max_tokens: int) -> str:
    """Cut a text to `max_tokens`, with a mark at the cut."""
    if tokens_in(text) <= max_tokens:
        return text
    return text[: largest_fitting(len(text), lambda end: tokens_in(text[:end] + "…") <= max_tokens)] + "…"


TextWeight = Callable[[str], float]  # weighs the request's words in a text
GAP = "\n[…]\n"
MAX_PARAGRAPH = 600  # characters; a longer paragraph is split into sentences
MAX_CODE = 2_400  # characters; a longer block of code is split into lines
MAX_PIECE_TOKENS = 800  # tokens; a longer piece, such as a minified file, is split at spaces or anywhere
_PARAGRAPHS = re.compile(r"\n\s*\n|\n(?=(?:[-*#>|]|\d+[.)])\s)")
_SENTENCES = re.compile(r"(?<=[.!?다요])\s+(?=\S)|(?<=[。！？])|\n")
_FENCE = re.compile(r"(```.*?```)", re.DOTALL)


class ShortenedText(NamedTuple):
    """A text as shown; `full_length` is the original length in characters if it was cut, else 0."""

    text: str
    full_length: int = 0


def shorten(text: str, max_tokens: int, weigh: TextWeight) -> ShortenedText:
    """Return a text that fits whole, else its beginning, best passages and end, marked between them."""
    if tokens_in(text) <= max_tokens:
        return ShortenedText(text)
    pieces = _split(text)
    chosen = _choose(pieces, max_tokens - tokens_in(GAP), weigh)
    if not chosen:
        return ShortenedText(truncate(text, max_tokens), len(text))
    return ShortenedText(_join(pieces, chosen), len(text))


def _split(text: str) -> list[str]:
    """Split a text into blocks of code, paragraphs and list items; split long ones further."""
    pieces: list[str] = []
    for block in _FENCE.split(text):
        if block.startswith("```"):
            pieces += [block] if len(block) <= MAX_CODE else block.split("\n")
            continue
        for paragraph in _PARAGRAPHS.split(block):
            if len(paragraph) > MAX_PARAGRAPH:
                pieces += _SENTENCES.split(paragraph)
            else:
                pieces.append(paragraph)
    return [part for piece in pieces if piece.strip() for part in _split_long(piece.strip("\n"))]


def _split_long(piece: str) -> Iterator[str]:
    if tokens_in(piece) <= MAX_PIECE_TOKENS:
        yield piece
        return
    at = 0
    while at < len(piece):
        end = at + MAX_PARAGRAPH
        space = piece.rfind(" ", at, end) + 1 if end < len(piece) else 0
        end = space if space > at else end
        yield piece[at:end]
        at = end


def _choose(pieces: Sequence[str], max_tokens: int, weigh: TextWeight) -> list[int]:
    """Choose pieces that fit: the best and the first one, other good ones, their neighbours, the last one, the rest."""
    weights = [weigh(piece) for piece in pieces]
    ranked = sorted(range(len(pieces)), key=lambda at: (-weights[at], at))
    best = [at for at in ranked if weights[at] > 0]
    around = [at + step for at in best for step in (1, -1) if 0 <= at + step < len(pieces)]
    chosen: set[int] = set()
    left = max_tokens
    for at in dict.fromkeys([*best[:1], 0, *best[1:], *around, len(pieces) - 1, *range(len(pieces))]):
        cost = tokens_in(pieces[at]) + 2
        if cost <= left:
            chosen.add(at)
            left -= cost
    return sorted(chosen)


def _join(pieces: Sequence[str], chosen: Sequence[int]) -> str:
    text = "" if chosen[0] == 0 else GAP.lstrip("\n")
    for before, at in zip([None, *chosen], chosen, strict=False):
        if before is not None:
            text += "\n" if at == before + 1 else GAP
        text += pieces[at]
    return text if chosen[-1] == len(pieces) - 1 else text + GAP.rstrip("\n")


LIMIT_SHARE = 0.85  # of the client's limit; the rest is for the envelope and escaped characters


def tokens_for(limit: SizeLimit | None, wanted: int) -> int:
    """Return the wanted tokens, or fewer if the client's limit is lower."""
    return wanted if limit is None else min(wanted, int(limit.size * LIMIT_SHARE) // 4)
