"""What a transcript of Antigravity says: numbered steps, the results of calls in the order of the calls. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.base import Skipped
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string

TITLE_WIDTH = 80
_REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*(?:</USER_REQUEST>|\Z)", re.DOTALL)
_BLOCK = re.compile(r"<(ADDITIONAL_METADATA|USER_SETTINGS_CHANGE|USER_INFORMATION)>.*?(?:</\1>|\Z)", re.DOTALL)
_MODEL = re.compile(r"setting `Model Selection` from .*? to ([^\n]+?)\.?\s*(?:</|\n|\Z)")
_TIMES = re.compile(r"\A(?:(?:Created|Completed) At: [^\n]*\n+)+[ \t]*")
_MARGIN = re.compile(r"^\t{2,}", re.MULTILINE)
_PREFIX = "default_api:"
_PARAMS = {
    **dict.fromkeys(("AbsolutePath", "TargetFile"), "file_path"),
    **dict.fromkeys(("DirectoryPath", "SearchPath", "SearchDirectory"), "path"),
    "CommandLine": "command",
    "Query": "query",
    "Url": "url",
    "CodeContent": "content",
    "ReplacementContent": "new_string",
    "TargetContent": "old_string",
}
"""Their names for what all clients' tools take."""
_SHOWN_ONLY = ("toolAction", "toolSummary", "waitForPreviousTools")
_BOOKKEEPING = frozenset(
    (
        *("CONVERSATION_HISTORY", "EPHEMERAL_MESSAGE", "KNOWLEDGE_ARTIFACTS", "TASK_BOUNDARY"),
        *("DUMMY", "FINISH", "USER_SETTINGS_CHANGE"),
    )
)


@dataclass(slots=True)
class Transcript:
    """A conversation in the making: hand it the steps, then ask for the session. `folder`: worked in, where known."""

    session_id: str
    folder: str = ""
    unknown: Counter[str] = field(default_factory=Counter)
    _steps: dict[int, Record] = field(default_factory=dict)
    _drafts: list[Draft] = field(default_factory=list)
    _waiting: deque[Draft] = field(default_factory=deque)
    _model: str = ""
    _folders: list[str] = field(default_factory=list)

    def read(self, step: Record) -> None:
        """Take in one step. One that ends late is written late, perhaps for the second time: the last one is whole."""
        number = step.get("step_index")
        if not isinstance(number, int) or isinstance(number, bool):
            number = max(self._steps, default=-1) + 1
        self._steps[number] = step

    def session(self) -> Session:
        """The session that the steps make; what is not understood is counted in `unknown`."""
        for place in sorted(self._steps):
            step = self._steps[place]
            _TYPES.get(string(step.get("type")), Transcript._came_of_it)(self, step)
        words = next((draft.parts[0] for draft in self._drafts if draft.role is Role.USER and draft.parts), "")
        title = preview_of(words, TITLE_WIDTH) if words.strip() else None
        return Session(
            session_id=self.session_id,
            messages=drafts.messages_of(self._drafts),
            title=title,
            project=drafts.project_of([self.folder, *self._folders]),
            meta={"title_from": "first words"} if title else {},
        )

    def skipped(self) -> tuple[Skipped, ...]:
        """What was passed over because this reader does not know it."""
        return tuple(Skipped(f"{count} x {what}", "unknown to this reader") for what, count in self.unknown.items())

    def _asked(self, step: Record) -> None:
        content = string(step.get("content"))
        if changed := _MODEL.search(content):
            self._model = changed[1].strip()
        asked = _REQUEST.search(content)
        typed = asked[1] if asked else _BLOCK.sub("", content).strip()
        if string(step.get("source")) == "SYSTEM":
            self._say(step, Role.SYSTEM, typed, injected=True)
        else:
            self._say(step, Role.USER, typed)

    def _answered(self, step: Record) -> None:
        beside = {"model": self._model} if self._model else {}
        self._say(step, Role.THINKING, string(step.get("thinking")), "thinking", **beside)
        self._say(step, Role.ASSISTANT, string(step.get("content")), **beside)
        for place, call in enumerate(map(mapping, items(step.get("tool_calls")))):
            self._called(step, call, place)

    def _called(self, step: Record, call: Record, place: int) -> None:
        name = string(call.get("name")).removeprefix(_PREFIX) or "tool"
        given = mapping(call.get("args")) or mapping(call.get("arguments"))
        params = {_PARAMS.get(key, key): _decoded(value) for key, value in given.items() if key not in _SHOWN_ONLY}
        folder = string(params.pop("Cwd", "")) or self.folder
        if folder and folder not in self._folders:
            self._folders.append(folder)
        made = drafts.tool_draft(_id(step, str(place)), name, params, _at(step), folder=folder)
        self._waiting.append(made)
        self._drafts.append(made)

    def _came_of_it(self, step: Record) -> None:
        """What came of a call. The step's type is the kind of tool: the first call that waits is the one."""
        kind, result = string(step.get("type")), _result(step)
        if kind in _BOOKKEEPING:
            return
        if self._waiting:
            drafts.answer(self._waiting.popleft(), result, _outcome(step), drafts.shortened(result))
        elif kind and result:  # some transcripts hold no calls
            made = drafts.tool_draft(_id(step), kind.lower(), {}, _at(step))
            drafts.answer(made, result, _outcome(step), drafts.shortened(result))
            self._drafts.append(made)
        else:
            self.unknown[f"step {kind or 'without type'}"] += 1

    def _failed(self, step: Record) -> None:
        if self._waiting and "tool call" in f"{step.get('error')} {step.get('content')}":
            drafts.answer(self._waiting.popleft(), _result(step), drafts.FAILED)
        else:
            self._say(step, Role.ERROR, _result(step))

    def _noted(self, step: Record) -> None:
        self._say(step, Role.SYSTEM, _result(step), injected=True)

    def _compacted(self, step: Record) -> None:
        self._say(step, Role.SYSTEM, _result(step), injected=True, compaction={})

    def _say(self, step: Record, role: Role, text: str, part: str = "", **more: Any) -> None:
        if text.strip():
            self._drafts.append(Draft(role, [text.strip()], _at(step), {"native_id": _id(step, part), **more}))


_TYPES: dict[str, Callable[[Transcript, Record], None]] = {
    "USER_INPUT": Transcript._asked,
    "PLANNER_RESPONSE": Transcript._answered,
    "ERROR_MESSAGE": Transcript._failed,
    "CHECKPOINT": Transcript._compacted,
    "SYSTEM_MESSAGE": Transcript._noted,
}


def _at(step: Record) -> datetime | None:
    return drafts.moment(step.get("created_at"))


def _id(step: Record, part: str = "") -> str:
    return ":".join(filter(None, (str(step.get("step_index", "")), part)))


def _result(step: Record) -> str:
    text = string(step.get("content")) or string(step.get("error"))
    return _MARGIN.sub("", _TIMES.sub("", text)).strip()


def _outcome(step: Record) -> str:
    went_wrong = string(step.get("status")) == "ERROR" or step.get("exit_code") not in (None, 0)
    return drafts.FAILED if went_wrong else drafts.COMPLETED


def _decoded(value: object) -> Any:
    """The shortened transcript writes each argument as the JSON of it."""
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
