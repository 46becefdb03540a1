"""Store the vectors of messages by embedding model. Vectors are optional, and derived from the messages.

Deleting a message permanently deletes its vector; a softly deleted message keeps it, but no search returns it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Engine, and_, bindparam, delete, exists, func, insert, or_, select, update

from registry.domain import now
from registry.storage.conversations.messages import MessageRow
from registry.storage.database import ReadTransaction, WriteTransaction, acquire_lock
from registry.storage.safety.visibility import ask_all
from registry.storage.tables import EMBEDDABLE, channel, conversation, embedding_model, message_vector


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model with stored vectors. `background`, `spread`: mean and standard deviation of its similarities between
    unrelated texts."""

    number: int
    name: str
    dimensions: int
    calibration: int
    background: float
    spread: float


class Vector(NamedTuple):
    """The packed vectors of a message's passages, concatenated; `digest` is the digest of its text."""

    number: int
    digest: bytes
    packed: bytes


def find_model(tx: ReadTransaction, name: str) -> EmbeddingModel | None:
    columns = embedding_model.c["number", "name", "dimensions", "calibration", "background", "spread"]
    row = tx.execute(select(*columns).where(embedding_model.c.name == name)).first()
    return EmbeddingModel(*row) if row else None


def save_model(
    tx: WriteTransaction, name: str, dimensions: int, calibration: int, background: float, spread: float
) -> EmbeddingModel:
    """Store a model's properties; delete its vectors if its dimensions changed."""
    values = {"calibration": calibration, "background": background, "spread": spread}
    known = find_model(tx, name)
    if known and known.dimensions == dimensions:
        tx.execute(update(embedding_model).where(embedding_model.c.number == known.number).values(**values))
    else:
        tx.execute(delete(embedding_model).where(embedding_model.c.name == name))  # with its vectors
        tx.execute(insert(embedding_model).values(name=name, dimensions=dimensions, **values))
    saved = find_model(tx, name)
    assert saved is not None  # noqa: S101, written above
    return saved


def delete_other_models(tx: WriteTransaction, name: str) -> None:
    tx.execute(delete(embedding_model).where(embedding_model.c.name != name))


def list_unembedded(tx: ReadTransaction, model: EmbeddingModel, above: int, limit: int) -> Sequence[MessageRow]:
    """Return messages with a larger number and without a current vector, with their titles, the newest first."""
    query = select(conversation.c.number, conversation.c.digest, conversation.c.text, channel.c.title)
    query = query.join(channel, channel.c.number == conversation.c.channel_number)
    lacking = _lacks_vector(model, message_vector.c.digest == conversation.c.digest)
    query = query.where(conversation.c.number > above, *lacking).order_by(conversation.c.number.desc())
    return tx.execute(query.limit(limit)).all()


def count_unembedded(tx: ReadTransaction, model: EmbeddingModel) -> int:
    """Count the messages without a current vector."""
    lacking = _lacks_vector(model, message_vector.c.digest == conversation.c.digest)
    return tx.execute(select(func.count()).select_from(conversation).where(*lacking)).scalar_one()


_embedded_up_to: WeakKeyDictionary[Engine, dict[int, int]] = WeakKeyDictionary()


