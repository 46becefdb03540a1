"""A tool call of the chat in VS Code: what the client shows of it, and what the model asked for and got. Pure.

The two stand apart: a part of the answer, and `toolCallRounds` with `toolCallResults`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, object_in, string
from sources.kit.loose_json import number, objects

_SHOWN = ("toolInvocationSerialized", "toolInvocation")
_REFUSALS = (0, 5)  # denied, skipped
_GIVEN = ("rawInput", "input", "commandLine", "command", "prompt", "todoList")


class _Call(NamedTuple):
    call_id: str
    name: str
    params: Any
    result: str | None


@dataclass(slots=True)
class Calls:
    """The calls of one request as the model made them, each to be told once."""

    _by_part: dict[str, _Call] = field(default_factory=dict)
    _hidden: list[_Call] = field(default_factory=list)

    @classmethod
    def of(cls, request: Record) -> Self:
        """Matched to the parts of the answer by id, else, where there are as many of both, in order."""
        metadata = mapping(mapping(request.get("result")).get("metadata"))
        results = mapping(metadata.get("toolCallResults"))
        rounds = objects(metadata.get("toolCallRounds"))
        calls = [_call(call, results) for each in rounds for call in objects(each.get("toolCalls"))]
        shown = [
            string(part.get("toolCallId")) for part in objects(request.get("response")) if part.get("kind") in _SHOWN
        ]
        by_id = {call.call_id: call for call in calls}
        if by_id.keys().isdisjoint(shown) and len(calls) == len(shown):
            by_id = dict(zip(shown, calls, strict=True))
        return cls(by_id if shown else {}, [] if shown else calls)

    def asked(self, call_id: str) -> _Call | None:
        """The call that a part of the answer shows."""
        return self._by_part.get(call_id)

    def hidden(self) -> list[Draft]:
        """All calls, if no part of the answer shows any."""
        return [_draft(call, drafts.COMPLETED) for call in self._hidden]


def _call(given: Record, results: Record) -> _Call:
    call_id, arguments = string(given.get("id")), given.get("arguments")
    params = (object_in(arguments) or {"input": arguments}) if isinstance(arguments, str) else arguments
    result = results.get(call_id)
    told = drafts.readable([_told(part) for part in items(mapping(result).get("content"))]) if result else None
    return _Call(call_id, string(given.get("name")) or "tool", params or {}, told)


def _told(part: Any) -> Any:
    """A part of a result: text, or a tree that a prompt is rendered from."""
    value = mapping(part).get("value", part)
    return value if isinstance(value, str) else "".join(_leaves(mapping(value).get("node", value)))


def _leaves(tree: Any) -> list[str]:
    """The texts of a tree, in order."""
    texts: list[str] = []
    waiting = [tree]
    while waiting:
        node = mapping(waiting.pop())
        if text := string(node.get("text")):
            texts.append(f"\n{text}" if node.get("lineBreakBefore") and texts else text)
        waiting.extend(reversed(items(node.get("children"))))
    return texts


def ran(part: Record, calls: Calls, otherwise_id: str) -> Draft:
    """A call as the client shows it, with what the model asked for and got where that is kept."""
    call_id = string(part.get("toolCallId")) or otherwise_id
    asked = calls.asked(call_id)
    name = (asked.name if asked else "") or string(part.get("toolId")) or "tool"
    params = asked.params if asked else _params(part)
    result = asked.result if asked and asked.result else _result(part)
    draft = _draft(_Call(call_id, name, params, result), _status(part))
    if agent := string(part.get("subAgentInvocationId")):
        draft.more["tool"]["agent"] = agent
    return draft


def edit_of(part: Record, path: str, native_id: str) -> Draft:
    """A change to a file that is part of the answer."""
    groups = ([edit] if isinstance(edit, dict) else items(edit) for edit in items(part.get("edits")))
    texts = ["".join(string(edit.get("text")) for edit in objects(group)) for group in groups]
    call = _Call(native_id, "edit", {"path": path, "edits": [text for text in texts if text]}, "")
    return _draft(call, drafts.COMPLETED)


def _draft(call: _Call, status: str) -> Draft:
    draft = drafts.tool_draft(call.call_id, call.name, call.params, None)
    if status != drafts.PENDING:
        drafts.answer(draft, call.result or "", status)
    return draft


def _params(part: Record) -> Any:
    data = mapping(part.get("toolSpecificData"))
    given = {key: data[key] for key in _GIVEN if data.get(key)}
    line = mapping(given.get("commandLine"))
    if line:
        given["command"] = string(line.get("toolEdited")) or string(line.get("original"))
        del given["commandLine"]
    return given or {"description": _words(part.get("invocationMessage"))}


def _result(part: Record) -> str:
    """What the client shows of a result: details, the output of a terminal, else what it says was done."""
    details, data = mapping(part.get("resultDetails")), mapping(part.get("toolSpecificData"))
    output = details.get("output")
    told = string(output) or "\n".join(filter(None, (string(each.get("value")) for each in objects(output))))
    shown = (told, mapping(data.get("terminalCommandOutput")).get("text"), data.get("result"), data.get("output"))
    return next(filter(None, map(string, shown)), "") or _words(part.get("pastTenseMessage"))


def _status(part: Record) -> str:
    confirmed, data = part.get("isConfirmed"), mapping(part.get("toolSpecificData"))
    if confirmed is False or mapping(confirmed).get("type") in _REFUSALS:
        return drafts.REJECTED
    if part.get("isComplete") is False:
        return drafts.PENDING
    exit_code = number(mapping(data.get("terminalCommandState")).get("exitCode"))
    has_failed = mapping(part.get("resultDetails")).get("isError") is True or bool(exit_code)
    return drafts.FAILED if has_failed else drafts.COMPLETED


def _words(message: Any) -> str:
    return string(message) or string(mapping(message).get("value"))
