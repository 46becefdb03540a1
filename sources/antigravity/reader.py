"""Read the transcripts that Antigravity writes in addition to its database, which only Antigravity can read."""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from registry.domain import Role, Session
from sources.base import Paths
from sources.clients import ANTIGRAVITY
from sources.kit import drafts
from sources.kit.files import File, read_small_text
from sources.kit.jsonl import Damage, records_of
from sources.kit.loose_json import Record, mapping, objects, parse_nested, string
from sources.kit.reader import FileReader, ParseFile, SessionFile, parse_records

# below `~/.gemini`: the folder of the command line, and those of newer and older versions of the editor
_FOLDERS = ("antigravity-cli", "antigravity-ide", "antigravity")
_REQUEST = re.compile(r"<USER_REQUEST>\s*(.*?)\s*(?:</USER_REQUEST>|\Z)", re.DOTALL)
_BLOCK = re.compile(r"<(ADDITIONAL_METADATA|USER_SETTINGS_CHANGE|USER_INFORMATION)>.*?(?:</\1>|\Z)", re.DOTALL)
_MODEL = re.compile(r"setting `Model Selection` from .*? to ([^\n]+?)\.?\s*(?:</|\n|\Z)")
_TIMES = re.compile(r"\A(?:(?:Created|Completed) At: [^\n]*\n+)+[ \t]*")
_MARGIN = re.compile(r"^\t{2,}", re.MULTILINE)
# parameter names of the client's tools, and the names that the tools of all clients have
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
    """Reads `brain/<id>/.system_generated/logs/`. Never open other files: `~/.gemini` has tokens."""

    client = ANTIGRAVITY
    patterns = tuple(  # the best first: the second is shortened, the third is of older versions
        f"brain/*/.system_generated/logs/{name}"
        for name in ("transcript_full.jsonl", "transcript.jsonl", "overview.txt")
    )

    unreadable = dict.fromkeys(("conversations/*.pb", "conversations/*.db"), "only Antigravity can read it")

    def roots(self, paths: Paths) -> Iterable[Path]:
        return paths.named("CTXR_ANTIGRAVITY_DIR") or [paths.home / ".gemini" / folder for folder in _FOLDERS]

    def session_file(self, file: File) -> SessionFile:
        """Return the transcript; the folder's name is the session id."""
        session_id = Path(file.path).parents[2].name
        return SessionFile(file, session_id, session_id)

    def parser(self, store: Path) -> ParseFile:
        """Return the parser of a transcript. Only the list of prompts names the projects of conversations."""
        lines = read_small_text(store / "history.jsonl").encode().splitlines(keepends=True)
        prompts = records_of(lines, Damage())
        projects = {string(prompt.get("conversationId")): string(prompt.get("workspace")) for prompt in prompts}
        return lambda file: parse_records(
            file, AntigravityTranscript(file.session_id, projects.get(file.session_id, ""))
        )


@dataclass(slots=True)
class AntigravityTranscript(drafts.Conversation):
    """Builds a conversation from numbered steps. Results have the order of their calls. Pure."""

    _steps: dict[int, Record] = field(default_factory=dict)
    _pending_calls: deque[drafts.Draft] = field(default_factory=deque)

    def read(self, step: Record) -> None:
        """Store a step. A long step may be written twice; the last copy is complete."""
        number = step.get("step_index")
        if not isinstance(number, int) or isinstance(number, bool):
            number = max(self._steps, default=-1) + 1
        self._steps[number] = step

    def session(self) -> Session:
        for number, step in sorted(self._steps.items()):
            self.begin(str(number), step.get("created_at"))
            self._add(step, string(step.get("type")))
        return self.build()

    def _add(self, step: Record, kind: str) -> None:
        if kind == "USER_INPUT":
            self._add_question(step)
        elif kind == "PLANNER_RESPONSE":
            self._add_answer(step)
        elif kind == "CHECKPOINT":
            self.inject(_result(step), compaction={})
        elif kind == "SYSTEM_MESSAGE":
            self.inject(_result(step))
        elif kind == "ERROR_MESSAGE":
            is_refused = "tool call" in f"{step.get('error')} {step.get('content')}"
            if self._pending_calls and is_refused:
                self._pending_calls.popleft().set_result(_result(step), drafts.FAILED)
            else:
                self.say(Role.ERROR, _result(step))
        elif kind not in _BOOKKEEPING:
            self._add_result(step, kind)

    def _add_question(self, step: Record) -> None:
        content = string(step.get("content"))
        if changed := _MODEL.search(content):
            self.model = changed[1].strip()
        request = _REQUEST.search(content)
        typed = request[1] if request else _BLOCK.sub("", content)
        if step.get("source") == "SYSTEM":
            self.inject(typed)
        else:
            self.say(Role.USER, typed)

    def _add_answer(self, step: Record) -> None:
        self.say(Role.THINKING, string(step.get("thinking")), ":thinking")
        self.say(Role.ASSISTANT, string(step.get("content")))
        for index, call in enumerate(objects(step.get("tool_calls"))):
            given = mapping(call.get("args")) or mapping(call.get("arguments"))
            # the shortened transcript writes an argument as JSON
            decoded = {key: parse_nested(value) if string(value)[:1] == '"' else value for key, value in given.items()}
            params = {_PARAMS.get(key, key): value for key, value in decoded.items() if key not in _SHOWN_ONLY}
            folder = string(params.pop("Cwd", ""))
            self.folders[folder] = None
            name = string(call.get("name")).removeprefix("default_api:")
            self._pending_calls.append(self.call(f"{self.record_id}:{index}", name, params, folder=folder))

    def _add_result(self, step: Record, kind: str) -> None:
        """Set the result of the first pending call, because the step's type is only the kind of tool."""
        result = _result(step)
        status = drafts.result_status(step.get("status") == "ERROR" or step.get("exit_code") not in (None, 0))
        if self._pending_calls:
            self._pending_calls.popleft().set_result(result, status, drafts.shortened(result))
        elif kind and result:  # some transcripts contain no calls
            self.call(self.record_id, kind.lower(), {}).set_result(result, status, drafts.shortened(result))
        else:
            self.count_unknown("step", kind)


def _result(step: Record) -> str:
    text = string(step.get("content")) or string(step.get("error"))
    return _MARGIN.sub("", _TIMES.sub("", text)).strip()
