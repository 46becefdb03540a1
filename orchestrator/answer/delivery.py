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
from sources.client import Room

if TYPE_CHECKING:
    from registry.storage.conversations.messages import MessageRow

Turn = tuple[int, int]
"""A turn's identity: channel number, seq of its first message."""
MessageDict = dict[str, Any]


def message_dict(row: MessageRow) -> MessageDict:
    """A stored message as the nodes pass it on."""
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
        "payload": payload,
    }


def context_of(role: str, payload: Mapping[str, Any]) -> Any:
    """Return the context of a message; for a question without one the file and place that its call named."""
    return payload.get("context") or _where_it_was_asked(role, payload.get("meta"))


def _where_it_was_asked(role: str, meta: object) -> dict[str, Any] | None:
    if role != Role.USER or not isinstance(meta, Mapping):
        return None
    more = meta.get("additional_context")
    beside = dict(more) if isinstance(more, Mapping) else {}
    line = beside.pop("line_number", beside.pop("line", None))
    known = {"file": meta.get("file"), "line": line, "language": meta.get("language"), **beside}
    return {name: value for name, value in known.items() if value is not None} or None


def complete(message: MessageDict) -> MessageDict:
    """The message with all that is kept of it, but what its client calls it."""
    kept = {name: value for name, value in message["payload"].items() if name not in ("native_id", CLAIMED)}
    return {**kept, **{key: message[key] for key in ("id", "role", "text", "timestamp")}}


def delivered(message: MessageDict, *, whole_tool: bool = False) -> MessageDict:
    """The message as it leaves the orchestrator; what is empty is left out.

    `time` "inferred": nobody told when it was said. A tool's call is cut, for its text tells it, unless wanted whole.
    """
    more = {name: message[name] for name in ("time", *_MARKS) if message.get(name)}
    if message.get("context"):
        more["context"] = _brief(message["context"])
    if isinstance(tool := message.get("tool"), Mapping):
        more["tool"] = {name: tool.get(name) if whole_tool else _cut(tool.get(name)) for name in _CALL}
    return {key: message[key] for key in ("role", "text", "timestamp", "id")} | more


CONTEXT = 2_000
"""Characters of what a client tells beside a message; of more, each part is shortened."""
_PART = 200


