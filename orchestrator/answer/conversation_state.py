"""Derive the state of a conversation from its record, without a model. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from registry.domain import Role, preview_of

MAX_TEXT = 300  # characters of a question, an answer or an error
MAX_FILES = 8
PATH_KEYS = ("file_path", "path", "filePath", "absolute_path", "target_file", "relative_workspace_path", "filename")
COMMAND_KEYS = ("command", "cmd", "script")
READ_ONLY_COMMAND = re.compile(  # commands that change nothing
    r"^\s*(?:ls|cat|head|tail|pwd|wc|grep|rg|find|tree|git (?:status|diff|log|show))\b"
)
_ASKS = re.compile(
    r"[?？][\s)\"'”’]*$|(?:까요?|나요|는지요?|은가요?|인가요?|할래요?|어때요?)[\s.!~]*$"
    r"|^(?:(?:and|so|but) )?(?:how|what|why|which|where|when|who|can|could|would|should) ",
    re.IGNORECASE,
)
_REQUEST = re.compile(
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
    r"|you(?:['’]re| are) (?:very |most )?welcome|my pleasure|glad (?:it|that|I could) (?:work|help)(?:s|ed)?"
    r"|happy to help|let me know if (?:you need|there is)[^.!?\n]*|별말씀을요|도움이 되(?:어|었다니) [^.!?\n]*"
    rf"|lgtm|(?:sounds|looks) good|hi|hello|hey|cheers|(?:good)?bye|good ?night|see (?:you|ya)(?: \w+)?|enjoy|{_THANKS}"
    r"|네|넵|예|응|ㅇㅇ|ㅇㅋ|오케이|좋아요?|좋습니다|그래|알겠어요?|알겠습니다|(?:그렇게|그걸로) 할게요?|고마워요?"
    r"|고맙습니다|감사합니다|감사해요?|수고했어요?|수고하셨습니다|잘 ?자요?|안녕(?:히 \S+|하세요)?|천만에요)"
    r"[\s,.!~ㅎㅋ^:)]*)+",
    re.IGNORECASE,
)


def is_courtesy(text: str) -> bool:
    """Return True if a text is only thanks, consent or a greeting."""
    return bool(_COURTESY.fullmatch(text.strip()))


def state_of(messages: Sequence[Mapping[str, Any]], shown: Collection[str] = ()) -> dict[str, Any]:
    """Return a channel's last question, answer, files, command, error and open question, without empty ones.

    `messages`: its last ones in order, each with `role`, `text` and, from a tool, `tool` {name, params, result,
    status}; superseded ones do not count. Texts of messages in `shown` (ids) are omitted.
    """
    messages = [message for message in messages if not message.get("payload", {}).get("superseded")]
    tools = [message["tool"] for message in messages if isinstance(message.get("tool"), Mapping)]
    hidden = [message for message in messages if message.get("id") not in shown]
    question, answer = (_last_message(messages, role) for role in (Role.USER, Role.ASSISTANT))
    state = {
        "last_question": preview_of(question["text"], MAX_TEXT) if question and question in hidden else None,
        "last_answer": preview_of(answer["text"], MAX_TEXT) if answer and answer in hidden else None,
        "files": _files(messages, tools),
        "last_command": _last_command(tools),
        "last_error": _last_error(hidden, tools),
        "open_question": _open_question(messages, hidden),
    }
    if state["open_question"] == state["last_question"]:
        state["last_question"] = None
    return {name: value for name, value in state.items() if value}


def _last_message(messages: Sequence[Mapping[str, Any]], role: str) -> Mapping[str, Any] | None:
    of_role = [message for message in messages if message["role"] == role and message["text"].strip()]
    last = of_role[-1] if of_role else None
    return next((message for message in reversed(of_role) if not is_courtesy(message["text"])), last)


def _files(messages: Sequence[Mapping[str, Any]], tools: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the files in tool calls and contexts, the latest first."""
    named = [first_param(tool.get("params"), PATH_KEYS) for tool in tools]
    contexts = (message.get("context") for message in messages)
    named += [str(context["file"]) for context in contexts if isinstance(context, Mapping) and context.get("file")]
    return list(dict.fromkeys(path for path in reversed(named) if path))[:MAX_FILES]


def touched_files(message: Mapping[str, Any]) -> list[str]:
    """Return the files in a message's tool call."""
    tool = message.get("tool")
    return _files([], [tool]) if isinstance(tool, Mapping) else []


def _last_command(tools: Sequence[Mapping[str, Any]]) -> dict[str, str] | None:
    for tool in reversed(tools):
        if command := first_param(tool.get("params"), COMMAND_KEYS):
            result = preview_of(str(tool.get("result") or ""), MAX_TEXT)
            ran = {"command": preview_of(command, MAX_TEXT), "status": str(tool.get("status") or ""), "result": result}
            return {name: value for name, value in ran.items() if value}
    return None


def _last_error(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> str:
    failed = [str(tool.get("result") or "") for tool in tools if str(tool.get("status")).lower() in ("error", "failed")]
    errors = [message["text"] for message in messages if message["role"] == "error"]
    return preview_of((errors or failed or [""])[-1], MAX_TEXT)


def _open_question(messages: Sequence[Mapping[str, Any]], hidden: Sequence[Mapping[str, Any]]) -> str:
    """Return the unanswered question: the user's last message, or the end of the assistant's last one."""
    conversation = [one for one in messages if one["role"] in (Role.USER, Role.ASSISTANT) and one["text"].strip()]
    if not conversation or conversation[-1] not in hidden:
        return ""
    text, is_user = conversation[-1]["text"].strip(), conversation[-1]["role"] == Role.USER
    sentences = [one.strip() for one in re.split(r"(?<=[.!?。])\s+|\n|(?<=thanks), ", text) if not is_courtesy(one)]
    if is_user and any(_ASKS.search(one) or _REQUEST.search(one) for one in sentences):
        return preview_of(text, MAX_TEXT)
    if is_user or not any(_ASKS.search(one) for one in sentences[-1:]):
        return ""
    return preview_of(text.splitlines()[-1].strip(), MAX_TEXT)


def first_param(params: object, keys: Iterable[str]) -> str:
    """Return the first non-empty of these parameters as text."""
    if not isinstance(params, Mapping):
        return ""
    value = next((params[key] for key in keys if params.get(key)), "")
    match value:
        case [_, "-c" | "-lc", script]:  # Codex names the shell that runs it, too
            return str(script)
        case list():
            return " ".join(map(str, value))
    return str(value)
