"""Parse a session of the chat in VS Code. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role, Session
from sources.copilot.tools import ModelCall, calls_of, edit_of, shown_call, words_of
from sources.kit import drafts
from sources.kit.drafts import Conversation, Draft, supersede
from sources.kit.loose_json import Record, items, mapping, objects, string, strings, text_at, value_at
from sources.kit.workspace_files import path_of

_IGNORED = frozenset(
    (
        *("undoStop", "codeblockUri", "prepareToolInvocation", "mcpServersStarting", "mcpServersStartingSlow"),
        *("progressMessage", "progressTask", "progressTaskResult", "progressTaskSerialized", "confirmation", "command"),
        *("extensions", "pullRequest", "multiDiffData", "treeData", "hook", "elicitation", "elicitationSerialized"),
        *("questionCarousel", "planReview", "clearToPreviousToolInvocation", "disabledClaudeHooks", "workspaceEdit"),
        *("notebookEditGroup", "notebookEdit", "references", "usedContext", "codeCitation", "move", "externalEdit"),
    )
)
_NOT_ATTACHED = ("implicit", "workspace", "promptText", "tool", "toolset")


@dataclass(slots=True)
class VsCodeChat(Conversation):
    """Builds a session from the object in which it is kept. Text that comes in pieces is one message.

    `listed_title`: the title in the list of sessions, for those that nobody has named.
    """

    given: Record = field(default_factory=dict)
    project: str | None = None
    listed_title: str = ""
    _answered_from: int = 0
    _text: list[str] = field(default_factory=list)
    _chunks: int = 0
    _thought_id: str = ""
    _asked: dict[str, ModelCall] = field(default_factory=dict)

    def session(self) -> Session:
        """Return the conversation; requests that were undone are marked."""
        for place, request in enumerate(objects(self.given.get("requests"))):
            before = len(self.drafts)
            self.begin(string(request.get("requestId")) or f"#{place}", request.get("timestamp"))
            self._chunks, self._thought_id = 0, ""
            self._add_question(request)
            self.at, self.model, self._answered_from = None, _model(request), len(self.drafts)
            self._add_answer(request)
            supersede(self.drafts[before:] if request.get("shouldBeRemovedOnSend") else ())
        self.session_id = string(self.given.get("sessionId")) or self.session_id
        titles = (self.given.get("customTitle"), self.listed_title, self.given.get("computedTitle"))
        return self.build(*titles, project=self.project, began=self.given.get("creationDate"))

    def _add_question(self, request: Record) -> None:
        message = request.get("message")
        variables = objects(value_at(request, "variableData", "variables"))
        names = list(dict.fromkeys(filter(None, map(_attachment, variables))))
        self.say(Role.USER, string(message) or text_at(message, "text"), attachments=names)

    def _add_answer(self, request: Record) -> None:
        self._asked, hidden = calls_of(request)
        for part in items(request.get("response")):
            given = {"value": part} if isinstance(part, str) else mapping(part)
            kind = string(given.get("kind"))
            if handler := _PARTS.get(kind):
                handler(self, given)
            elif kind not in _IGNORED:
                self.pass_over("part", kind)
        self._end_text()
        for call in hidden:
            self._put(call.draft(drafts.COMPLETED))
        self.say(Role.ERROR, text_at(request, "result", "errorDetails", "message"), ":error")

    def _add_text(self, part: Record) -> None:
        text = words_of(part.get("content", part.get("value")))
        if text.strip() or self._text:
            self._text.append(text)

    def _add_reference(self, part: Record) -> None:
        """Add a file or symbol in the middle of a sentence."""
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
        last = self.drafts[-1] if self.drafts[self._answered_from :] else None
        if last and last.role is Role.THINKING and thought_id and thought_id == self._thought_id:
            last.parts[-1] += text
        else:
            self._thought_id = thought_id
            self._say(Role.THINKING, text)

    def _add_call(self, part: Record) -> None:
        self._end_text()
        self._put(shown_call(part, self._asked, self._new_id("tool")))

    def _add_edit(self, part: Record) -> None:
        if path := path_of(part.get("uri")):
            self._end_text()
            self._put(edit_of(part, path, self._new_id("edit")))

    def _add_warning(self, part: Record) -> None:
        self._end_text()
        self._say(Role.SYSTEM, words_of(part.get("content")), injected=True)

    def _end_text(self) -> None:
        text, self._text = "".join(self._text).strip(), []
        if text:
            self._say(Role.ASSISTANT, text)

    def _new_id(self, kind: str) -> str:
        return f"{self.record_id}:{kind}:{len(self.drafts) - self._answered_from}"

    def _put(self, call: Draft) -> None:
        call.more |= {"model": self.model} if self.model else {}
        self.drafts.append(call)

    def _say(self, role: Role, text: str, **more: Any) -> None:
        self._chunks += 1
        self.say(role, text, f":{self._chunks}", **more)


def _attachment(variable: Record) -> str:
    """Return the name of an attachment; the client adds the open file, instructions and tools by itself."""
    if variable.get("automaticallyAdded") or variable.get("kind") in _NOT_ATTACHED:
        return ""
    return string(variable.get("name")) or path_of(variable.get("value"))


def _model(request: Record) -> str:
    resolved = text_at(request, "result", "metadata", "resolvedModel")
    return resolved or string(request.get("modelId")).removeprefix("copilot/")


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
