"""The messages most similar to a request in meaning: every vector in scope is compared. Needs numpy (extra `embed`).

Vectors are kept as int8: a quarter of the room, for less than a thousandth of similarity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from registry.search.retrieval import ASSUMED, LOOKED_AT, SearchResult, post_filtered, ranked_by
from registry.search.scope import Scope, channels_in, is_of_channels, message_conditions, time_conditions
from registry.search.vectors import EmbeddingModel, vectors_after, vectors_where
from registry.storage.conditions import given_conditions
from registry.storage.database import ReadTransaction
from registry.storage.engines import index_of
from registry.storage.tables import conversation
from registry.text.post_filter import carried, left_out, post_filter
from registry.text.ranking import Candidate
from registry.text.similar import (
    CHANNEL_WEIGHT,
    MARGIN,
    SimilarMessages,
    deviations_by_chance,
    weight_of_meaning,
)
from registry.text.syntax import Search

MOST = 100
"""How many messages are similar at most."""
FIRST_PICK = 2_000
"""So many of the most similar are put in order first; more only if too few of them are in scope."""
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
    passages = [len(packed) // dimensions for _, packed in vectors]
    lengths = np.empty(len(rows), np.float32)
    for at in range(0, len(rows), _CHUNK):
        lengths[at : at + _CHUNK] = np.linalg.norm(rows[at : at + _CHUNK].astype(np.float32), axis=1)
    return _Block(np.repeat(np.array([number for number, _ in vectors], np.int64), passages), rows, lengths)


def with_meaning(
    tx: ReadTransaction,
    found: SearchResult,
    wanted: Search,
    scope: Scope,
    model: EmbeddingModel,
    vector: Sequence[float],
) -> SearchResult:
    """What was found by words with what is similar in meaning, in the same scope, phrases and exclusions holding.

    How much the most similar message and channel gain depends on how much of the request the words cover.
    """
    groups = [*scope.carrying, *carried(wanted)]
    narrowed = replace(scope, carrying=groups, without=[*scope.without, *left_out(wanted)])
    compared = _compared(tx, model, vector, narrowed)
    messages = _in_scope(tx, compared.ordered(), narrowed)
    candidates = post_filtered(tx, post_filter(wanted), messages)
    known = compared.similarities(candidates)
    covered = _covered(found)
    similar = SimilarMessages(
        model=model.name,
        similarities=known,
        least=compared.mean + compared.deviation * (deviations_by_chance(compared.count + ASSUMED) + MARGIN),
        background=compared.mean,
        vectors=compared.count,
        weight=weight_of_meaning(covered),
    )
    own = {one.candidate.number: one.own for one in found.ranked}
    best = max(own.values(), default=1.0)
    channels: dict[int, float] = {}
    for one in sorted(candidates, key=lambda one: -known[one.number]):
        gained = similar.share(one.number)
        own[one.number] = own.get(one.number, 0.0) + similar.weight * best * gained
        channels.setdefault(one.channel_id, CHANNEL_WEIGHT * (1.0 - covered) * gained)
    return ranked_by(tx, replace(found, similar=replace(similar, channels=channels)), own, scope)


def _covered(found: SearchResult) -> float:
    """The largest share of a wording that one of the best conversations holds."""
    best = [one.number for one in found.channels[:LOOKED_AT]]
    return min(1.0, max((each.covered for number in best for each in found.evidence(number)), default=0.0))


@dataclass(frozen=True, slots=True)
class _Compared:
    """The messages with their similarities; mean and deviation of all, with those of unrelated texts."""

    messages: Numbers
    values: Floats
    mean: float
    deviation: float

    @property
    def count(self) -> int:
        return len(self.messages)

    def ordered(self) -> Iterator[int]:
        """The messages above the mean, the most similar and newest first."""
        above = np.flatnonzero(self.values > self.mean)
        if len(above) > FIRST_PICK:
            above = above[np.argpartition(-self.values[above], FIRST_PICK)]
        for part in (above[:FIRST_PICK], above[FIRST_PICK:]):
            yield from self.messages[part[np.lexsort((-self.messages[part], -self.values[part]))]].tolist()

    def similarities(self, candidates: Sequence[Candidate]) -> dict[int, float]:
        """By number, largest first."""
        wanted = {one.number for one in candidates}
        found = np.isin(self.messages, np.array(sorted(wanted), np.int64))
        pairs = zip(self.messages[found].tolist(), self.values[found].tolist(), strict=True)
        return dict(
            sorted(((number, round(value, 4)) for number, value in pairs), key=lambda pair: (-pair[1], -pair[0]))
        )


def _compared(tx: ReadTransaction, model: EmbeddingModel, vector: Sequence[float], scope: Scope) -> _Compared:
    """Every message's similarity, the best of its passages'."""
    direction = np.asarray(vector, np.float32)
    direction = direction / np.linalg.norm(direction)
    blocks = _few(tx, model, scope) or _held.blocks(tx, model)
    messages = np.concatenate([block.messages for block in blocks]) if blocks else np.empty(0, np.int64)
    found = [block.similarities(direction) for block in blocks]
    values = np.concatenate(found) if found else np.empty(0, np.float32)
    is_current = ~np.isnan(values)
    messages, values = _best_passages(messages[is_current], values[is_current])
    return _Compared(messages, values, *_mean_and_deviation(values, model))


def _best_passages(messages: Numbers, values: Floats) -> tuple[Numbers, Floats]:
    """Each message once, with the largest of its values."""
    order = np.lexsort((-values, messages))
    messages, values = messages[order], values[order]
    is_first = np.ones(len(messages), bool)
    is_first[1:] = messages[1:] != messages[:-1]
    return messages[is_first], values[is_first]


def _mean_and_deviation(values: Floats, model: EmbeddingModel) -> tuple[float, float]:
    """Of these similarities, and of `ASSUMED` more between texts that have nothing to do with each other: of a few
    messages alone, all of which may be about the request, they would say nothing."""
    all_of_them = len(values) + ASSUMED
    mean = (float(values.sum()) + ASSUMED * model.background) / all_of_them
    squares = float(((values - mean) ** 2).sum()) + ASSUMED * (model.spread**2 + (model.background - mean) ** 2)
    return mean, (squares / all_of_them) ** 0.5


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


def _in_scope(tx: ReadTransaction, numbers: Iterable[int], scope: Scope) -> list[Candidate]:
    """Of these messages the first that are there and in scope, read in growing portions until there are enough."""
    index, conditions, found = index_of(tx), _conditions(scope), list[Candidate]()
    ordered = iter(_carrying(tx, numbers, scope))
    portion = 2 * MOST
    while len(found) < MOST and (part := list(islice(ordered, portion))):
        rows = {row[0]: row for row in index.messages(tx, part, conditions)}
        found += [candidate_of(rows[number]) for number in part if number in rows]
        portion *= 4
    return found[:MOST]


def _carrying(tx: ReadTransaction, numbers: Iterable[int], scope: Scope) -> Iterator[int]:
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
