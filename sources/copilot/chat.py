"""What a session of the chat in VS Code says. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.base import Skipped
from sources.copilot.tools import Calls, edit_of, ran
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string
from sources.kit.loose_json import objects, strings
from sources.kit.workspace_files import path_of

TITLE_WIDTH = 80
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
class Chat:
    """One session in the making: hand it the whole, then ask for the session.

    `listed_title`: the title in the list of sessions, for those that nobody has named.
    """

    given: Record
    session_id: str
    project: str | None = None
    listed_title: str = ""
    unknown: Counter[str] = field(default_factory=Counter)

    def session(self) -> Session:
        """The conversation; requests that were undone are marked."""
        found = [
            draft
            for place, request in enumerate(objects(self.given.get("requests")))
            for draft in self._turn(request, place)
        ]
        title_from, title = self._title(found)
        return Session(
            session_id=string(self.given.get("sessionId")) or self.session_id,
            messages=drafts.messages_of(found, drafts.moment(self.given.get("creationDate"))),
            title=title,
            project=self.project or None,
            meta={"title_from": title_from} if title_from else {},
        )

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    def _title(self, found: list[Draft]) -> tuple[str, str] | tuple[None, None]:
        titles = {
            "custom title": string(self.given.get("customTitle")),
            "list": self.listed_title,
            "computed title": string(self.given.get("computedTitle")),
            "first words": next((draft.parts[0] for draft in found if draft.role is Role.USER and draft.parts), ""),
        }
        for origin, title in titles.items():
            if title.strip():
                return origin, preview_of(title, TITLE_WIDTH if origin == "first words" else 4 * TITLE_WIDTH)
        return None, None

    def _turn(self, request: Record, place: int) -> Iterator[Draft]:
        request_id = string(request.get("requestId")) or f"#{place}"
        for draft in (
            _question(request, request_id),
            *self._answer(request, request_id),
            *_failure(request, request_id),
        ):
            if draft.role is not Role.USER and (model := _model(request)):
                draft.more["model"] = model
            if request.get("shouldBeRemovedOnSend"):
                draft.more["superseded"] = True
            yield draft

    def _answer(self, request: Record, request_id: str) -> list[Draft]:
        answer = _Answer(request_id, Calls.of(request))
        for part in items(request.get("response")):
            given = {"value": part} if isinstance(part, str) else mapping(part)
            kind = string(given.get("kind"))
            if handler := _PARTS.get(kind):
                handler(answer, given)
            elif kind not in _IGNORED:
                self.unknown[f"part {kind}"] += 1
        return answer.finished()


@dataclass(slots=True)
class _Answer:
    """The parts of one answer on their way to messages; text that comes in pieces is one message."""

    request_id: str
    calls: Calls
    drafts: list[Draft] = field(default_factory=list)
    _text: list[str] = field(default_factory=list)
    _chunks: int = 0
    _thought_id: str = ""

    def finished(self) -> list[Draft]:
        """The messages; calls that the client shows nowhere come last."""
        self._end_text()
        self.drafts += self.calls.hidden()
        return self.drafts

    def say(self, part: Record) -> None:
        """More of the text."""
        content = part.get("content", part.get("value"))
        text = string(content) or string(mapping(content).get("value"))
        if text.strip() or self._text:
            self._text.append(text)

    def refer(self, part: Record) -> None:
        """A file or symbol in the middle of a sentence."""
        reference = mapping(part.get("inlineReference"))
        location = mapping(reference.get("location")) or reference
        path = path_of(location.get("uri", location))
        name = string(part.get("name")) or string(reference.get("name")) or path.replace("\\", "/").rpartition("/")[2]
        self._text.append(f"`{name}`" if name else "")

    def think(self, part: Record) -> None:
        """A thought, or more of the last one."""
        value = part.get("value")
        text = value if isinstance(value, str) else "".join(strings(value))
        if not text.strip():
            return
        self._end_text()
        thought_id = string(part.get("id"))
        last = self.drafts[-1] if self.drafts else None
        if last and last.role is Role.THINKING and thought_id and thought_id == self._thought_id:
            last.parts[-1] += text
            return
        self._thought_id = thought_id
        self._put(Role.THINKING, text)

    def run(self, part: Record) -> None:
        """A tool call."""
        self._end_text()
        self.drafts.append(ran(part, self.calls, f"{self.request_id}:tool:{len(self.drafts)}"))

    def edit(self, part: Record) -> None:
        """A file that the answer changes."""
        if path := path_of(part.get("uri")):
            self._end_text()
            self.drafts.append(edit_of(part, path, f"{self.request_id}:edit:{len(self.drafts)}"))

    def warn(self, part: Record) -> None:
        """A remark of the client."""
        self._end_text()
        content = part.get("content")
        text = string(content) or string(mapping(content).get("value"))
        self._put(Role.SYSTEM, text, injected=True)

    def _end_text(self) -> None:
        text, self._text = "".join(self._text).strip(), []
        if text:
            self._put(Role.ASSISTANT, text)

    def _put(self, role: Role, text: str, **more: Any) -> None:
        self._chunks += 1
        native_id = f"{self.request_id}:{self._chunks}"
        self.drafts.append(Draft(role, [text] if text else [], None, {"native_id": native_id, **more}))


def _question(request: Record, request_id: str) -> Draft:
    message = request.get("message")
    text = (string(message) or string(mapping(message).get("text"))).strip()
    draft = Draft(Role.USER, [text] if text else [], drafts.moment(request.get("timestamp")), {"native_id": request_id})
    for name in dict.fromkeys(
        filter(None, map(_attachment, objects(mapping(request.get("variableData")).get("variables"))))
    ):
        draft.attach(name)
    return draft


def _attachment(variable: Record) -> str:
    """What was attached by hand; the client adds the open file, instructions and tools by itself."""
    if variable.get("automaticallyAdded") or variable.get("kind") in _NOT_ATTACHED:
        return ""
    return string(variable.get("name")) or path_of(variable.get("value"))


def _failure(request: Record, request_id: str) -> Iterator[Draft]:
    if text := string(mapping(mapping(request.get("result")).get("errorDetails")).get("message")).strip():
        yield Draft(Role.ERROR, [text], None, {"native_id": f"{request_id}:error"})


def _model(request: Record) -> str:
    metadata = mapping(mapping(request.get("result")).get("metadata"))
    return string(metadata.get("resolvedModel")) or string(request.get("modelId")).removeprefix("copilot/")


_PARTS: dict[str, Callable[[_Answer, Record], None]] = {
    "": _Answer.say,
    "markdownContent": _Answer.say,
    "markdownVuln": _Answer.say,
    "inlineReference": _Answer.refer,
    "thinking": _Answer.think,
    "toolInvocationSerialized": _Answer.run,
    "toolInvocation": _Answer.run,
    "textEditGroup": _Answer.edit,
    "textEdit": _Answer.edit,
    "warning": _Answer.warn,
}
