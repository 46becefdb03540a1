"""Select the part of a conversation to transfer to another client. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.answer.conversation_state import state_of
from orchestrator.answer.delivery import tokens_in, truncate
from registry.domain import Role, parse_time, preview_of
from registry.ingest.own_calls import NOTE
from registry.text.privacy.secrets import map_texts
from sources.kit.contents import content_text
from sources.kit.drafts import FAILED, REJECTED, shortened
from sources.writing import Call, TransferPart

TOOL_WIDTH = 300  # characters of a tool call that is transferred as a line of the answer
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME = 64


def select_for_transfer(
    stored: Sequence[Mapping[str, Any]], last: int | None, max_tokens: int, origin: str
) -> tuple[list[TransferPart], int]:
    """Return the last turns that fit, whole, and the number of messages left out, which a note before them summarises.

    Only a last turn that is too long by itself is cut; its tool calls become lines. `stored`: all messages in order.
    `origin`: a sentence on the conversation's origin.
    """
    turns = list(_turns(stored))
    selected: list[list[TransferPart]] = []
    room = max_tokens
    for turn in reversed(turns[-last:] if last else turns):
        parts = list(_parts_of_turn(turn))
        room -= sum(map(_tokens, parts))
        if room < 0 and selected:
            break
        selected.insert(0, parts if room >= 0 else _as_text(turn, max_tokens))
    messages = [message for parts in selected for message in parts]
    left_out = sum(map(len, turns[: len(turns) - len(selected)]))
    note = [_note(stored, left_out, origin, messages[0])] if left_out and messages else []
    return [*note, *messages], left_out


def _turns(stored: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield each question with the messages after it; messages before the first question are dropped."""
    turn: list[Mapping[str, Any]] = []
    for message in stored:
        if message["payload"].get("superseded"):
            continue
        if message["role"] == Role.USER and message["text"].strip():
            if turn:
                yield turn
            turn = [message]
        elif turn and message["role"] in (Role.ASSISTANT, Role.TOOL) and message["text"].strip():
            turn.append(message)
    if turn:
        yield turn


def _parts_of_turn(turn: Sequence[Mapping[str, Any]]) -> Iterator[TransferPart]:
    """Yield the question, and the answer in parts: a text and the tool calls after it."""
    question, *answer = turn
    yield TransferPart(Role.USER, question["text"], parse_time(question["timestamp"]))
    part: TransferPart | None = None
    for message in answer:
        call = _call(message)
        if part is None or (part.calls and call is None):
            if part:
                yield part
            part = TransferPart(Role.ASSISTANT, "", parse_time(message["timestamp"]))
        if call:
            part = replace(part, calls=(*part.calls, call))
        else:
            part = replace(part, text="\n\n".join(filter(None, (part.text, _text(message)))))
    if part:
        yield part


def _as_text(turn: Sequence[Mapping[str, Any]], max_tokens: int) -> list[TransferPart]:
    """Return the question and the answer as one text each, cut to `max_tokens`."""
    question, *answer = turn
    texts = [(Role.USER, question["text"], question["timestamp"])]
    if answer:
        texts.append((Role.ASSISTANT, "\n\n".join(map(_text, answer)), answer[0]["timestamp"]))
    return [TransferPart(role, truncate(text, max_tokens), parse_time(at)) for role, text, at in texts]


def _text(message: Mapping[str, Any]) -> str:
    return f"[{preview_of(message['text'], TOOL_WIDTH)}]" if message["role"] == Role.TOOL else str(message["text"])


def _call(message: Mapping[str, Any]) -> Call | None:
    """Return the tool call, if the message has its parts and not only a text."""
    tool = message.get("tool")
    name = _NOT_IN_NAMES.sub("_", str(tool.get("name") or "")) if isinstance(tool, Mapping) else ""
    if not isinstance(tool, Mapping) or not name:
        return None
    params = map_texts(tool.get("params") or {}, shortened)
    result = shortened(content_text(tool.get("result"))) or "(nothing was kept of the result)"
    failed = tool.get("status") in (FAILED, REJECTED)
    return Call(name[:_LONGEST_NAME], params if isinstance(params, dict) else {"input": params}, result, failed)


def _tokens(part: TransferPart) -> int:
    calls = (call.result + json.dumps(call.params, ensure_ascii=False, default=str) for call in part.calls)
    return tokens_in(part.text) + sum(map(tokens_in, calls))


def _note(stored: Sequence[Mapping[str, Any]], left_out: int, origin: str, first: TransferPart) -> TransferPart:
    state = state_of(stored)
    state_lines = [f"- {name.replace('_', ' ')}: {_format_value(value)}" for name, value in state.items()]
    lines = [f"{NOTE} {origin} {left_out} earlier messages are left out here; the tool extract has them.", *state_lines]
    return TransferPart(Role.USER, "\n".join(lines), first.timestamp)


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{part}" for part in value.values())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
