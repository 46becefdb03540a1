"""Parse a session of the chat in VS Code. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from registry.domain import Role, Session
from sources.kit import drafts
from sources.kit.contents import content_text
from sources.kit.loose_json import Record, items, mapping, number, objects, string, strings, text_at, value_at
from sources.kit.workspace_files import path_of

_IGNORED = (
    *("undoStop", "codeblockUri", "prepareToolInvocation", "mcpServersStarting", "mcpServersStartingSlow"),
    *("progressMessage", "progressTask", "progressTaskResult", "progressTaskSerialized", "confirmation", "command"),
    *("extensions", "pullRequest", "multiDiffData", "treeData", "hook", "elicitation", "elicitationSerialized"),
    *("questionCarousel", "planReview", "clearToPreviousToolInvocation", "disabledClaudeHooks", "workspaceEdit"),
    *("notebookEditGroup", "notebookEdit", "references", "usedContext", "codeCitation", "move", "externalEdit"),
)
_NOT_ATTACHED = ("implicit", "workspace", "promptText", "tool", "toolset")


class ModelCall(NamedTuple):
    call_id: str
    name: str
    params: Any
    result: str | None


@dataclass(slots=True)
class VsCodeChat(drafts.Conversation):
    """Builds a session from its JSON object. Consecutive pieces of text become one message.

    `listed_title`: the title in the list of sessions, used if the user has not named the session.
    """

    given: Record = field(default_factory=dict)
    project: str | None = None
    listed_title: str = ""
    _answer_start: int = 0
    _text: list[str] = field(default_factory=list)
    _chunks: int = 0
    _thought_id: str = ""
    _model_calls: dict[str, ModelCall] = field(default_factory=dict)

    def session(self) -> Session:
        """Return the conversation, with undone requests marked."""
        for index, request in enumerate(objects(self.given.get("requests"))):
            before = len(self.drafts)
            self.begin(string(request.get("requestId")) or f"#{index}", request.get("timestamp"))
            self._chunks, self._thought_id = 0, ""
            self._add_question(request)
            resolved = text_at(request, "result", "metadata", "resolvedModel")
            self.model = resolved or string(request.get("modelId")).removeprefix("copilot/")
            self.at, self._answer_start = None, len(self.drafts)
            self._add_answer(request)
            drafts.supersede(self.drafts[before:] if request.get("shouldBeRemovedOnSend") else ())
        self.session_id = string(self.given.get("sessionId")) or self.session_id
        titles = (self.given.get("customTitle"), self.listed_title, self.given.get("computedTitle"))
        began = drafts.moment(self.given.get("creationDate")) or self.given.get("lastMessageDate")
        return self.build(*titles, project=self.project, began=began)

    def _add_question(self, request: Record) -> None:
        message = request.get("message")
        variables = objects(value_at(request, "variableData", "variables"))
        # without the open file, instructions and tools, which the client adds
        chosen = (v for v in variables if not (v.get("automaticallyAdded") or v.get("kind") in _NOT_ATTACHED))
        names = list(dict.fromkeys(filter(None, (string(v.get("name")) or path_of(v.get("value")) for v in chosen))))
        self.say(Role.USER, string(message) or text_at(message, "text"), attachments=names)

    def _add_answer(self, request: Record) -> None:
        self._model_calls, unshown = calls_of(request)
        for part in items(request.get("response")):
            given = {"value": part} if isinstance(part, str) else mapping(part)
            kind = string(given.get("kind"))
            if handler := _PARTS.get(kind):
                handler(self, given)
            elif kind not in _IGNORED:
                self.count_unknown("part", kind)
        self._end_text()
        for call in unshown:
            self._put(call, drafts.COMPLETED)
        self.say(Role.ERROR, text_at(request, "result", "errorDetails", "message"), ":error")

    def _add_text(self, part: Record) -> None:
        text = words_of(part.get("content", part.get("value")))
        if text.strip() or self._text:
            self._text.append(text)

    def _add_reference(self, part: Record) -> None:
        """Append the name of a file or symbol to the current text."""
        reference = mapping(part.get("inlineReference"))
        location = mapping(reference.get("location")) or reference
        path = path_of(location.get("uri", location))
        name = string(part.get("name")) or string(reference.get("name")) or path.replace("\\", "/").rpartition("/")[2]
        self._text.append(f"`{name}`" if name else "")

    def _add_thought(self, part: Record) -> None:
        """Add a thought, or continue the last one."""
        value, thought_id = part.get("value"), string(part.get("id"))
        text = value if isinstance(value, str) else "".join(strings(value))
        if not text.strip():
            return
        self._end_text()
        last = self.drafts[-1] if self.drafts[self._answer_start :] else None
        if last and last.role is Role.THINKING and thought_id and thought_id == self._thought_id:
            last.parts[-1] += text
        else:
            self._thought_id = thought_id
            self._say(Role.THINKING, text)

    def _add_call(self, part: Record) -> None:
        self._end_text()
        self._put(shown_call(part, self._model_calls, self._new_id("tool")), _status(part))

    def _add_edit(self, part: Record) -> None:
        if path := path_of(part.get("uri")):
            self._end_text()
            groups = ([edit] if isinstance(edit, dict) else items(edit) for edit in items(part.get("edits")))
            texts = ["".join(string(edit.get("text")) for edit in objects(group)) for group in groups]
            params = {"path": path, "edits": [text for text in texts if text]}
            self._put(ModelCall(self._new_id("edit"), "edit", params, ""), drafts.COMPLETED)

    def _add_warning(self, part: Record) -> None:
        self._end_text()
        self._say(Role.SYSTEM, words_of(part.get("content")), injected=True)

    def _end_text(self) -> None:
        text, self._text = "".join(self._text).strip(), []
        if text:
            self._say(Role.ASSISTANT, text)

    def _new_id(self, kind: str) -> str:
        return f"{self.record_id}:{kind}:{len(self.drafts) - self._answer_start}"

    def _put(self, call: ModelCall, status: str) -> None:
        self.call(call.call_id, call.name, call.params).set_result(call.result or "", status)

    def _say(self, role: Role, text: str, **more: Any) -> None:
        self._chunks += 1
        self.say(role, text, f":{self._chunks}", **more)


_PARTS: dict[str, Callable[[VsCodeChat, Record], None]] = {
    "": VsCodeChat._add_text,
    "markdownContent": VsCodeChat._add_text,
    "markdownVuln": VsCodeChat._add_text,
    "inlineReference": VsCodeChat._add_reference,
    "thinking": VsCodeChat._add_thought,
    "toolInvocationSerialized": VsCodeChat._add_call,
    "toolInvocation": VsCodeChat._add_call,
    "textEditGroup": VsCodeChat._add_edit,
    "textEdit": VsCodeChat._add_edit,
    "warning": VsCodeChat._add_warning,
}


# Tool calls. Each is stored twice: as a part of the answer, as shown to the user, and in `toolCallRounds` with
# `toolCallResults`, as requested by the model.

_GIVEN = ("rawInput", "input", "commandLine", "command", "prompt", "todoList")


def calls_of(request: Record) -> tuple[dict[str, ModelCall], list[ModelCall]]:
    """Return the model's calls by the id of the part that shows them, and all calls if no part shows one.

    They are matched by id, or by their order if no id matches and both have the same number.
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
    params = drafts.params_of(given.get("arguments")) or {}
    return ModelCall(call_id, string(given.get("name")) or "tool", params, content_text(parts) if result else None)


