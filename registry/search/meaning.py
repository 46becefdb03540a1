"""Find the messages most similar to a request in the embedding model. Imports numpy.

Vectors are stored as int8, which takes a quarter of the space and changes a similarity by less than 0.001. A process
caches only their signs; these select the vectors that are read from the database and compared in full.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import eq
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Pool

from registry.search.candidates import candidate_of
from registry.search.retrieval import ASSUMED_MESSAGES
from registry.search.scope import Scope, has_channel_conditions, message_conditions, select_channels, time_conditions
from registry.search.vectors import EmbeddingModel, is_embedding_complete, vectors_after, vectors_of, vectors_where
from registry.storage.conditions import given_conditions, is_none_of
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import index_of
from registry.storage.safety.visibility import access_of
from registry.storage.tables import conversation
from registry.text.ranking.scores import Candidate
from registry.text.ranking.similar import SimilarMessages, deviations_by_chance

MAX_TRIVIAL_TOKENS = 2  # so short a message ("ok", "감사") is similar to any meaningless text
MAX_SIMILAR = 100  # messages that are returned
SMALL_SCOPE_VECTORS = 5_000  # a scope with at most this many vectors is read from the database, not from the cache
FULLY_COMPARED = 500  # messages with the most equal signs, whose full vectors are compared
FIRST_BATCH = 1_000  # messages that are sorted first; more only if too few of them are in scope
SAMPLE = 2_000  # vectors from which mean and deviation are estimated
READ_BATCH = 20_000  # vectors read at once

Packed = Sequence[Sequence[Any]]  # (message number, packed vectors of its passages)
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]


def pack(vector: Sequence[float]) -> bytes:
    """Return a vector scaled to one byte per dimension; empty for a zero vector."""
    floats = np.asarray(vector, np.float32)
    largest = float(np.abs(floats).max(initial=0.0))
    return np.round(floats * (127 / largest)).astype(np.int8).tobytes() if largest > 0 else b""


def similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine similarity of two vectors; 0 if one of them is zero."""
    a, b = np.asarray(one, np.float32), np.asarray(other, np.float32)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0


def preload_vectors(tx: ReadTransaction, model: EmbeddingModel) -> None:
    """Fill the cache of signs before the first search."""
    _sign_cache.signs(tx, model)


def similar_messages(
    tx: ReadTransaction, scope: Scope, model: EmbeddingModel, vector: Sequence[float]
) -> SimilarMessages:
    """Return the messages in scope most similar to a request's vector; none while many messages have no vector yet.

    Compare all vectors of a small scope, or in a large one those with the most signs equal to the request's.
    """
    if not is_embedding_complete(tx, model):
        return SimilarMessages(note="the messages are still being embedded")
    direction = np.asarray(vector, np.float32)
    direction = direction / np.linalg.norm(direction)
    small_scope = _vectors_of_small_scope(tx, model, scope)
    if small_scope is None:
        signs = _sign_cache.signs(tx, model)
        nearest = _first_in_scope(tx, signs.ordered(direction), scope)
        values = _best_passages(vectors_of(tx, model, [one.number for one in nearest]), model, direction)
        count, sample = signs.count, signs.sample @ direction
    else:
        values = _best_passages(small_scope, model, direction)
        nearest = _first_in_scope(tx, values, scope)
        count, sample = len(values), np.array(list(values.values()), np.float32)
    mean, deviation = _mean_and_deviation(sample, model)
    above = [one for one in nearest if values.get(one.number, mean) > mean]
    above.sort(key=lambda one: (-values[one.number], -one.number))
    best = above[:MAX_SIMILAR]
    return SimilarMessages(
        model=model.name,
        similarities={one.number: round(values[one.number], 4) for one in best},
        candidates={one.number: one for one in best},
        background=mean,
        deviation=deviation,
        chance_deviations=deviations_by_chance(count + ASSUMED_MESSAGES),
        vectors=count if access_of(tx) is None else len(best),  # does not reveal how many messages other users have
    )


def _best_passages(vectors: Packed, model: EmbeddingModel, direction: Floats) -> dict[int, float]:
    """Return the largest similarity of each message's passages; the most similar and newest message first."""
    if not vectors:
        return {}
    messages, rows = _unpack(vectors, model.dimensions)
    values = rows @ direction
    order = np.lexsort((-messages, -values))
    best: dict[int, float] = {}
    for number, value in zip(messages[order].tolist(), values[order].tolist(), strict=True):
        best.setdefault(number, value)
    return best


def _mean_and_deviation(values: Floats, model: EmbeddingModel) -> tuple[float, float]:
    """Return mean and deviation of the similarities plus `ASSUMED_MESSAGES` unrelated ones.

    Without these, a small scope in which all messages are about the request would have no background.
    """
    all_of_them = len(values) + ASSUMED_MESSAGES
    mean = (float(values.sum()) + ASSUMED_MESSAGES * model.background) / all_of_them
    squares = float(((values - mean) ** 2).sum()) + ASSUMED_MESSAGES * (
        model.spread**2 + (model.background - mean) ** 2
    )
    return mean, (squares / all_of_them) ** 0.5


def _vectors_of_small_scope(tx: ReadTransaction, model: EmbeddingModel, scope: Scope) -> Packed | None:
    """Return the vectors of a small scope; None if there are many, or the scope has no filter."""
    conditions = [*_channel_conditions(scope), *time_conditions(scope)]
    if not conditions and access_of(tx) is None:
        return None
    found = vectors_where(tx, model, conditions, SMALL_SCOPE_VECTORS + 1)
    return found if len(found) <= SMALL_SCOPE_VECTORS else None


