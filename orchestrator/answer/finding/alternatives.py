"""List alternatives: other conversations that the user may mean, each with its best turn."""

from collections.abc import Sequence
from typing import Any

from orchestrator.answer.delivery import tokens_of
from registry.domain import Role, format_time, preview_of
from registry.project import NO_PROJECT
from registry.search.retrieval import SearchResult
from registry.search.scope import Scope
from registry.search.sessions import read_messages_around
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import messages_of, superseded_among
from registry.storage.database import ReadTransaction
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.snippets import passage

MIN_SCORE_SHARE = 0.5  # of the best score; conversations below are not offered
MAX_CHOICE_TOKENS = 97  # tokens of each alternative in an unsure answer; the contract allows 100
MAX_CHOICES_TOKENS = 300  # tokens of all alternatives: with the first conversation's turn they stay within 550
MIN_TEXT_TOKENS = 8  # tokens; less of a message is not worth showing


Message = dict[str, Any]


def alternatives_of(
    tx: ReadTransaction, candidates: Sequence[tuple[ChannelRow, float]], found: SearchResult, sure: Confidence
) -> list[dict[str, Any]]:
    """Return up to four alternatives, none if the answer is sure; each with its best turn if the confidence is low.

    Scores are shares of the first conversation's score.
    """
    if sure is Confidence.HIGH:
        return []
    best_score = candidates[0][1] if candidates else 1.0
    further = [(row, score / best_score) for row, score in candidates[1:5] if score >= MIN_SCORE_SHARE * best_score]
    if sure is Confidence.MEDIUM:
        return [alternative(row, score=score) for row, score in further]
    channel_numbers = {row.number for row, _ in further}
    hits = [one.candidate for one in found.ranked if one.candidate.channel_id in channel_numbers]
    superseded = superseded_among(tx, [hit.number for hit in hits])
    best = {hit.channel_id: hit.seq for hit in reversed(hits) if hit.number not in superseded}
    turns = read_messages_around(tx, {number: [seq] for number, seq in best.items()}, after=3)
    valid = {number: [dict(row._mapping) for row in rows if not row.superseded] for number, rows in turns.items()}
    shown = {number: with_last_answer(messages) for number, messages in valid.items()}
    room = min(MAX_CHOICE_TOKENS, MAX_CHOICES_TOKENS // max(len(further), 1))
    return [alternative(row, shown.get(row.number, ()), found, score, room) for row, score in further]


def with_last_answer(messages: Sequence[Message]) -> list[Message]:
    """Return the first message and the last answer after it, without which a question or suggestion says little."""
    answers = [one for one in messages[1:] if one["role"] == Role.ASSISTANT and not is_question_to_user(one)]
    return [*messages[:1], *answers[-1:]]


def is_question_to_user(message: Message) -> bool:
    """Return True if a model asks its user a question."""
    return bool(message["role"] == Role.ASSISTANT and message["text"].rstrip().endswith(("?", "？")))


def alternatives_in_time(
    tx: ReadTransaction, further: Sequence[ChannelRow], scope: Scope, roles: Sequence[str]
) -> list[dict[str, Any]]:
    """Return other channels of the time that the user named, each with its last messages of that time."""
    found = []
    for row in further[:4]:
        messages = messages_of(
            tx, row.number, limit=2, roles=list(roles), from_=scope.from_, to=scope.to, only_valid=True
        )
        found.append(alternative(row, [one._asdict() for one in messages]))
    return found


def alternative(
    row: ChannelRow,
    messages: Sequence[Message] = (),
    found: SearchResult | None = None,
    score: float | None = None,
    tokens: int = MAX_CHOICES_TOKENS // 4,
) -> dict[str, Any]:
    """Return a channel with its best messages, within `tokens` in all."""
    scored = {} if score is None else {"score": round(score, 2)}
    named = {**describe_channel(row), "when": format_time(row.updated_at), **scored}
    if not messages:
        return named
    room = tokens - tokens_of({**named, "messages": [_line(one, "") for one in messages]})
    if room < min(MIN_TEXT_TOKENS * len(messages), sum(tokens_of(one["text"]) for one in messages)):
        messages = messages[:1]
        room = tokens - tokens_of({**named, "messages": [_line(messages[0], "")]})
    lines = []
    for left, message in zip(range(len(messages), 0, -1), messages, strict=True):
        text = _fitting_passage(message["text"], max(room, 0) // left, found)
        room -= tokens_of(text)
        lines.append(_line(message, text))
    return {**named, "messages": lines}


def _fitting_passage(text: str, tokens: int, found: SearchResult | None) -> str:
    """Return the best passage of a text within `tokens`."""
    width = 4 * max(tokens, MIN_TEXT_TOKENS)
    while True:
        cut = passage(text, found.query, width=width) if found else preview_of(text, width)
        if tokens_of(cut) <= max(tokens, MIN_TEXT_TOKENS) or width < 16:
            return cut
        width = width * 4 // 5


def _line(message: Message, text: str) -> Message:
    return {"id": message["id"], "role": message["role"], "text": text}


def describe_channel(row: ChannelRow) -> dict[str, Any]:
    """Return a channel's name, title, project and source."""
    return {
        "channel": row.name,
        "title": preview_of(row.title or row.first_message_preview or row.name, 45),
        "project": row.project_name or NO_PROJECT,
        "source": row.source,
    }