def is_embedding_complete(tx: ReadTransaction, model: EmbeddingModel) -> bool:
    """Return True if all messages have vectors, except a few new ones (at most 64, and 5 %).

    A vector of an earlier text or title counts too. Each process checks all messages once, then only newer ones.
    """
    checked = _embedded_up_to.setdefault(tx.engine, {})
    newest = newest_message_number(tx)
    few = min(64, newest // 20)
    lacking = select(conversation.c.number).where(
        conversation.c.number > checked.get(model.number, 0), *_lacks_vector(model)
    )
    if len(ask_all(tx, lacking.limit(few + 1)).all()) > few:
        return False
    checked[model.number] = max(newest - few, checked.get(model.number, 0))
    return True


def newest_message_number(tx: ReadTransaction) -> int:
    """Return the number of the newest message, 0 if there is none."""
    newest: int = ask_all(tx, select(func.coalesce(func.max(conversation.c.number), 0))).scalar_one()
    return newest


def _lacks_vector(model: EmbeddingModel, *conditions: ColumnElement[bool]) -> Sequence[ColumnElement[bool]]:
    """Return the conditions of a message that has no vector of the model that meets these conditions."""
    is_present = and_(
        message_vector.c.message_number == conversation.c.number,
        message_vector.c.model_number == model.number,
        *conditions,
    )
    return (*EMBEDDABLE, ~exists().where(is_present))


def save_vectors(tx: WriteTransaction, model: EmbeddingModel, vectors: Sequence[Vector]) -> None:
    """Store vectors, replacing older ones; drop those of messages that were deleted or changed meanwhile."""
    acquire_lock(tx, "vectors")  # commit in the order of numbers, or a reader of `vectors_after` misses some
    query = select(conversation.c.number, conversation.c.digest)
    query = query.where(conversation.c.number.in_([vector.number for vector in vectors]))
    present = {row.number: row for row in tx.execute(query.with_for_update(read=True, key_share=True))}
    current = [one for one in vectors if one.number in present and bytes(present[one.number].digest) == one.digest]
    if not current or not _is_model_stored(tx, model):
        return
    old = delete(message_vector).where(
        message_vector.c.model_number == model.number, message_vector.c.message_number == bindparam("of")
    )
    tx.execute(old, [{"of": vector.number} for vector in current])
    tx.execute(
        insert(message_vector),
        [
            {
                "message_number": vector.number,
                "model_number": model.number,
                "digest": vector.digest,
                "vector": vector.packed,
            }
            for vector in current
        ],
    )


def _is_model_stored(tx: ReadTransaction, model: EmbeddingModel) -> bool:
    """Return False if another process deleted the model."""
    return tx.execute(select(1).where(embedding_model.c.number == model.number)).first() is not None


def claim_embedding(
    tx: WriteTransaction, model: EmbeddingModel, holder: str, until: datetime, *, even_if_taken: bool = False
) -> bool:
    """Lease embedding to the process `holder` until then; return False if another process has the lease."""
    claim = update(embedding_model).where(embedding_model.c.number == model.number)
    if not even_if_taken:
        holder_is_gone = or_(embedding_model.c.held_until.is_(None), embedding_model.c.held_until < now())
        claim = claim.where(or_(embedding_model.c.holder == holder, holder_is_gone))
    return bool(tx.execute(claim.values(holder=holder, held_until=until)).rowcount)


def vectors_after(
    tx: ReadTransaction, model: EmbeddingModel, last: int, most: int
) -> tuple[int, Sequence[Sequence[Any]]]:
    """Return the number of the last vector of the next batch after `last`, and the batch (message number, packed)."""
    vector = message_vector.c
    query = select(vector.number, vector.message_number, vector.vector)
    query = query.where(vector.model_number == model.number, vector.number > last).order_by(vector.number).limit(most)
    rows = tx.execute(query).all()
    return rows[-1][0] if rows else last, _valid_vectors((row[1:] for row in rows), model)


def vectors_of(tx: ReadTransaction, model: EmbeddingModel, messages: Sequence[int]) -> Sequence[Sequence[Any]]:
    """Return the vectors (message number, packed) of some messages."""
    vector = message_vector.c
    found: list[Sequence[Any]] = []
    for start in range(0, len(messages), _CHUNK):
        here = vector.message_number.in_(messages[start : start + _CHUNK])
        query = select(vector.message_number, vector.vector).where(vector.model_number == model.number, here)
        found += tx.execute(query).all()
    return _valid_vectors(found, model)


_CHUNK = 400  # values in one statement


def _valid_vectors(rows: Iterable[Sequence[Any]], model: EmbeddingModel) -> list[Sequence[Any]]:
    """Drop rows whose packed vectors do not have the model's dimensions."""
    return [row for row in rows if row[1] and len(row[1]) % model.dimensions == 0]


def vectors_where(
    tx: ReadTransaction, model: EmbeddingModel, conditions: Sequence[ColumnElement[bool]], most: int
) -> Sequence[Sequence[Any]]:
    """Return up to `most` vectors (message number, packed) of the messages that meet the conditions."""
    vector = message_vector.c
    of_messages = message_vector.join(conversation, conversation.c.number == vector.message_number)
    query = select(vector.message_number, vector.vector).select_from(of_messages)
    rows = tx.execute(query.where(vector.model_number == model.number, *conditions).limit(most)).all()
    return _valid_vectors(rows, model)
