"""Store the images attached to messages: each content once, with links from the messages that show it."""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from sqlalchemy import delete, func, select

from registry.domain import Message
from registry.storage.conditions import is_one_of
from registry.storage.database import ReadTransaction, WriteTransaction, insert_new
from registry.storage.tables import conversation, image, message_image


def store_images(tx: WriteTransaction, messages: Iterable[tuple[str, Message]]) -> None:
    """Store the images of messages, each given with its stored id; a forgotten message gets none."""
    images = {id_: message.images for id_, message in messages if message.images}
    if not images:
        return
    query = select(conversation.c.id, conversation.c.number).where(is_one_of(conversation.c.id, list(images)))
    numbers = dict(tx.execute(query.where(conversation.c.forgotten.is_(False))).all())
    known = image_positions(tx, numbers.values())
    for id_, number in numbers.items():
        for position in images[id_].keys() - set(known.get(number, ())):
            content = images[id_][position]
            digest = sha256(content).digest()
            insert_new(tx, image, [{"digest": digest, "content": content}])
            insert_new(tx, message_image, [{"number": number, "position": position, "digest": digest}])


def image_positions(tx: ReadTransaction, numbers: Iterable[int]) -> Mapping[int, list[int]]:
    """Return by message which of its attachments are stored."""
    found: dict[int, list[int]] = {}
    query = select(message_image.c.number, message_image.c.position)
    for number, position in tx.execute(query.where(is_one_of(message_image.c.number, list(numbers)))):
        found.setdefault(number, []).append(position)
    return found


def image_at(tx: ReadTransaction, number: int, position: int) -> bytes | None:
    is_shown = message_image.c.number == number, message_image.c.position == position
    content = tx.execute(select(image.c.content).join_from(message_image, image, _IS_LINKED).where(*is_shown))
    return content.scalar_one_or_none()


def drop_images(tx: WriteTransaction, numbers: Iterable[int]) -> None:
    """Remove the links of messages, then every image that no message shows."""
    tx.execute(delete(message_image).where(is_one_of(message_image.c.number, list(numbers))))
    tx.execute(delete(image).where(~select(message_image.c.number).where(_IS_LINKED).exists()))


def count_images(tx: ReadTransaction) -> tuple[int, int]:
    """Return the number of stored images and their size in bytes."""
    count, size = tx.execute(select(func.count(), func.coalesce(func.sum(func.length(image.c.content)), 0))).one()
    return count, size


_IS_LINKED = image.c.digest == message_image.c.digest
