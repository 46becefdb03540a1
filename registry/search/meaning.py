"""The messages most similar to a request in meaning: every vector in scope is compared. Needs numpy (extra `embed`).

Vectors are kept as int8: a quarter of the room, for less than a thousandth of similarity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import eq
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Engine

from registry.search.candidates import candidate_of
from registry.search.retrieval import SearchResult, post_filtered, ranked_by
from registry.search.scope import Scope, channels_in, is_of_channels, message_conditions, time_conditions
from registry.search.vectors import EmbeddingModel, vectors_after, vectors_where
from registry.storage.conditions import given_conditions
from registry.storage.database import ReadTransaction
from registry.storage.engines import index_of
from registry.storage.tables import conversation
from registry.text.post_filter import carried, left_out, post_filter
from registry.text.ranking import Candidate
from registry.text.similar import SimilarMessages
from registry.text.syntax import Search

MEANING = 0.5
"""What the most similar message gains, as a share of the best score by words."""
MOST = 100
"""How many messages are similar at most."""
SIGMAS = 4.0
"""A message is similar if its similarity lies so many standard deviations above that of unrelated texts."""
LARGEST = 256 * 2**20
"""Bytes of vectors that a process holds and compares; of more, the newest."""
FEW_VECTORS = 5_000
"""A scope with no more messages than these is read from the database, whatever the process holds."""
_CHUNK = 1_024

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]


def pack(vector: Sequence[float]) -> bytes:
    """A vector's direction, one byte a dimension; empty for one without direction."""
    floats = np.asarray(vector, np.float32)
    largest = float(np.abs(floats).max(initial=0.0))
    return np.round(floats * (127 / largest)).astype(np.int8).tobytes() if largest > 0 else b""


def similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """The cosine of the angle between two vectors; 0 if one of them has no direction."""
    a, b = np.asarray(one, np.float32), np.asarray(other, np.float32)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0


@dataclass(frozen=True, slots=True)
class _Block:
    """Vectors as rows, the messages they belong to, and their lengths."""

    messages: Numbers
    rows: NDArray[np.int8]
    lengths: Floats

    def similarities(self, direction: Floats) -> Floats:
        """The cosine of every row to a vector of length 1. By einsum: a matrix product would start threads, which on
        a busy machine wait for each other twenty times as long as the work takes."""
        found = np.empty(len(self.rows), np.float32)
        room = np.empty((_CHUNK, len(direction)), np.float32)
        for at in range(0, len(self.rows), _CHUNK):
            part = self.rows[at : at + _CHUNK]
            np.copyto(room[: len(part)], part)
            np.einsum("ij,j->i", room[: len(part)], direction, out=found[at : at + _CHUNK])
        return found / self.lengths


def _block(vectors: Sequence[Sequence[Any]], dimensions: int) -> _Block:
    rows = np.frombuffer(b"".join(packed for _, packed in vectors), np.int8)
    rows = rows.reshape(-1, dimensions)
    lengths = np.empty(len(rows), np.float32)
    for at in range(0, len(rows), _CHUNK):
        lengths[at : at + _CHUNK] = np.linalg.norm(rows[at : at + _CHUNK].astype(np.float32), axis=1)
    return _Block(np.array([number for number, _ in vectors], np.int64), rows, lengths)


def with_meaning(
    tx: ReadTransaction,
    found: SearchResult,
    wanted: Search,
    scope: Scope,
    model: EmbeddingModel,
    vector: Sequence[float],
) -> SearchResult:
    """What was found by words with what is similar in meaning, in the same scope, phrases and exclusions holding.

    The most similar message gains as much as half of the best by words.
    """
    groups = [*scope.carrying, *carried(wanted)]
    narrowed = replace(scope, carrying=groups, without=[*scope.without, *left_out(wanted)])
    least = model.background + SIGMAS * model.spread
    messages, similarities, compared = _compared(tx, model, vector, narrowed, least)
    known = dict(zip(messages.tolist(), similarities.tolist(), strict=True))
    candidates = post_filtered(tx, post_filter(wanted), _in_scope(tx, list(known), narrowed))
    similar = SimilarMessages(
        model=model.name,
        similarities={candidate.number: round(known[candidate.number], 4) for candidate in candidates},
        least=least,
        background=model.background,
        vectors=compared,
    )
    own = {one.candidate.number: one.own for one in found.ranked}
    best = max(own.values(), default=1.0)
    for candidate in candidates:
        gained = MEANING * best * similar.share(candidate.number)
        own[candidate.number] = own.get(candidate.number, 0.0) + gained
    return replace(ranked_by(tx, found, own, scope), similar=similar)


