"""Store the vectors of messages, by embedding model. They are derived from the messages, and optional.

A vector goes with its message: deleted for good they leave together, and of one softly deleted nothing is shown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Engine, and_, bindparam, delete, exists, func, insert, or_, select, text, update

from registry.domain import now
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.safety.visibility import ask_all
from registry.storage.tables import EMBEDDABLE, conversation, embedding_model, message_vector

_LOCK = 0x63747876  # any number of ours, for PostgreSQL's advisory lock


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """A model whose vectors are stored. `background` and `spread`: mean and standard deviation of the similarities
    it gives to texts that have nothing to do with each other."""

    number: int
    name: str
    dimensions: int
    calibration: int
    background: float
    spread: float


class Unembedded(NamedTuple):
    """A message without a vector of its present text."""

    number: int
    digest: bytes
    text: str


class Vector(NamedTuple):
    """The vectors of a message's passages, packed one after the other; `digest` is its text's."""

    number: int
    digest: bytes
    packed: bytes


_MODEL = (
    embedding_model.c.number,
    embedding_model.c.name,
    embedding_model.c.dimensions,
    embedding_model.c.calibration,
    embedding_model.c.background,
    embedding_model.c.spread,
)


def find_model(tx: ReadTransaction, name: str) -> EmbeddingModel | None:
    """Return the model of that name, if it was used here before."""
    row = tx.execute(select(*_MODEL).where(embedding_model.c.name == name)).first()
    return EmbeddingModel(*row) if row else None


def keep_model(
    tx: WriteTransaction, name: str, dimensions: int, calibration: int, background: float, spread: float
) -> EmbeddingModel:
    """Store what is known of a model; vectors of other dimensions are deleted."""
    found = {"calibration": calibration, "background": background, "spread": spread}
    known = find_model(tx, name)
    if known and known.dimensions == dimensions:
        tx.execute(update(embedding_model).where(embedding_model.c.number == known.number).values(**found))
    else:
        forget_model(tx, name)
        tx.execute(insert(embedding_model).values(name=name, dimensions=dimensions, **found))
    kept = find_model(tx, name)
    assert kept is not None  # noqa: S101, written just now
    return kept


def forget_model(tx: WriteTransaction, name: str) -> None:
    """Delete the vectors of a model."""
    tx.execute(delete(embedding_model).where(embedding_model.c.name == name))


def forget_other_models(tx: WriteTransaction, name: str) -> None:
    """Delete the vectors of all other models."""
    tx.execute(delete(embedding_model).where(embedding_model.c.name != name))


def unembedded(tx: ReadTransaction, model: EmbeddingModel, above: int, limit: int) -> list[Unembedded]:
    """Return messages with a number above that lack a vector of their present text, the newest first."""
    query = select(conversation.c.number, conversation.c.digest, conversation.c.text)
    query = query.where(conversation.c.number > above, *_lacking(model)).order_by(conversation.c.number.desc())
    return [Unembedded(number, bytes(digest), said) for number, digest, said in tx.execute(query.limit(limit))]


def count_unembedded(tx: ReadTransaction, model: EmbeddingModel) -> int:
    """Count the messages that lack a vector of their present text."""
    return tx.execute(select(func.count()).select_from(conversation).where(*_lacking(model))).scalar_one()


_caught_up_to: WeakKeyDictionary[Engine, dict[int, int]] = WeakKeyDictionary()


def is_caught_up(tx: ReadTransaction, model: EmbeddingModel) -> bool:
    """Return True if all messages have vectors, but for a few new ones (at most 64, and 5 %).

    Each process looks through all messages once, then only through those that came later.
    """
    known = _caught_up_to.setdefault(tx.engine, {})
    newest = newest_message(tx)
    few = min(64, newest // 20)
    lacking = select(conversation.c.number).where(conversation.c.number > known.get(model.number, 0), *_lacking(model))
    if len(ask_all(tx, lacking.limit(few + 1)).all()) > few:
        return False
    known[model.number] = max(newest - few, known.get(model.number, 0))
    return True


def newest_message(tx: ReadTransaction) -> int:
    """Return the number of the newest message, 0 if there is none."""
    newest: int = ask_all(tx, select(func.coalesce(func.max(conversation.c.number), 0))).scalar_one()
    return newest


def _lacking(model: EmbeddingModel) -> Sequence[ColumnElement[bool]]:
    is_present = and_(
        message_vector.c.message_number == conversation.c.number,
        message_vector.c.model_number == model.number,
        message_vector.c.digest == conversation.c.digest,
    )
    return (*EMBEDDABLE, ~exists().where(is_present))


def keep_vectors(tx: WriteTransaction, model: EmbeddingModel, vectors: Sequence[Vector]) -> None:
    """Store vectors, in place of older ones; those of messages that are gone, or changed meanwhile, are dropped."""
    if tx.dialect.name == "postgresql":  # numbers become visible in their order, or a reader would miss some
        tx.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    asked = select(conversation.c.number, conversation.c.digest)
    asked = asked.where(conversation.c.number.in_([vector.number for vector in vectors]))
    present = {row.number: row for row in tx.execute(asked.with_for_update(read=True, key_share=True))}
    kept = [one for one in vectors if one.number in present and bytes(present[one.number].digest) == one.digest]
    if not kept or not _is_known(tx, model):
        return
    old = delete(message_vector).where(
        message_vector.c.model_number == model.number, message_vector.c.message_number == bindparam("of")
    )
    tx.execute(old, [{"of": vector.number} for vector in kept])
    tx.execute(
        insert(message_vector),
        [
            {
                "message_number": vector.number,
                "model_number": model.number,
                "digest": vector.digest,
                "vector": vector.packed,
            }
            for vector in kept
        ],
    )


def _is_known(tx: ReadTransaction, model: EmbeddingModel) -> bool:
    """Return False if the model was deleted meanwhile."""
    return tx.execute(select(1).where(embedding_model.c.number == model.number)).first() is not None


def take_turn(
    tx: WriteTransaction, model: EmbeddingModel, holder: str, until: datetime, *, even_if_taken: bool = False
) -> bool:
    """Make `holder` the one process that embeds until then; False if another one is."""
    taken = update(embedding_model).where(embedding_model.c.number == model.number)
    if not even_if_taken:
        holder_is_gone = or_(embedding_model.c.held_until.is_(None), embedding_model.c.held_until < now())
        taken = taken.where(or_(embedding_model.c.holder == holder, holder_is_gone))
    return bool(tx.execute(taken.values(holder=holder, held_until=until)).rowcount)


def vectors_after(
    tx: ReadTransaction, model: EmbeddingModel, last: int, most: int
) -> tuple[int, Sequence[Sequence[Any]]]:
    """Return the number of the last of the next vectors after `last`, and these (message number, packed)."""
    vector = message_vector.c
    query = select(vector.number, vector.message_number, vector.vector)
    query = query.where(vector.model_number == model.number, vector.number > last).order_by(vector.number).limit(most)
    rows = tx.execute(query).all()
    return rows[-1][0] if rows else last, _sound((row[1:] for row in rows), model)


def vectors_of(tx: ReadTransaction, model: EmbeddingModel, messages: Sequence[int]) -> Sequence[Sequence[Any]]:
    """Return the vectors (message number, packed) of some messages."""
    vector = message_vector.c
    found: list[Sequence[Any]] = []
    for start in range(0, len(messages), _CHUNK):
        here = vector.message_number.in_(messages[start : start + _CHUNK])
        query = select(vector.message_number, vector.vector).where(vector.model_number == model.number, here)
        found += tx.execute(query).all()
    return _sound(found, model)


_CHUNK = 400  # values in one statement


def _sound(rows: Iterable[Sequence[Any]], model: EmbeddingModel) -> list[Sequence[Any]]:
    """Drop vectors of other dimensions than the model's; a message has one for each passage."""
    return [row for row in rows if row[1] and len(row[1]) % model.dimensions == 0]


def vectors_where(
    tx: ReadTransaction, model: EmbeddingModel, conditions: Sequence[ColumnElement[bool]], most: int
) -> Sequence[Sequence[Any]]:
    """Return up to `most` vectors (message number, packed) of the messages that meet the conditions."""
    vector = message_vector.c
    of_messages = message_vector.join(conversation, conversation.c.number == vector.message_number)
    query = select(vector.message_number, vector.vector).select_from(of_messages)
    rows = tx.execute(query.where(vector.model_number == model.number, *conditions).limit(most)).all()
    return _sound(rows, model)