def _result_part(part: Any) -> str:
    """Return the text of a part of a result, which is a text or a tree of texts."""
    value = mapping(part).get("value", part)
    if isinstance(value, str):
        return value
    texts: list[str] = []
    stack = [mapping(value).get("node", value)]
    while stack:
        node = mapping(stack.pop())
        if text := string(node.get("text")):
            texts.append(f"\n{text}" if node.get("lineBreakBefore") and texts else text)
        stack.extend(reversed(items(node.get("children"))))
    return "".join(texts)


def shown_call(part: Record, model_calls: dict[str, ModelCall], fallback_id: str) -> ModelCall:
    """Return a call as the client shows it, with the model's parameters and result if they are stored."""
    call_id = string(part.get("toolCallId")) or fallback_id
    shown = ModelCall(call_id, string(part.get("toolId")) or "tool", _params(part), _result(part))
    if model_call := model_calls.get(call_id):
        return ModelCall(call_id, model_call.name, model_call.params, model_call.result or shown.result)
    return shown


def _params(part: Record) -> Any:
    data = mapping(part.get("toolSpecificData"))
    given = {key: data[key] for key in _GIVEN if data.get(key)}
    if line := mapping(given.get("commandLine")):
        given["command"] = string(line.get("toolEdited")) or string(line.get("original"))
        del given["commandLine"]
    return given or {"description": words_of(part.get("invocationMessage"))}


def _result(part: Record) -> str:
    """Return the displayed result: its details, the terminal's output, or else the completion message."""
    details, data = mapping(part.get("resultDetails")), mapping(part.get("toolSpecificData"))
    output = details.get("output")
    text = string(output) or "\n".join(filter(None, map(_output_text, objects(output))))
    shown = (text, mapping(data.get("terminalCommandOutput")).get("text"), data.get("result"), data.get("output"))
    return next(filter(None, map(string, shown)), "") or words_of(part.get("pastTenseMessage"))


def _output_text(output: Record) -> str:
    """Return a part of an output: its text, or the media type of a picture, whose value is Base64."""
    media_type = string(output.get("mimeType"))
    is_text = output.get("isText") is not False and not media_type.startswith("image/")
    return string(output.get("value")) if is_text else f"[{media_type or 'file'}]"


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