def _compared(
    tx: ReadTransaction, model: EmbeddingModel, vector: Sequence[float], scope: Scope, least: float
) -> tuple[Numbers, Floats, int]:
    """The messages similar enough with their similarities, largest and newest first; and how many were compared."""
    direction = np.asarray(vector, np.float32)
    direction = direction / np.linalg.norm(direction)
    blocks = _few(tx, model, scope) or _held.blocks(tx, model)
    messages = np.concatenate([block.messages for block in blocks]) if blocks else np.empty(0, np.int64)
    found = [block.similarities(direction) for block in blocks]
    similarities = np.concatenate(found) if found else np.empty(0, np.float32)
    picked = np.flatnonzero(similarities >= least)
    picked = picked[np.lexsort((-messages[picked], -similarities[picked]))]
    return messages[picked], similarities[picked], len(messages)


def _few(tx: ReadTransaction, model: EmbeddingModel, scope: Scope) -> list[_Block] | None:
    """The vectors of a narrow scope; None if there are many, or the scope is all."""
    conditions = _indexed_conditions(scope)
    if not conditions:
        return None
    found = vectors_where(tx, model, conditions, FEW_VECTORS + 1)
    return [_block(found, model.dimensions)] if len(found) <= FEW_VECTORS else None


def _indexed_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    """What of a scope the tables' own indexes answer."""
    return [*_conditions_on_channel(scope), *time_conditions(scope)]


def _conditions_on_channel(scope: Scope) -> list[ColumnElement[bool]]:
    conditions = given_conditions((eq, conversation.c.channel_number, scope.channel_number))
    if is_of_channels(scope):
        conditions.append(conversation.c.channel_number.in_(channels_in(scope)))
    return conditions


def _conditions(scope: Scope) -> list[ColumnElement[bool]]:
    conditions = [*_conditions_on_channel(scope), *message_conditions(scope), conversation.c.length > 0]
    if scope.exclude_channel is not None:
        conditions.append(conversation.c.channel != scope.exclude_channel)
    return conditions


def _in_scope(tx: ReadTransaction, numbers: Sequence[int], scope: Scope) -> list[Candidate]:
    """Of these messages the first that are there and in scope, read in growing portions until there are enough."""
    index, conditions, found = index_of(tx), _conditions(scope), list[Candidate]()
    ordered = iter(_carrying(tx, numbers, scope))
    portion = 2 * MOST
    while len(found) < MOST and (part := list(islice(ordered, portion))):
        rows = {row[0]: row for row in index.messages(tx, part, conditions)}
        found += [candidate_of(rows[number]) for number in part if number in rows]
        portion *= 4
    return found[:MOST]


def _carrying(tx: ReadTransaction, numbers: Sequence[int], scope: Scope) -> Iterator[int]:
    """Those of the messages that carry the tokens that a scope asks for, and none of those it forbids."""
    index = index_of(tx)
    if scope.carrying:
        holders = set(index.holders(tx, scope.carrying, scope.without))
        return (number for number in numbers if number in holders)
    unwanted = set(index.holders(tx, [scope.without])) if scope.without else set()
    return (number for number in numbers if number not in unwanted)


class _Held:
    """The vectors that this process holds, of one model for each database, read once and then what is new."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: WeakKeyDictionary[Engine, tuple[int, int, list[_Block]]] = WeakKeyDictionary()

    def blocks(self, tx: ReadTransaction, model: EmbeddingModel) -> list[_Block]:
        """All vectors of a model as this transaction sees them, or newer; the newest as far as there is room."""
        with self._lock:
            number, last, blocks = self._known.get(tx.engine, (model.number, 0, []))
            if number != model.number:
                last, blocks = 0, []
            last, found = vectors_after(tx, model, last, LARGEST // model.dimensions)
            if found:
                blocks = _joined(blocks, _block(found, model.dimensions), LARGEST // model.dimensions)
            self._known[tx.engine] = model.number, last, blocks
            return blocks


_held = _Held()
_MOST_BLOCKS = 16


def _joined(blocks: list[_Block], new: _Block, most: int) -> list[_Block]:
    """The blocks with a new one; a message's older vector is no longer similar to anything."""
    for block in blocks:
        block.lengths[np.isin(block.messages, new.messages)] = np.nan
    joined = [new, *blocks]
    if len(joined) <= _MOST_BLOCKS and sum(len(block.messages) for block in joined) <= most * 1.1:
        return joined
    messages = np.concatenate([block.messages for block in joined])
    newest = np.argsort(-messages, kind="stable")[:most]
    rows = np.concatenate([block.rows for block in joined])[newest]
    return [_Block(messages[newest], rows, np.concatenate([block.lengths for block in joined])[newest])]
