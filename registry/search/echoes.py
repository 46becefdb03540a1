"""Find the messages among the best results that are no evidence: requests for another conversation, keyword lists."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import func, select

from registry.storage.conditions import given, is_pair_of
from registry.storage.database import ReadTransaction
from registry.storage.tables import conversation
from registry.text.ranking.scores import Ranked, RankedChannel
from registry.text.request.phrases import asks_to_recall, folded, is_word_list

_CHANNELS, _MESSAGES = 6, 3  # so many of the best channels are looked at, and messages of each
_BEGINNING = 600  # characters of a message


def find_echoes(
    tx: ReadTransaction, channels: Sequence[RankedChannel], ranked: Sequence[Ranked], request: str | None
) -> frozenset[int]:
    """Return the messages that are no evidence, as far as the best ones go.

    That is the whole of a turn that opens with a request to recall: the conversation that is asked for must not lose
    to those that ask for it. Of a turn that opens with the request itself, or with a list of words, it is the opening.
    """
    room = Counter({one.number: _MESSAGES for one in channels[:_CHANNELS]})
    turns: set[tuple[int, int]] = set()
    for one in ranked:
        if one.own and room[one.candidate.channel_id] > 0:
            room[one.candidate.channel_id] -= 1
            turns.add((one.candidate.channel_id, one.candidate.turn))
    rows = tx.execute(_OPENINGS, given(sorted(turns))) if turns else ()
    openings = {(row.channel_number, row.seq): row.text for row in rows if row.role == "user"}
    recalling = {at for at, text in openings.items() if asks_to_recall(text)}
    asked = folded(request or "")
    alone = {at for at, text in openings.items() if (asked and folded(text) == asked) or is_word_list(text)}
    return frozenset(
        one.number
        for one in (each.candidate for each in ranked)
        if (one.channel_id, one.turn) in recalling or (one.channel_id, one.seq) in alone
    )


_OPENINGS = select(
    conversation.c.channel_number,
    conversation.c.seq,
    conversation.c.role,
    func.substr(conversation.c.text, 1, _BEGINNING).label("text"),
).where(is_pair_of(conversation.c.channel_number, conversation.c.seq))
