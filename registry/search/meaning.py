"""Find the messages most similar to a request in the embedding model. Imports numpy.

Vectors are stored as int8: a quarter of the space, for less than a thousandth of similarity. A process holds only their
signs, which select the vectors that are read from the database and compared in full.
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
from registry.search.retrieval import ASSUMED
from registry.search.scope import Scope, channels_in, is_of_channels, message_conditions, time_conditions
from registry.search.vectors import EmbeddingModel, is_caught_up, vectors_after, vectors_of, vectors_where
from registry.storage.conditions import given_conditions, is_none_of
from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import index_of
from registry.storage.safety.visibility import access_of
from registry.storage.tables import conversation
from registry.text.ranking.scores import Candidate
from registry.text.ranking.similar import SimilarMessages, deviations_by_chance

COURTESY = 2  # tokens; so short a message ("ok", "감사") is similar to whatever has no sense
MOST = 100  # similar messages that are returned
FEW_VECTORS = 5_000  # a scope with no more messages is read from the database, whatever the process holds
LOOKED_AT_IN_FULL = 500  # messages, those whose signs agree most, that are compared by the vectors themselves
FIRST_PICK = 1_000  # of those that agree most, sorted first; more only if too few of them are in scope
SAMPLE = 2_000  # vectors that give the mean and deviation of all
PORTION = 20_000  # vectors read at once

Packed = Sequence[Sequence[Any]]  # messages' numbers, each with the packed vectors of its passages
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]


def pack(vector: Sequence[float]) -> bytes:
    """Return a vector's direction, one byte a dimension; empty for one without direction."""
    floats = np.asarray(vector, np.float32)
    largest = float(np.abs(floats).max(initial=0.0))
    return np.round(floats * (127 / largest)).astype(np.int8).tobytes() if largest > 0 else b""


