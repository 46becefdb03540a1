"""Tell from the record, without a model, where a conversation stands. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from registry.domain import Role, preview_of

SHOWN = 300  # characters of a question, an answer or an error
FILES = 8
PATH_KEYS = ("file_path", "path", "filePath", "absolute_path", "target_file", "relative_workspace_path", "filename")
COMMAND_KEYS = ("command", "cmd", "script")
LOOKS = re.compile(  # a command that only looks at something changes nothing
    r"^\s*(?:ls|cat|head|tail|pwd|wc|grep|rg|find|tree|git (?:status|diff|log|show))\b"
)
_ASKS = re.compile(
    r"[?？][\s)\"'”’]*$|(?:까요?|나요|는지요?|은가요?|인가요?|할래요?|어때요?)[\s.!~]*$"
    r"|^(?:(?:and|so|but) )?(?:how|what|why|which|where|when|who|can|could|would|should) ",
    re.IGNORECASE,
)
_REQUESTS = re.compile(
    r"(?:줘|주세요|해 ?봐|하자)[\s.!~]*$|^(?:(?:and|so|but|ok(?:ay)?|now|then|also|please)[, ]+)*(?:help|show|explain"
    r"|tell|fix|add|make|write|run|use|change|update|remove|check|create|try|set|move|implement|rename|delete|test)\b"
    r"|\b(?:still|fails?|error|not working|doesn['’]t)\b|안 ?돼|안 ?됨|에러|오류",
    re.IGNORECASE,
)
"""Sentences in which a user asks for work or reports a problem."""
_THANKS = (
    r"(?:many )?thanks?(?: you)?(?: (?:a lot|so much|very much|again|for (?:everything|(?:the|your) help)))?|thx|ty"
)
_COURTESY = re.compile(
    r"(?:(?:ok(?:ay)?|k|yes|yep|yeah|sure|no|great|perfect|nice|cool|good|awesome|got it|(?:that|it) works|works|done"
    rf"|lgtm|(?:sounds|looks) good|hi|hello|hey|cheers|(?:good)?bye|good ?night|see (?:you|ya)(?: \w+)?|enjoy|{_THANKS}"
    r"|네|넵|예|응|ㅇㅇ|ㅇㅋ|오케이|좋아요?|좋습니다|그래|알겠어요?|알겠습니다|(?:그렇게|그걸로) 할게요?|고마워요?"
    r"|고맙습니다|감사합니다|감사해요?|수고했어요?|수고하셨습니다|잘 ?자요?|안녕(?:히 \S+|하세요)?|천만에요)"
    r"[\s,.!~ㅎㅋ^:)]*)+",
    re.IGNORECASE,
)


def is_courtesy(text: str) -> bool:
    """Return True for nothing but thanks, consent or a greeting."""
    return bool(_COURTESY.fullmatch(text.strip()))


def where_it_stands(messages: Sequence[Mapping[str, Any]], shown: Collection[str] = ()) -> dict[str, Any]:
    """Return last question and answer, files touched, last command, error and open question of a channel's last
    messages, in order; without what is missing, and without what stands in the messages `shown` (ids).

    Each message has `role`, `text` and, from a tool, `tool` {name, params, result, status}.
    """
    tools = [message["tool"] for message in messages if isinstance(message.get("tool"), Mapping)]
    hidden = [message for message in messages if message.get("id") not in shown]
    question, answer = (_last_of(messages, role) for role in (Role.USER, Role.ASSISTANT))
    stands = {
        "last_question": preview_of(question["text"], SHOWN) if question and question in hidden else None,
        "last_answer": preview_of(answer["text"], SHOWN) if answer and answer in hidden else None,
        "files": _files(messages, tools),
        "last_command": _last_command(tools),
        "last_error": _last_error(hidden, tools),
        "open_question": _open_question(messages, hidden),
    }
    if stands["open_question"] == stands["last_question"]:
        stands["last_question"] = None
    return {name: value for name, value in stands.items() if value}


def _last_of(messages: Sequence[Mapping[str, Any]], role: str) -> Mapping[str, Any] | None:
    said = [message for message in messages if message["role"] == role and message["text"].strip()]
    return next((message for message in reversed(said) if not is_courtesy(message["text"])), said[-1] if said else None)


def _files(messages: Sequence[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the files that tools took and contexts named, the latest first."""
    named = [first_param(tool.get("params"), PATH_KEYS) for tool in tools]
    contexts = (message.get("context") for message in messages)
    named += [str(context["file"]) for context in contexts if isinstance(context, Mapping) and context.get("file")]
    return list(dict.fromkeys(path for path in reversed(named) if path))[:FILES]


def touched_files(message: Mapping[str, Any]) -> list[str]:
    """Return the files that a message's tool took, if it is a tool's."""
    tool = message.get("tool")
    return _files([], [tool]) if isinstance(tool, Mapping) else []


def _last_command(tools: Sequence[Mapping[str, Any]]) -> dict[str, str] | None:
    for tool in reversed(tools):
        if command := first_param(tool.get("params"), COMMAND_KEYS):
            result = preview_of(str(tool.get("result") or ""), SHOWN)
            ran = {"command": preview_of(command, SHOWN), "status": str(tool.get("status") or ""), "result": result}
            return {name: value for name, value in ran.items() if value}
    return None


def _last_error(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> str:
    failed = [str(tool.get("result") or "") for tool in tools if str(tool.get("status")).lower() in ("error", "failed")]
    errors = [message["text"] for message in messages if message["role"] == "error"]
    return preview_of((errors or failed or [""])[-1], SHOWN)


def _open_question(messages: Sequence[Mapping[str, Any]], hidden: Sequence[Mapping[str, Any]]) -> str:
    """Return a question without an answer: the user's last message, or the end of the assistant's last one."""
    spoken = [one for one in messages if one["role"] in (Role.USER, Role.ASSISTANT) and one["text"].strip()]
    if not spoken or spoken[-1] not in hidden:
        return ""
    text, is_user = spoken[-1]["text"].strip(), spoken[-1]["role"] == Role.USER
    sentences = [one.strip() for one in re.split(r"(?<=[.!?。])\s+|\n|(?<=thanks), ", text) if not is_courtesy(one)]
    if is_user and any(_ASKS.search(one) or _REQUESTS.search(one) for one in sentences):
        return preview_of(text, SHOWN)
    if is_user or not any(_ASKS.search(one) for one in sentences[-1:]):
        return ""
    return preview_of(text.splitlines()[-1].strip(), SHOWN)


def first_param(params: object, keys: Iterable[str]) -> str:
    """Return the first of these parameters that is there, as a text."""
    if not isinstance(params, Mapping):
        return ""
    value = next((params[key] for key in keys if params.get(key)), "")
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