def _brief(context: Any) -> Any:
    if length_of(context) <= CONTEXT or not isinstance(context, Mapping):
        return context
    parts = islice(context.items(), CONTEXT // _PART)
    return {name: value if isinstance(value, int | float) else preview_of(str(value), _PART) for name, value in parts}


_written = json.JSONEncoder(ensure_ascii=False, default=str).encode
_as_sent = json_writer(str)


def length_of(value: Any) -> int:
    """Characters of a value as it is sent."""
    return len(_written(value))


_MARKS = ("why", "replaced_on", "gap_before", "full_length", "offset")
_CALL = ("name", "params", "result", "status")
_TOOL_WIDTH = 200
_TOOL_ITEMS = 10


def _cut(value: Any, deeper: int = 2) -> Any:
    """Return a shortened copy: texts by their beginning, collections by their first items."""
    match value:
        case str():
            return preview_of(value, _TOOL_WIDTH) if len(value) > _TOOL_WIDTH else value
        case Mapping() if deeper:
            return {name: _cut(held, deeper - 1) for name, held in islice(value.items(), _TOOL_ITEMS)}
        case list() if deeper:
            return [_cut(held, deeper - 1) for held in value[:_TOOL_ITEMS]]
        case Mapping() | list():
            return preview_of(str(value), _TOOL_WIDTH)
    return value


DEFAULT_TOKENS = 3_000
"""Tokens of an answer unless the caller asks for another size."""
ENVELOPE = 600  # characters around a result: the envelope, where it was looked, the mark of quoted material


def fits(room: Room | None, result: Mapping[str, Any]) -> bool:
    """Return whether a result, as it is sent, reaches the model behind the client; always without a limit."""
    return room is None or room.length_of(_as_sent(shown(result))) <= room.size - ENVELOPE


def tokens_in(text: str) -> int:
    """Estimate a text's length in a model's tokens: 4 characters of ASCII each, 4 of other letters three."""
    ascii_count = len(text if text.isascii() else text.encode("ascii", "ignore"))
    return -(-(ascii_count + 3 * (len(text) - ascii_count)) // 4)


def tokens_of(value: Any) -> int:
    """Estimate how many tokens a value takes as it goes out."""
    return tokens_in(_as_sent(value))


def most_fitting(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to `most` that fits, where all smaller ones do too; 0 if none does."""
    return bisect_left(range(1, most + 1), True, key=lambda number: not fits(number))


def within(text: str, max_tokens: int) -> str:
    """Return the beginning of a text that fits, with a mark where it was cut."""
    if tokens_in(text) <= max_tokens:
        return text
    return text[: most_fitting(len(text), lambda end: tokens_in(text[:end] + "…") <= max_tokens)] + "…"


Weigh = Callable[[str], float]
"""Function that returns the share of the request that a text holds."""
GAP = "\n[…]\n"
LONGEST_PIECE = 600
"""Characters from which on a paragraph is taken apart at its sentences."""
LONGEST_CODE = 2_400
"""Characters from which on a block of code is taken apart at its lines."""
LONGEST_LINE = 800
"""Tokens from which on what has no end, such as a minified file, is taken apart between its words or wherever."""
_PARAGRAPHS = re.compile(r"\n\s*\n|\n(?=(?:[-*#>|]|\d+[.)])\s)")
_SENTENCES = re.compile(r"(?<=[.!?다요])\s+(?=\S)|(?<=[。！？])|\n")
_FENCE = re.compile(r"(```.*?```)", re.DOTALL)


class Shortened(NamedTuple):
    """A text as it is shown; `full_length` in characters where it is not all there, else 0."""

    text: str
    full_length: int = 0


def shortened(text: str, max_tokens: int, weigh: Weigh) -> Shortened:
    """The text if it fits, else its beginning, its best passages and its end, in order, with marks between them."""
    if tokens_in(text) <= max_tokens:
        return Shortened(text)
    pieces = _pieces(text)
    chosen = _chosen(pieces, max_tokens - tokens_in(GAP), weigh)
    if not chosen:
        return Shortened(within(text, max_tokens), len(text))
    return Shortened(_joined(pieces, chosen), len(text))


def _pieces(text: str) -> list[str]:
    """Blocks of code whole, else paragraphs and list items; what is still long, sentence by sentence."""
    pieces: list[str] = []
    for block in _FENCE.split(text):
        if block.startswith("```"):
            pieces += [block] if len(block) <= LONGEST_CODE else block.split("\n")
            continue
        for paragraph in _PARAGRAPHS.split(block):
            if len(paragraph) > LONGEST_PIECE:
                pieces += _SENTENCES.split(paragraph)
            else:
                pieces.append(paragraph)
    return [part for piece in pieces if piece.strip() for part in _parts_of(piece.strip("\n"))]


def _parts_of(piece: str) -> Iterator[str]:
    if tokens_in(piece) <= LONGEST_LINE:
        yield piece
        return
    at = 0
    while at < len(piece):
        end = at + LONGEST_PIECE
        space = piece.rfind(" ", at, end) + 1 if end < len(piece) else 0
        end = space if space > at else end
        yield piece[at:end]
        at = end


def _chosen(pieces: Sequence[str], max_tokens: int, weigh: Weigh) -> list[int]:
    """The first piece says what the text is; then the best for their length; then what stands around these."""
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


def _joined(pieces: Sequence[str], chosen: Sequence[int]) -> str:
    text = "" if chosen[0] == 0 else GAP.lstrip("\n")
    for before, at in zip([None, *chosen], chosen, strict=False):
        if before is not None:
            text += "\n" if at == before + 1 else GAP
        text += pieces[at]
    return text if chosen[-1] == len(pieces) - 1 else text + GAP.rstrip("\n")


OUR_SHARE = 0.85  # of a client's room; the envelope takes some, and marks and line ends are escaped


def tokens_for(room: Room | None, wanted: int) -> int:
    """Return the wanted tokens, or as many as the client lets through."""
    return wanted if room is None else min(wanted, int(room.size * OUR_SHARE) // 4)
