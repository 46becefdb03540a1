"""Parse a tool call of the chat in VS Code. Pure.

A call is kept twice: as a part of the answer, which the user saw, and in `toolCallRounds` with `toolCallResults`, as
the model made it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sources.kit import drafts
from sources.kit.drafts import Draft, params_of
from sources.kit.loose_json import Record, items, mapping, number, objects, string, text_at, value_at

_GIVEN = ("rawInput", "input", "commandLine", "command", "prompt", "todoList")


class ModelCall(NamedTuple):
    """A call as the model made it."""

    call_id: str
    name: str
    params: Any
    result: str | None

    def draft(self, status: str) -> Draft:
        draft = drafts.tool_draft(self.call_id, self.name, self.params, None)
        draft.answer(self.result or "", status)
        return draft


def calls_of(request: Record) -> tuple[dict[str, ModelCall], list[ModelCall]]:
    """Return the calls of a request by the id of the part that shows each, and all of them if no part shows any.

    They are matched by id; if no id matches and there are as many of both, in order.
    """
    metadata = mapping(value_at(request, "result", "metadata"))
    results = mapping(metadata.get("toolCallResults"))
    rounds = objects(metadata.get("toolCallRounds"))
    calls = [_call(call, results) for each in rounds for call in objects(each.get("toolCalls"))]
    kinds = ("toolInvocationSerialized", "toolInvocation")
    shown = [string(part.get("toolCallId")) for part in objects(request.get("response")) if part.get("kind") in kinds]
    if not shown:
        return {}, calls
    by_id = {call.call_id: call for call in calls}
    if by_id.keys().isdisjoint(shown) and len(calls) == len(shown):
        by_id = dict(zip(shown, calls, strict=True))
    return by_id, []


def _call(given: Record, results: Record) -> ModelCall:
    call_id = string(given.get("id"))
    result = results.get(call_id)
    parts = [_result_part(part) for part in items(mapping(result).get("content"))]
    params = params_of(given.get("arguments")) or {}
    return ModelCall(
        call_id, string(given.get("name")) or "tool", params, drafts.content_text(parts) if result else None
    )


def _result_part(part: Any) -> str:
    """Return a part of a result: text, or the texts of the tree that a prompt is rendered from, in order."""
    value = mapping(part).get("value", part)
    if isinstance(value, str):
        return value
    texts: list[str] = []
    waiting = [mapping(value).get("node", value)]
    while waiting:
        node = mapping(waiting.pop())
        if text := string(node.get("text")):
            texts.append(f"\n{text}" if node.get("lineBreakBefore") and texts else text)
        waiting.extend(reversed(items(node.get("children"))))
    return "".join(texts)


def shown_call(part: Record, asked: dict[str, ModelCall], otherwise_id: str) -> Draft:
    """Return a call as the client shows it, with the model's parameters and result where they are kept."""
    call_id = string(part.get("toolCallId")) or otherwise_id
    shown = ModelCall(call_id, string(part.get("toolId")) or "tool", _params(part), _result(part))
    if own := asked.get(call_id):
        shown = ModelCall(call_id, own.name, own.params, own.result or shown.result)
    draft = shown.draft(_status(part))
    if agent := string(part.get("subAgentInvocationId")):
        draft.more["tool"]["agent"] = agent
    return draft


def edit_of(part: Record, path: str, native_id: str) -> Draft:
    """Return a change to a file that is part of the answer."""
    groups = ([edit] if isinstance(edit, dict) else items(edit) for edit in items(part.get("edits")))
    texts = ["".join(string(edit.get("text")) for edit in objects(group)) for group in groups]
    call = ModelCall(native_id, "edit", {"path": path, "edits": [text for text in texts if text]}, "")
    return call.draft(drafts.COMPLETED)


def _params(part: Record) -> Any:
    data = mapping(part.get("toolSpecificData"))
    given = {key: data[key] for key in _GIVEN if data.get(key)}
    if line := mapping(given.get("commandLine")):
        given["command"] = string(line.get("toolEdited")) or string(line.get("original"))
        del given["commandLine"]
    return given or {"description": words_of(part.get("invocationMessage"))}


def _result(part: Record) -> str:
    """Return the shown result: details, the output of a terminal, else the message that it was done."""
    details, data = mapping(part.get("resultDetails")), mapping(part.get("toolSpecificData"))
    output = details.get("output")
    text = string(output) or "\n".join(filter(None, (string(each.get("value")) for each in objects(output))))
    shown = (text, mapping(data.get("terminalCommandOutput")).get("text"), data.get("result"), data.get("output"))
    return next(filter(None, map(string, shown)), "") or words_of(part.get("pastTenseMessage"))


def _status(part: Record) -> str:
    confirmed, data = part.get("isConfirmed"), mapping(part.get("toolSpecificData"))
    if confirmed is False or mapping(confirmed).get("type") in (0, 5):  # denied, skipped
        return drafts.REJECTED
    if part.get("isComplete") is False:
        return drafts.PENDING
    exit_code = number(mapping(data.get("terminalCommandState")).get("exitCode"))
    has_failed = mapping(part.get("resultDetails")).get("isError") is True or bool(exit_code)
    return drafts.FAILED if has_failed else drafts.COMPLETED


def words_of(message: Any) -> str:
    return string(message) or text_at(message, "value")
