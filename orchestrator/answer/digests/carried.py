"""A conversation as it is taken along to another client: questions and answers, no more than fits. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.answer.delivery import tokens_in, within
from orchestrator.answer.standing import where_it_stands
from registry.domain import Role, parse_time, preview_of
from registry.ingest.own_calls import NOTE
from registry.text.privacy.secrets import map_texts
from sources.kit.drafts import FAILED, REJECTED, content_text, shortened
from sources.writing import Call, TalkPart

TOOL_WIDTH = 300
"""Characters of a tool call that goes along as a line of the answer."""
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME = 64


def take_along(
    stored: Sequence[Mapping[str, Any]], last: int | None, max_tokens: int, origin: str
) -> tuple[list[TalkPart], int]:
    """Return the last turns that fit, each whole, and how many messages are left out, which a note before them sums up.

    Only a last turn that is too long by itself is cut; its tools then go along as lines. `stored`: all messages in
    order. `origin`: what is said of where the conversation comes from.
    """
    turns = list(_turns(stored))
    kept: list[list[TalkPart]] = []
    room = max_tokens
    for turn in reversed(turns[-last:] if last else turns):
        said = list(_spoken(turn))
        room -= sum(map(_tokens, said))
        if room < 0 and kept:
            break
        kept.insert(0, said if room >= 0 else _in_words_alone(turn, max_tokens))
    messages = [message for said in kept for message in said]
    left_out = sum(map(len, turns[: len(turns) - len(kept)]))
    note = [_note(stored, left_out, origin, messages[0])] if left_out and messages else []
    return [*note, *messages], left_out


def _turns(stored: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Each question with what follows it; what stands before the first question cannot go along."""
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


def _spoken(turn: Sequence[Mapping[str, Any]]) -> Iterator[TalkPart]:
    """The question, and its answer in parts: what was said, and the tools that were called then."""
    question, *answer = turn
    yield TalkPart(Role.USER, question["text"], parse_time(question["timestamp"]))
    part: TalkPart | None = None
    for message in answer:
        call = _call(message)
        if part is None or (part.calls and call is None):
            if part:
                yield part
            part = TalkPart(Role.ASSISTANT, "", parse_time(message["timestamp"]))
        if call:
            part = replace(part, calls=(*part.calls, call))
        else:
            part = replace(part, text="\n\n".join(filter(None, (part.text, _text(message)))))
    if part:
        yield part


def _in_words_alone(turn: Sequence[Mapping[str, Any]], max_tokens: int) -> list[TalkPart]:
    """The question and its answer as one text each, as much of both as fits."""
    question, *answer = turn
    told = [(Role.USER, question["text"], question)]
    if answer:
        told.append((Role.ASSISTANT, "\n\n".join(map(_text, answer)), answer[0]))
    return [TalkPart(role, within(text, max_tokens), parse_time(first["timestamp"])) for role, text, first in told]


def _text(message: Mapping[str, Any]) -> str:
    return f"[{preview_of(message['text'], TOOL_WIDTH)}]" if message["role"] == Role.TOOL else str(message["text"])


def _call(message: Mapping[str, Any]) -> Call | None:
    """The tool's call, if it is told in parts and not only as a text."""
    tool = message.get("tool")
    name = _NO_NAME.sub("_", str(tool.get("name") or "")) if isinstance(tool, Mapping) else ""
    if not isinstance(tool, Mapping) or not name:
        return None
    params = map_texts(tool.get("params") or {}, shortened)
    result = shortened(content_text(tool.get("result"))) or "(nothing was kept of the result)"
    failed = tool.get("status") in (FAILED, REJECTED)
    return Call(name[:_LONGEST_NAME], params if isinstance(params, dict) else {"input": params}, result, failed)


def _tokens(said: TalkPart) -> int:
    calls = (call.result + json.dumps(call.params, ensure_ascii=False, default=str) for call in said.calls)
    return tokens_in(said.text) + sum(map(tokens_in, calls))


def _note(stored: Sequence[Mapping[str, Any]], left_out: int, origin: str, first: TalkPart) -> TalkPart:
    stands = where_it_stands(stored)
    said = [f"- {name.replace('_', ' ')}: {_in_words(value)}" for name, value in stands.items()]
    lines = [f"{NOTE} {origin} {left_out} earlier messages are left out here; the tool extract has them.", *said]
    return TalkPart(Role.USER, "\n".join(lines), first.timestamp)


def _in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{part}" for part in value.values())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