def _channel_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    conditions = given_conditions((eq, conversation.c.channel_number, scope.channel_number))
    if has_channel_conditions(scope):
        conditions.append(conversation.c.channel_number.in_(select_channels(scope)))
    return conditions


def _message_conditions(scope: Scope) -> list[ColumnElement[bool]]:
    excluded = given_conditions((is_none_of, conversation.c.channel_number, scope.exclude_numbers or None))
    of_message = *message_conditions(scope), conversation.c.length > MAX_TRIVIAL_TOKENS
    return [*_channel_conditions(scope), *excluded, *of_message]


def _first_in_scope(tx: ReadTransaction, numbers: Iterable[int], scope: Scope) -> list[Candidate]:
    """Return the first `FULLY_COMPARED` of these messages that are in scope; read them in growing batches."""
    index, conditions, found = index_of(tx), _message_conditions(scope), list[Candidate]()
    unwanted = set(index.holders(tx, [scope.excluded_tokens])) if scope.excluded_tokens else set[int]()
    ordered = (number for number in numbers if number not in unwanted)
    portion = FULLY_COMPARED
    while len(found) < FULLY_COMPARED and (part := list(islice(ordered, portion))):
        rows = {row[0]: row for row in index.messages(tx, part, conditions)}
        found += [candidate_of(rows[number]) for number in part if number in rows]
        portion *= 4
    return found[:FULLY_COMPARED]


@dataclass(frozen=True, slots=True)
class _Signs:
    """The signs of all vectors of a model, relative to their mean (`centre`).

    A row of `columns` has 64 dimensions of every vector. Counting the bits that differ takes a tenth of the time and an
    eighth of the memory of comparing vectors. `messages` are the message numbers of the positions.
    """

    messages: Numbers
    columns: NDArray[np.uint64]
    centre: Floats
    sample: Floats

    @property
    def count(self) -> int:
        return len(self.messages)

    def ordered(self, direction: Floats) -> Iterator[int]:
        """Yield all messages, those with the most equal signs first, then the newest."""
        query_columns = _sign_columns((direction - self.centre)[None, :])[:, 0]
        differing = np.zeros(self.count, np.uint16)
        for column, wanted in zip(self.columns, query_columns, strict=True):
            differing += np.bitwise_count(column ^ wanted)
        yielded = set[int]()
        size = FIRST_BATCH
        while len(yielded) < self.count:
            part = np.argpartition(differing, size)[:size] if size < self.count else np.arange(self.count)
            ordered = self.messages[part[np.lexsort((-self.messages[part], differing[part]))]].tolist()
            new = [number for number in dict.fromkeys(ordered) if number not in yielded]
            yield from new
            yielded.update(new)
            if size >= self.count:
                return
            size *= 8


def _sign_columns(rows: Floats) -> NDArray[np.uint64]:
    """Return the signs of rows of numbers as columns of 64-bit integers."""
    bits = np.packbits(rows > 0, axis=1)
    padded = np.zeros((len(rows), -(-bits.shape[1] // 8) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _unpack(vectors: Packed, dimensions: int) -> tuple[Numbers, Floats]:
    """Return the message number of each passage, and their vectors as rows of length 1."""
    rows = np.frombuffer(b"".join(packed for _, packed in vectors), np.int8).reshape(-1, dimensions).astype(np.float32)
    passages = [len(packed) // dimensions for _, packed in vectors]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.repeat(np.array([number for number, _ in vectors], np.int64), passages), rows


class _SignCache:
    """Cache of the signs of one model for each database, extended as vectors are added.

    It has the signs of all messages; results are read with the access of the request's token.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: WeakKeyDictionary[Pool, tuple[int, int, _Signs]] = WeakKeyDictionary()

    def signs(self, tx: ReadTransaction, model: EmbeddingModel) -> _Signs:
        """Return the signs of all vectors of a model as this transaction sees them, or newer."""
        with self._lock:
            number, last, cached = self._known.get(tx.engine.pool, (0, 0, _empty_signs(model)))
            if number != model.number:
                last, cached = 0, _empty_signs(model)
            last, cached = _update_signs(tx, model, last, cached)
            self._known[tx.engine.pool] = model.number, last, cached
            return cached


def _update_signs(tx: ReadTransaction, model: EmbeddingModel, last: int, signs: _Signs) -> tuple[int, _Signs]:
    """Add the signs of the vectors after number `last`; return the number of the last one, and the signs.

    While there are few, each new vector changes the mean, so all are read again.
    """
    end, found = vectors_after(tx, model, last, READ_BATCH)
    if found and 0 < signs.count < SAMPLE:
        signs, last = _empty_signs(model), 0
        end, found = vectors_after(tx, model, last, READ_BATCH)
    while end > last:
        signs, last = _append_signs(signs, found, model), end
        end, found = vectors_after(tx, model, last, READ_BATCH)
    return last, signs


def _append_signs(signs: _Signs, found: Packed, model: EmbeddingModel) -> _Signs:
    if not found:
        return signs
    messages, rows = _unpack(found, model.dimensions)
    sample = signs.sample if signs.count else rows[:SAMPLE]
    centre = signs.centre if signs.count else sample.mean(axis=0)
    columns = np.concatenate([signs.columns, _sign_columns(rows - centre)], axis=1)
    return _Signs(np.concatenate([signs.messages, messages]), columns, centre, sample)


def _empty_signs(model: EmbeddingModel) -> _Signs:
    nothing = np.zeros((0, model.dimensions), np.float32)
    return _Signs(np.empty(0, np.int64), _sign_columns(nothing), np.zeros(model.dimensions, np.float32), nothing)


_sign_cache = _SignCache()
