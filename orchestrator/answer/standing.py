"""What is told beside the messages: where the conversation stands, told from its record and not generated, and which
others may be meant. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.answer.delivery import tokens_of
from registry.domain import preview_of

SHOWN = 300
"""Characters of a question, an answer or an error."""
FILES = 8
_PATH_KEYS = ("file_path", "path", "filePath", "absolute_path", "target_file", "relative_workspace_path", "filename")
_COMMAND_KEYS = ("command", "cmd", "script")
_ASKS = re.compile(r"[?？]\s*$|(?:까요|을까|ㄹ까|할래요?|나요|는지요)\s*[.?]?\s*$")

_THANKS = re.compile(
    r"(?:(?:ok(?:ay)?|great|perfect|nice|cool|good|awesome|yes|yep|got it|(?:that|it) works|works|done|네|넵|응|오케이"
    r"|좋아요?|좋습니다|알겠어요?|알겠습니다|(?:그렇게|그걸로) 할게요?)[\s,.!~]*)*"
    r"(?:(?:(?:many )?thanks?(?: you)?|thx|ty|cheers)"
    r"(?: (?:a lot|so much|very much|again|for everything|for (?:the|your) help))?"
    r"|고마워요?|고맙습니다|감사합니다|감사해요?|수고했어요?|수고하셨습니다)[\s.!~ㅎㅋ^:)]*",
    re.IGNORECASE,
)
"""Nothing but thanks: what comes before or behind them may still be a request."""
_GOODBYE = re.compile(
    r"(?:^|[.,!\n])\s*(?:(?:good)?bye|see (?:you|ya)(?: \w+)?|good ?night|잘 ?자요?|안녕히 \S+)[\s.!~ㅎㅋ^:)]*$",
    re.IGNORECASE,
)


def where_it_stands(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of a channel's last messages in order: last question and answer, files touched, command, error, open question.

    Each message has `role`, `text` and, from a tool, `tool` {name, params, result, status}. What there is none of is
    left out.
    """
    tools = [message["tool"] for message in messages if isinstance(message.get("tool"), Mapping)]
    said = {
        "last_question": _last_text(messages, "user"),
        "last_answer": _last_text(messages, "assistant"),
        "files": _files(messages, tools),
        "last_command": _last_command(tools),
        "last_error": _last_error(messages, tools),
        "open_question": _open_question(messages),
    }
    return {name: value for name, value in said.items() if value}


def _last_text(messages: Sequence[Mapping[str, Any]], role: str) -> str:
    texts = (message["text"] for message in reversed(messages) if message["role"] == role)
    return preview_of(next((text for text in texts if text.strip()), ""), SHOWN)


def _files(messages: Sequence[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]]) -> list[str]:
    """The files that tools took and contexts named, the latest first."""
    named = [_value(tool.get("params"), _PATH_KEYS) for tool in tools]
    contexts = (message.get("context") for message in messages)
    named += [str(context["file"]) for context in contexts if isinstance(context, Mapping) and context.get("file")]
    return list(dict.fromkeys(path for path in reversed(named) if path))[:FILES]


def touched_files(message: Mapping[str, Any]) -> list[str]:
    """The files that a message's tool took, if it is one's."""
    tool = message.get("tool")
    return _files([], [tool]) if isinstance(tool, Mapping) else []


def _last_command(tools: Sequence[Mapping[str, Any]]) -> dict[str, str] | None:
    for tool in reversed(tools):
        if command := _value(tool.get("params"), _COMMAND_KEYS):
            outcome = str(tool.get("status") or "")
            result = preview_of(str(tool.get("result") or ""), SHOWN)
            told = {"command": preview_of(command, SHOWN), "status": outcome, "result": result}
            return {name: value for name, value in told.items() if value}
    return None


def _last_error(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> str:
    failed = [str(tool.get("result") or "") for tool in tools if str(tool.get("status")).lower() in ("error", "failed")]
    errors = [message["text"] for message in messages if message["role"] == "error"]
    return preview_of((errors or failed or [""])[-1], SHOWN)


def _open_question(messages: Sequence[Mapping[str, Any]]) -> str:
    """What was asked last and has no answer: by the user, or by the assistant at the end of its answer."""
    spoken = [message for message in messages if message["role"] in ("user", "assistant") and message["text"].strip()]
    if not spoken:
        return ""
    last = spoken[-1]
    if last["role"] == "user":
        return "" if _takes_leave(last["text"].strip()) else preview_of(last["text"], SHOWN)
    closing = last["text"].strip().splitlines()[-1].strip()
    return preview_of(closing, SHOWN) if _ASKS.search(closing) else ""


def _takes_leave(text: str) -> bool:
    return bool(_THANKS.fullmatch(text)) or ("?" not in text and bool(_GOODBYE.search(text)))


def _value(params: object, keys: Iterable[str]) -> str:
    if not isinstance(params, Mapping):
        return ""
    found = (params[key] for key in keys if params.get(key))
    value = next(found, "")
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


@dataclass(frozen=True, slots=True)
class Beside:
    """What is told beside the messages."""

    stands_at: dict[str, Any]
    candidates: list[dict[str, Any]]
    others: list[dict[str, Any]]


def beside_within(told: Beside, most: int) -> Beside:
    """As much of it as fits these tokens; the least significant is left out first."""
    for shorter in _SHORTER:
        if tokens_of({"stands_at": told.stands_at, "candidates": told.candidates, "others": told.others}) <= most:
            break
        told = shorter(told)
    return told


BRIEF = 80
"""Characters of a text, where there is little room."""
_NAMES = ("channel", "title", "source")


def _one_line_each(told: Beside) -> Beside:
    return replace(told, others=[{**one, "messages": one["messages"][:1]} for one in told.others])


def _brief_end(told: Beside) -> Beside:
    short = {name: preview_of(said, BRIEF) for name, said in told.stands_at.items() if isinstance(said, str)}
    return replace(told, stands_at=short)


def _names_alone(told: Beside) -> Beside:
    named = [{name: preview_of(one[name], BRIEF) for name in _NAMES} for one in told.candidates]
    return replace(told, candidates=named)


_SHORTER: Sequence[Callable[[Beside], Beside]] = (
    _one_line_each,
    lambda told: replace(told, candidates=told.candidates[:3]),
    lambda told: replace(told, others=told.others[:1]),
    _brief_end,
    lambda told: replace(told, others=[]),
    _names_alone,
    lambda told: replace(told, stands_at={}),
    lambda told: replace(told, candidates=told.candidates[:1]),
    lambda told: replace(told, candidates=[]),
)
"""What is left out beside the messages, in turn."""
