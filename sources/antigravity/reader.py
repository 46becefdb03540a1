"""Read the transcripts that Antigravity writes beside its own database, which only itself can read."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from registry.domain import Role, Session
from sources.antigravity.client import ANTIGRAVITY, FOLDERS
from sources.base import Places, Skipped
from sources.kit import drafts
from sources.kit.drafts import Conversation, Draft
from sources.kit.files import File, file_at, folders_in, small_text, store_entries
from sources.kit.jsonl import Damage, records_of
from sources.kit.loose_json import Record, items, mapping, string
from sources.kit.reader import FileReader, ParseFile, SessionFile, parse_lines

_LOGS = os.path.join(".system_generated", "logs")
# the best first: the second is shortened, the third is of older versions
_TRANSCRIPTS = ("transcript_full.jsonl", "transcript.jsonl", "overview.txt")
_REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*(?:</USER_REQUEST>|\Z)", re.DOTALL)
_BLOCK = re.compile(r"<(ADDITIONAL_METADATA|USER_SETTINGS_CHANGE|USER_INFORMATION)>.*?(?:</\1>|\Z)", re.DOTALL)
_MODEL = re.compile(r"setting `Model Selection` from .*? to ([^\n]+?)\.?\s*(?:</|\n|\Z)")
_TIMES = re.compile(r"\A(?:(?:Created|Completed) At: [^\n]*\n+)+[ \t]*")
_MARGIN = re.compile(r"^\t{2,}", re.MULTILINE)
# the client's names of parameters to those that the tools of all clients have
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
_SHOWN_ONLY = ("toolAction", "toolSummary", "waitForPreviousTools")
_BOOKKEEPING = (
    *("CONVERSATION_HISTORY", "EPHEMERAL_MESSAGE", "KNOWLEDGE_ARTIFACTS", "TASK_BOUNDARY"),
    *("DUMMY", "FINISH", "USER_SETTINGS_CHANGE"),
)


class Antigravity(FileReader):
    """Reads `brain/<id>/.system_generated/logs/`. Tokens lie above, in `~/.gemini`."""

    name = ANTIGRAVITY.source
    patterns = ("brain/*",)

    def roots(self, places: Places) -> Iterable[Path]:
        """Return the folders of the editor and of the command line."""
        return places.named("CTXR_ANTIGRAVITY_DIR") or [places.home / ".gemini" / folder for folder in FOLDERS]

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the best transcript of each conversation."""
        for folder in folders_in(store_entries(store / "brain")):
            found = (file_at(os.path.join(folder, _LOGS, name)) for name in _TRANSCRIPTS)
            best, session_id = next((file for file in found if file), None), os.path.basename(folder)
            if isinstance(best, File):
                yield SessionFile(best, session_id, session_id)
            elif best:
                yield best

    def parser(self, store: Path) -> ParseFile:
        """Return the parser of one transcript; the project of a conversation is noted in the list of prompts only."""
        lines = small_text(store / "history.jsonl").encode().splitlines(keepends=True)
        prompts = records_of(lines, Damage())
        projects = {string(prompt.get("conversationId")): string(prompt.get("workspace")) for prompt in prompts}
        return lambda file: parse_lines(file, AntigravityTranscript(file.session_id, projects.get(file.session_id, "")))


@dataclass(slots=True)
class AntigravityTranscript(Conversation):
    """Builds a conversation from numbered steps, in which results follow in the order of the calls. Pure."""

    _steps: dict[int, Record] = field(default_factory=dict)
    _waiting: deque[Draft] = field(default_factory=deque)
    _folders: dict[str, None] = field(default_factory=dict)

    def read(self, step: Record) -> None:
        """Add one step. One that ends late may be written twice: the last one is whole."""
        number = step.get("step_index")
        if not isinstance(number, int) or isinstance(number, bool):
            number = max(self._steps, default=-1) + 1
        self._steps[number] = step

    def session(self) -> Session:
        """Build the session from the steps; an unknown one is counted in `unknown`."""
        for place in sorted(self._steps):
            step = self._steps[place]
            _TYPES.get(string(step.get("type")), AntigravityTranscript._add_result)(self, step)
        return self.build(folders=[self.folder, *self._folders])

    def _add_question(self, step: Record) -> None:
        content = string(step.get("content"))
        if changed := _MODEL.search(content):
            self.model = changed[1].strip()
        asked = _REQUEST.search(content)
        typed = asked[1] if asked else _BLOCK.sub("", content).strip()
        if string(step.get("source")) == "SYSTEM":
            self._say(step, Role.SYSTEM, typed, injected=True)
        else:
            self._say(step, Role.USER, typed)

    def _add_answer(self, step: Record) -> None:
        self._say(step, Role.THINKING, string(step.get("thinking")), "thinking", model=self.model)
        self._say(step, Role.ASSISTANT, string(step.get("content")), model=self.model)
        for place, call in enumerate(map(mapping, items(step.get("tool_calls")))):
            given = mapping(call.get("args")) or mapping(call.get("arguments"))
            params = {_PARAMS.get(key, key): _decoded(value) for key, value in given.items() if key not in _SHOWN_ONLY}
            folder = string(params.pop("Cwd", "")) or self.folder
            self._folders[folder] = None
            name = string(call.get("name")).removeprefix("default_api:")
            self._waiting.append(self.call(_id(step, str(place)), name, params, _at(step), folder=folder))

    def _add_result(self, step: Record) -> None:
        """Add a result to the first call that waits for one: the step's type is only the kind of tool."""
        kind, result = string(step.get("type")), _result(step)
        if kind in _BOOKKEEPING:
            return
        went_wrong = string(step.get("status")) == "ERROR" or step.get("exit_code") not in (None, 0)
        outcome = drafts.FAILED if went_wrong else drafts.COMPLETED
        if self._waiting:
            self._waiting.popleft().answer(result, outcome, drafts.shortened(result))
        elif kind and result:  # some transcripts hold no calls
            self.call(_id(step), kind.lower(), {}, _at(step)).answer(result, outcome, drafts.shortened(result))
        else:
            self.unknown[f"step {kind or 'without type'}"] += 1

    def _add_error(self, step: Record) -> None:
        if self._waiting and "tool call" in f"{step.get('error')} {step.get('content')}":
            self._waiting.popleft().answer(_result(step), drafts.FAILED)
        else:
            self._say(step, Role.ERROR, _result(step))

    def _say(self, step: Record, role: Role, text: str, part: str = "", **more: Any) -> None:
        self.say(role, text.strip(), _at(step), _id(step, part), **more)


_TYPES: dict[str, Callable[[AntigravityTranscript, Record], None]] = {
    "USER_INPUT": AntigravityTranscript._add_question,
    "PLANNER_RESPONSE": AntigravityTranscript._add_answer,
    "ERROR_MESSAGE": AntigravityTranscript._add_error,
    "CHECKPOINT": lambda self, step: self._say(step, Role.SYSTEM, _result(step), injected=True, compaction={}),
    "SYSTEM_MESSAGE": lambda self, step: self._say(step, Role.SYSTEM, _result(step), injected=True),
}


def _at(step: Record) -> datetime | None:
    return drafts.moment(step.get("created_at"))


def _id(step: Record, part: str = "") -> str:
    return ":".join(filter(None, (str(step.get("step_index", "")), part)))


def _result(step: Record) -> str:
    text = string(step.get("content")) or string(step.get("error"))
    return _MARGIN.sub("", _TIMES.sub("", text)).strip()


def _decoded(value: object) -> Any:
    """Decode an argument, which the shortened transcript writes as JSON."""
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