def similarity(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors; 0 if one of them has no direction."""
    a, b = np.asarray(one, np.float32), np.asarray(other, np.float32)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0


def hold_vectors(tx: ReadTransaction, model: EmbeddingModel) -> None:
    """Read in advance what the first search of everything needs."""
    _held.signs(tx, model)


def similar_messages(
    tx: ReadTransaction, scope: Scope, model: EmbeddingModel, vector: Sequence[float]
) -> SimilarMessages:
    """Compare the messages in scope with a request's vector; not while many of the registry have no vector yet.

    A narrow scope's vectors are all compared, of a wide one those whose signs agree most with the request's.
    """
    if not is_caught_up(tx, model):
        return SimilarMessages(note="the messages are still being embedded")
    direction = np.asarray(vector, np.float32)
    direction = direction / np.linalg.norm(direction)
    few = _few(tx, model, scope)
    if few is None:
        signs = _held.signs(tx, model)
        nearest = _in_scope(tx, signs.ordered(direction), scope, LOOKED_AT_IN_FULL)
        values = _best_passages(vectors_of(tx, model, [one.number for one in nearest]), model, direction)
        count, usual = signs.count, signs.sample @ direction
    else:
        values = _best_passages(few, model, direction)
        nearest = _in_scope(tx, values, scope, LOOKED_AT_IN_FULL)
        count, usual = len(values), np.array(list(values.values()), np.float32)
    mean, deviation = _mean_and_deviation(usual, model)
    above = [one for one in nearest if values.get(one.number, mean) > mean]
    above.sort(key=lambda one: (-values[one.number], -one.number))
    best = above[:MOST]
    return SimilarMessages(
        model=model.name,
        similarities={one.number: round(values[one.number], 4) for one in best},
        candidates={one.number: one for one in best},
        background=mean,
        deviation=deviation,
        by_chance=deviations_by_chance(count + ASSUMED),
        vectors=count if access_of(tx) is None else len(best),  # how many others have is not told
    )


def _best_passages(vectors: Packed, model: EmbeddingModel, direction: Floats) -> dict[int, float]:
    """Return, by message, the largest similarity of its passages; the most similar and newest first."""
    if not vectors:
        return {}
    messages, rows = _unpacked(vectors, model.dimensions)
    values = rows @ direction
    order = np.lexsort((-messages, -values))
    best: dict[int, float] = {}
    for number, value in zip(messages[order].tolist(), values[order].tolist(), strict=True):
        best.setdefault(number, value)
    return best


def _mean_and_deviation(values: Floats, model: EmbeddingModel) -> tuple[float, float]:
    """Return those of the similarities together with `ASSUMED` more between unrelated texts: all of a few messages may
    be about the request."""
    all_of_them = len(values) + ASSUMED
    mean = (float(values.sum()) + ASSUMED * model.background) / all_of_them
    squares = float(((values - mean) ** 2).sum()) + ASSUMED * (model.spread**2 + (model.background - mean) ** 2)
    return mean, (squares / all_of_them) ** 0.5


def _few(tx: ReadTransaction, model: EmbeddingModel, scope: Scope) -> Packed | None:
    """Return the vectors of a narrow scope; None if there are many, or the scope is everything."""
    conditions = [*_conditions_on_channel(scope), *time_conditions(scope)]
    if not conditions and access_of(tx) is None:
        return None
    found = vectors_where(tx, model, conditions, FEW_VECTORS + 1)
    return found if len(found) <= FEW_VECTORS else None


def _conditions_on_channel(scope: Scope) -> list[ColumnElement[bool]]:
    conditions = given_conditions((eq, conversation.c.channel_number, scope.channel_number))
    if is_of_channels(scope):
        conditions.append(conversation.c.channel_number.in_(channels_in(scope)))
    return conditions


def _conditions(scope: Scope) -> list[ColumnElement[bool]]:
    excluded = given_conditions((is_none_of, conversation.c.channel_number, scope.exclude_numbers or None))
    of_message = *message_conditions(scope), conversation.c.length > COURTESY
    return [*_conditions_on_channel(scope), *excluded, *of_message]


def _in_scope(tx: ReadTransaction, numbers: Iterable[int], scope: Scope, most: int) -> list[Candidate]:
    """Return the first of these messages that are in scope, read in growing portions until there are enough."""
    index, conditions, found = index_of(tx), _conditions(scope), list[Candidate]()
    unwanted = set(index.holders(tx, [scope.without])) if scope.without else set[int]()
    ordered = (number for number in numbers if number not in unwanted)
    portion = most
    while len(found) < most and (part := list(islice(ordered, portion))):
        rows = {row[0]: row for row in index.messages(tx, part, conditions)}
        found += [candidate_of(rows[number]) for number in part if number in rows]
        portion *= 4
    return found[:most]


@dataclass(frozen=True, slots=True)
class _Signs:
    """The signs of all vectors of a model, relative to their mean (`centre`).

    `columns` (64 dimensions of every vector in a row) are compared by counting the bits that differ: a tenth of the
    time and an eighth of the memory of the vectors. `messages` are the numbers that the positions belong to.
    """

    messages: Numbers
    columns: NDArray[np.uint64]
    centre: Floats
    sample: Floats

    @property
    def count(self) -> int:
        return len(self.messages)

    def ordered(self, direction: Floats) -> Iterator[int]:
        """Yield all messages, those that agree most and the newest first."""
        asked = _sign_columns((direction - self.centre)[None, :])[:, 0]
        differing = np.zeros(self.count, np.uint16)
        for column, wanted in zip(self.columns, asked, strict=True):
            differing += np.bitwise_count(column ^ wanted)
        given = set[int]()
        size = FIRST_PICK
        while len(given) < self.count:
            part = np.argpartition(differing, size)[:size] if size < self.count else np.arange(self.count)
            ordered = self.messages[part[np.lexsort((-self.messages[part], differing[part]))]].tolist()
            new = [number for number in dict.fromkeys(ordered) if number not in given]
            yield from new
            given.update(new)
            if size >= self.count:
                return
            size *= 8


def _sign_columns(rows: Floats) -> NDArray[np.uint64]:
    """Return the signs of rows of numbers, 64 to an integer, as columns."""
    bits = np.packbits(rows > 0, axis=1)
    room = np.zeros((len(rows), -(-bits.shape[1] // 8) * 8), np.uint8)
    room[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(room.view(np.uint64).T)


def _unpacked(vectors: Packed, dimensions: int) -> tuple[Numbers, Floats]:
    """Return the messages of all passages, and their vectors as rows of length 1."""
    rows = np.frombuffer(b"".join(packed for _, packed in vectors), np.int8).reshape(-1, dimensions).astype(np.float32)
    passages = [len(packed) // dimensions for _, packed in vectors]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.repeat(np.array([number for number, _ in vectors], np.int64), passages), rows


class _Held:
    """The signs that this process holds, of one model for each database: read once, then only new ones.

    They are of all messages; the results are read with the access of the asking token.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: WeakKeyDictionary[Pool, tuple[int, int, _Signs]] = WeakKeyDictionary()

    def signs(self, tx: ReadTransaction, model: EmbeddingModel) -> _Signs:
        """Return the signs of all vectors of a model as this transaction sees them, or newer."""
        with self._lock:
            number, last, held = self._known.get(tx.engine.pool, (0, 0, None))
            if held is None or number != model.number:
                last, held = 0, None
            last, held = _caught_up(tx, model, last, held)
            self._known[tx.engine.pool] = model.number, last, held
            return held


def _caught_up(tx: ReadTransaction, model: EmbeddingModel, last: int, held: _Signs | None) -> tuple[int, _Signs]:
    """Add the signs of the vectors above `last`; return the number of the last one, too.

    While there are few, every new one changes the mean, so all are read again.
    """
    end, found = vectors_after(tx, model, last, PORTION)
    if held and held.count < SAMPLE and found:
        held, last = None, 0
        end, found = vectors_after(tx, model, last, PORTION)
    while end > last:
        held, last = _joined(held, found, model), end
        end, found = vectors_after(tx, model, last, PORTION)
    return last, held or _no_signs(model)


def _joined(held: _Signs | None, found: Packed, model: EmbeddingModel) -> _Signs | None:
    if not found:
        return held
    messages, rows = _unpacked(found, model.dimensions)
    sample = held.sample if held else rows[:SAMPLE]
    centre = held.centre if held else sample.mean(axis=0)
    columns = _sign_columns(rows - centre)
    if held:
        messages = np.concatenate([held.messages, messages])
        columns = np.concatenate([held.columns, columns], axis=1)
    return _Signs(messages, columns, centre, sample)


def _no_signs(model: EmbeddingModel) -> _Signs:
    nothing = np.zeros((0, model.dimensions), np.float32)
    return _Signs(np.empty(0, np.int64), _sign_columns(nothing), np.zeros(model.dimensions, np.float32), nothing)


_held = _Held()
