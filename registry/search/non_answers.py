"""Find results that answer nothing: requests for another conversation, and lists of keywords."""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import func, select

from registry.storage.conditions import is_pair_of
from registry.storage.database import ReadTransaction
from registry.storage.tables import conversation
from registry.text.ranking.scores import Ranked, RankedChannel
from registry.text.request.phrases import is_recall_request, is_word_list, normalise_request

_CHECKED_CHANNELS, _CHECKED_MESSAGES = 6, 3  # best channels that are checked, and messages of each
_CHECKED_CHARACTERS = 600  # characters of a message that are read


def find_non_answers(
    tx: ReadTransaction, channels: Sequence[RankedChannel], ranked: Sequence[Ranked], request: str | None
) -> frozenset[int]:
    """Return the messages among the best results that answer nothing.

    If a turn begins with a request to recall, drop the whole turn: the conversation that the user wants must not lose
    to conversations that ask for it. If it begins with `request` itself or a list of keywords, drop only its opening.
    """
    left = Counter({one.number: _CHECKED_MESSAGES for one in channels[:_CHECKED_CHANNELS]})
    turns: set[tuple[int, int]] = set()
    for one in ranked:
        if one.base_score and left[one.candidate.channel_id] > 0:
            left[one.candidate.channel_id] -= 1
            turns.add((one.candidate.channel_id, one.candidate.turn))
    columns = conversation.c
    beginning = func.substr(columns.text, 1, _CHECKED_CHARACTERS).label("text")
    query = select(columns.channel_number, columns.seq, columns.role, beginning)
    rows = tx.execute(query.where(is_pair_of(columns.channel_number, columns.seq, sorted(turns)))) if turns else ()
    openings = {(row.channel_number, row.seq): row.text for row in rows if row.role == "user"}
    recall_turns = {at for at, text in openings.items() if is_recall_request(text)}
    normalised = normalise_request(request or "")
    repeated = {at for at, text in openings.items() if normalised and normalise_request(text) == normalised}
    repeated |= {at for at, text in openings.items() if is_word_list(text)}
    return frozenset(
        one.number
        for one in (each.candidate for each in ranked)
        if (one.channel_id, one.turn) in recall_turns or (one.channel_id, one.seq) in repeated
    )
