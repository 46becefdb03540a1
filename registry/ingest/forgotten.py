"""What was forgotten stays forgotten: a conversation that comes again, by whichever way and under whichever name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from registry.domain import Message, Role, digest_of, now, storable
from registry.ingest.same_conversation import ENOUGH, ENOUGH_ALONE, NARROWEST, SHARE, WIDEST, width_of
from registry.storage.database import WriteTransaction
from registry.storage.safety.forgetting import (
    CHANNEL,
    SAID,
    SESSION,
    find_forgotten,
    is_anything_forgotten,
    keyed,
    note_forgotten,
)
from registry.storage.safety.masking import key_of

FORGOTTEN = "it was forgotten"
_MOST = 500
"""So many of a conversation's last messages are looked at."""


def is_forgotten(
    tx: WriteTransaction, messages: Sequence[Message], *, channel: str | None = None, session_id: str | None = None
) -> bool:
    """Whether a conversation that is new here was forgotten: by its name, its client's id, or by what is said in it.

    One that is known by its words alone is known by its name, too, from then on.
    """
    if not is_anything_forgotten(tx):
        return False
    key = key_of(tx)
    names = [(keyed(key, CHANNEL, channel.encode()), CHANNEL)] if channel else []
    names += [(keyed(key, SESSION, session_id.encode()), SESSION)] if session_id else []
    said = {keyed(key, SAID, digest_of(each.role, storable(each.text))): each for each in messages[-_MOST:]}
    noted = find_forgotten(tx, [*(digest for digest, _ in names), *said])
    if any(digest in noted for digest, _ in names):
        return True
    known: dict[str, list[Message]] = defaultdict(list)
    for digest, (_, receipt) in noted.items():
        known[receipt].append(said[digest])
    asked = sum(_is_question(each) for each in said.values())
    enough = [receipt for receipt, some in known.items() if _is_enough(some, asked)]
    if enough:
        note_forgotten(tx, names, enough[0], now())
    return bool(enough)


def _is_enough(known: Sequence[Message], asked: int) -> bool:
    """As much as makes two channels one conversation (`same_conversation`), of messages known word for word."""
    questions = [width_of(each.text) for each in known if _is_question(each)]
    weight = sum(min(width, WIDEST) for width in questions)
    is_answered = any(each.role is Role.ASSISTANT and width_of(each.text) >= NARROWEST for each in known)
    is_wide = weight >= (ENOUGH if is_answered else ENOUGH_ALONE)
    is_one_turn = len(questions) == 1 and is_answered and weight >= ENOUGH // 2
    return len(questions) >= SHARE * asked and (is_one_turn or (is_wide and len(questions) > 1))


def _is_question(message: Message) -> bool:
    return message.role is Role.USER and width_of(message.text) >= NARROWEST
