"""A conversation as it is taken along to another client: questions and answers, no more than fits. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from orchestrator.answer.size import tokens_in, within
from orchestrator.answer.where_it_stands import where_it_stands
from registry.domain import Message, Role, parse_time, preview_of
from registry.ingest.own_calls import NOTE

TOOL_WIDTH = 300
"""Characters of a tool call, which goes along as a line of the answer."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What goes along, oldest first, and how many messages of the conversation do not."""

    messages: list[Message]
    left_out: int


def take_along(stored: Sequence[Mapping[str, Any]], last: int | None, max_tokens: int, origin: str) -> Taken:
    """The last turns that fit, each whole; if not all fit, a note before them says what the rest came to.

    `stored`: all messages in order. `origin`: what is said of where the conversation comes from.
    """
    turns = list(_turns(stored))
    kept: list[list[Mapping[str, Any]]] = []
    room = max_tokens
    for turn in reversed(turns[-last:] if last else turns):
        room -= sum(tokens_in(message["text"]) for message in turn)
        if room < 0 and kept:
            break
        kept.insert(0, turn)
    count = sum(len(turn) for turn in kept)
    messages = [message for turn in kept for message in _spoken(turn, max_tokens)]
    left_out = sum(len(turn) for turn in turns) - count
    note = [_note(stored, left_out, origin, messages[0])] if left_out and messages else []
    return Taken([*note, *messages], left_out)


def _turns(stored: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Each question with what follows it; what stands before the first question cannot go along."""
    turn: list[Mapping[str, Any]] = []
    for message in stored:
        if message["role"] == Role.USER and message["text"].strip():
            if turn:
                yield turn
            turn = [message]
        elif turn and message["role"] in (Role.ASSISTANT, Role.TOOL) and message["text"].strip():
            turn.append(message)
    if turn:
        yield turn


def _spoken(turn: Sequence[Mapping[str, Any]], max_tokens: int) -> Iterator[Message]:
    """The question, and its answer as one message: clients want them in turn."""
    for is_question, group in groupby(turn, lambda message: message["role"] == Role.USER):
        parts = list(group)
        text = "\n\n".join(map(_text, parts))
        role = Role.USER if is_question else Role.ASSISTANT
        yield Message(role, within(text, max_tokens), parse_time(parts[0]["timestamp"]))


def _text(message: Mapping[str, Any]) -> str:
    return f"[{preview_of(message['text'], TOOL_WIDTH)}]" if message["role"] == Role.TOOL else str(message["text"])


def _note(stored: Sequence[Mapping[str, Any]], left_out: int, origin: str, first: Message) -> Message:
    stands = where_it_stands(stored)
    said = [f"- {name.replace('_', ' ')}: {_in_words(value)}" for name, value in stands.items()]
    lines = [f"{NOTE} {origin} {left_out} earlier messages are left out here; the tool extract has them.", *said]
    return Message(Role.USER, "\n".join(lines), first.timestamp)


def _in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{part}" for part in value.values())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
