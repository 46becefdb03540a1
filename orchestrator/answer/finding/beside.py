"""The conversations that may be meant instead, each with the turn that speaks for it."""

from collections.abc import Sequence
from typing import Any

from orchestrator.answer.delivery import tokens_of
from registry.domain import Role, format_time, preview_of
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.search.sessions import read_messages_around
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import messages_of
from registry.storage.database import ReadTransaction
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.snippets import passage

LEAST_SHARE = 0.5  # of the best score, for a conversation that is offered
CHOICE_TOKENS = 97  # tokens of each conversation that an unsure answer offers; the contract has 100
ALL_CHOICES = 300  # tokens of all of these: with the first one's turn they stay within 550
LEAST_TEXT = 8  # tokens of a message that are worth showing


Message = dict[str, Any]


def candidates_of(
    tx: ReadTransaction, candidates: Sequence[tuple[ChannelRow, float]], found: SearchResult, sure: Confidence
) -> list[dict[str, Any]]:
    """Return up to four others: of a guess each with its turn, else by name; none if the answer is sure. Their score is
    a share of the first one's."""
    if sure is Confidence.HIGH:
        return []
    best = candidates[0][1] if candidates else 1.0
    further = [(row, score / best) for row, score in candidates[1:5] if score >= LEAST_SHARE * best]
    if sure is Confidence.MEDIUM:
        return [candidate(row, score=score) for row, score in further]
    places: dict[int, list[int]] = {row.number: [] for row, _ in further}
    for one in found.ranked:
        if places.get(one.candidate.channel_id) == []:
            places[one.candidate.channel_id] = list(range(one.candidate.seq, one.candidate.seq + 4))
    lines = read_messages_around(tx, {number: some for number, some in places.items() if some})
    shown = {number: with_outcome([dict(row._mapping) for row in rows]) for number, rows in lines.items()}
    room = min(CHOICE_TOKENS, ALL_CHOICES // max(len(further), 1))
    return [candidate(row, shown.get(row.number, ()), found, score, room) for row, score in further]


def with_outcome(messages: Sequence[Message]) -> list[Message]:
    """Return the first message, and the last answer behind it: a question or a suggestion says little without."""
    answers = [one for one in messages[1:] if one["role"] == Role.ASSISTANT and not asks(one)]
    return [*messages[:1], *answers[-1:]]


def asks(message: Message) -> bool:
    """Return True if a model asks its user something."""
    return bool(message["role"] == Role.ASSISTANT and message["text"].rstrip().endswith(("?", "？")))


def candidates_in_time(
    tx: ReadTransaction, further: Sequence[ChannelRow], scope: Scope, roles: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the other channels of a time that was named, each with where it stood then: all may be meant."""
    found = []
    for row in further[:4]:
        said = messages_of(tx, row.number, limit=2, roles=list(roles), from_=scope.from_, to=scope.to)
        found.append(candidate(row, [one._asdict() for one in said]))
    return found


def candidate(
    row: ChannelRow,
    messages: Sequence[Message] = (),
    found: SearchResult | None = None,
    score: float | None = None,
    tokens: int = ALL_CHOICES // 4,
) -> dict[str, Any]:
    """Return a channel that may be meant instead, with messages that speak for it, cut to so many tokens in all."""
    scored = {} if score is None else {"score": round(score, 2)}
    named = {**about(row), "when": format_time(row.updated_at), **scored}
    if not messages:
        return named
    room = tokens - tokens_of({**named, "messages": [_line(one, "") for one in messages]})
    if room < min(LEAST_TEXT * len(messages), sum(tokens_of(one["text"]) for one in messages)):
        messages = messages[:1]
        room = tokens - tokens_of({**named, "messages": [_line(messages[0], "")]})
    lines = []
    for left, message in zip(range(len(messages), 0, -1), messages, strict=True):
        text = _within(message["text"], max(room, 0) // left, found)
        room -= tokens_of(text)
        lines.append(_line(message, text))
    return {**named, "messages": lines}


def _within(text: str, tokens: int, found: SearchResult | None) -> str:
    """Return the best passage of a text within so many tokens."""
    width = 4 * max(tokens, LEAST_TEXT)
    while True:
        cut = passage(text, found.query, width=width) if found else preview_of(text, width)
        if tokens_of(cut) <= max(tokens, LEAST_TEXT) or width < 16:
            return cut
        width = width * 4 // 5


def _line(message: Message, text: str) -> Message:
    return {"id": message["id"], "role": message["role"], "text": text}


def about(row: ChannelRow) -> dict[str, Any]:
    """Return how a channel is called, and where it is from."""
    return {
        "channel": row.name,
        "title": preview_of(row.title or row.first_message_preview or row.name, 45),
        "project": row.project_name or "General",
        "source": row.source,
    }
