"""Read the tasks of the extensions Cline, Roo Code and Kilo Code, and the sessions of Cline's command line."""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from registry.domain import Role
from sources.base import FoundSession, Paths, Skipped
from sources.clients import CLINE, KILO, ROO_CODE
from sources.kit import drafts
from sources.kit.contents import attachment_name, blocks_of
from sources.kit.files import File, fingerprint_at, read_document, read_small_text
from sources.kit.loose_json import (
    Record,
    first_text,
    items,
    mapping,
    object_in,
    objects,
    read_json,
    storable,
    string,
    text_at,
)
from sources.kit.reader import FileReader, ParseFile, SessionFile
from sources.kit.workspace_files import user_folders

_VIEW, _MESSAGES = "ui_messages.json", ".messages.json"


class Cline(FileReader):
    """Reads `tasks/`, `sessions/` and the list of tasks. Never open their siblings: they have keys."""

    client = CLINE
    extension = "saoudrizwan.claude-dev"
    patterns = (f"tasks/*/{_VIEW}", f"sessions/*/*{_MESSAGES}")
    backup_extras = ("tasks/*/*", "sessions/*/*", "state/taskHistory.json")

    def roots(self, paths: Paths) -> Iterable[Path]:
        """Return the folder that Cline's command line and extension share, and the extension's in each editor."""
        shared = [CLINE.history_in(paths)] if self.client is CLINE else []
        builds = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
        in_editors = (folder / "globalStorage" / self.extension for folder in user_folders(paths, builds))
        variable = f"CTXR_{self.name.upper().replace('-', '_')}_DIR"
        return paths.named(variable) or [*shared, *in_editors]

    def session_file(self, file: File) -> SessionFile:
        """Return the conversation; its `folder` is the path of the file with its metadata."""
        folder, name = os.path.split(file.path)
        session_id, parent, key = os.path.basename(folder), None, folder
        described = os.path.join(folder, "history_item.json")
        if name.endswith(_MESSAGES):
            key, session_id = file.path, name.removesuffix(_MESSAGES)
            described = os.path.join(folder, f"{session_id}.json")
            parent = None if session_id == os.path.basename(folder) else os.path.basename(folder)
        return SessionFile(file, key, session_id, parent, described, f"|{fingerprint_at(described)}")

    def parser(self, store: Path) -> ParseFile:
        @cache
        def listed() -> dict[str, Record]:
            tasks = objects(read_json(read_small_text(store / "state" / "taskHistory.json")))
            return {string(task.get("id")): task for task in tasks}

        def parse(file: SessionFile) -> Iterator[FoundSession]:
            described = mapping(read_json(read_small_text(file.folder)))
            yield _parse(file, described or listed().get(file.session_id, {}))

        return parse


class RooCode(Cline):
    """Reads `tasks/` of Roo Code's extension."""

    client = ROO_CODE
    extension = "rooveterinaryinc.roo-cline"


class KiloTasks(Cline):
    """Reads `tasks/` of Kilo Code's extension before it became a fork of OpenCode."""

    client = KILO
    is_rare = True
    extension = "kilocode.kilo-code"


def _parse(file: SessionFile, about: Record) -> FoundSession:
    content = read_json(read_document(file.path))
    messages = content if isinstance(content, list) else mapping(content).get("messages")
    names = ("cwdOnTaskInitialization", "workspace", "workspace_root", "cwd", "shadowGitConfigWorkTree")
    folder = first_text(about, *names)
    dialogue = (Task if file.path.endswith(_VIEW) else ClineDialogue)(file.session_id, folder)
    for message in items(messages):
        dialogue.read(mapping(message))
    first_question = next((draft.parts[0] for draft in dialogue.drafts if draft.role is Role.USER and draft.parts), "")
    title, parent = text_at(about, "metadata", "title").strip(), file.agent_of or string(about.get("parentTaskId"))
    began = drafts.moment(about.get("started_at")) or about.get("ts")
    session = dialogue.build(title if title != first_question else "", parent=parent, began=began)
    skipped = () if isinstance(messages, list) else (Skipped(file.path, "no list of messages in it"),)
    return file.found(session, skipped + dialogue.skipped())


_INPUT = re.compile(r"^<(user_input|user_message)\b[^>]*>\s*(.*?)\s*</\1>", re.DOTALL)
_DETAILS = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)


@dataclass(slots=True)
class ClineDialogue(drafts.Conversation):
    """Builds a session of the command line from the messages sent to the model, in Anthropic's format. Pure."""

    def read(self, message: Record) -> None:
        role = string(message.get("role"))
        if role not in ("user", "assistant"):
            self.count_unknown("message", role)
            return
        self.begin(message.get("id"), message.get("ts"))
        self.model, before = text_at(message, "modelInfo", "id"), len(self.drafts)
        for index, block in enumerate(blocks_of(message.get("content"))):
            part, last = f":{index}" if index else "", self.drafts[-1] if self.drafts else None
            if block.get("type") == "text" and role == "user":
                self._add_question(string(block.get("text")).strip(), part)
            elif last and last.role is Role.USER and attachment_name(block):
                self.attach(last, [block])
            else:
                self.add_block(Role(role), block, part)
        self.count_tokens(before, message.get("metrics"))

    def _add_question(self, text: str, part: str) -> None:
        """Add the text in the user's tag as typed, and the client's additions as injected."""
        if typed := _INPUT.match(text):
            self.say(Role.USER, typed[2], part)
            self.inject(text[typed.end() :], f"{part or ':0'}:context")
        elif _DETAILS.match(text):
            self.inject(text, part)
        else:
            self.say(Role.USER, _DETAILS.sub("", text), part)


_TYPED = ("task", "user_feedback", "user_feedback_diff")
_ANSWERED = ("text", "completion_result", "followup", "plan_mode_respond", "act_mode_respond", "new_task")
_CALLED = {"tool": "tool", "command": "execute_command", "use_mcp_server": "use_mcp_server"} | dict.fromkeys(
    ("browser_action_launch", "browser_action", "use_subagents", "codebase_search"), ""
)
_RESULTS = ("command_output", "mcp_server_response", "browser_action_result", "subtask_result")
_FAILED = ("error", "diff_error", "rooignore_error", "clineignore_error", "api_req_failed", "mistake_limit_reached")
# prefixes
_BOOKKEEPING = (
    *("api_req_", "deleted_api_reqs", "error_retry", "checkpoint_", "resume_", "mcp_", "task_progress", "hook_"),
    *("subagent", "conditional_rules_applied", "info", "shell_integration_", "load_mcp_documentation", "condense"),
    *("generate_explanation", "report_bug", "auto_approval_", "sliding_window_", "command_permission_denied"),
    *("summarize_task", "interactive_app", "too_many_tools_warning", "image", "codebase_search_result", "finish_task"),
)


@dataclass(slots=True)
class Task(drafts.Conversation):
    """Builds a task of an extension from the messages shown to the user, which all have times. Pure."""

    _usage: Record | None = None

    def read(self, message: Record) -> None:
        kind = string(message.get("say")) or string(message.get("ask"))
        if message.get("partial") is True:
            return
        self.begin(f"{message.get('ts')}:{kind}", message.get("ts"))
        self.model = text_at(message, "modelInfo", "modelId")
        text, before = string(message.get("text")).strip(), len(self.drafts)
        if kind == "api_req_started":
            self._usage = object_in(text)
        if kind in _TYPED or (kind == "text" and not self.drafts):  # Roo Code's first message is its user's
            files = [*("image" for _ in items(message.get("images"))), *map(string, items(message.get("files")))]
            self.say(Role.USER, text, attachments=files)
        elif kind in _ANSWERED:  # the text of a question or a plan is in a JSON object
            answer = first_text(object_in(text), "question", "response", "context") or text
            answer = answer.removesuffix("HAS_CHANGES")  # the client's mark, for a button
            if not (self.drafts and self.drafts[-1].role is Role.ASSISTANT and self.drafts[-1].parts == [answer]):
                self.say(Role.ASSISTANT, answer)  # a completion is repeated as a question
        elif kind == "reasoning":
            self.say(Role.THINKING, text or string(message.get("reasoning")))
        elif kind in _CALLED:
            self._add_call(kind, text)
        elif kind in _RESULTS:
            self._add_result(text)
        elif kind in _FAILED:
            self.say(Role.ERROR, text)
        elif not kind.startswith(_BOOKKEEPING):
            self.count_unknown("message", kind)
            self.say(Role.SYSTEM, text)
        if self.drafts[before:] and self.drafts[before].role in (Role.ASSISTANT, Role.THINKING, Role.TOOL):
            self.count_tokens(before, self._usage)  # stored with the first message after the request
            self._usage = None

    def _add_call(self, kind: str, text: str) -> None:
        """Add a call, unless it repeats the last one: it is written as a question, and again when it runs."""
        params = dict(object_in(text) or ({"command": text} if text else {}))
        name = string(params.pop("tool", "")) or string(params.get("toolName")) or _CALLED[kind] or kind
        result = string(params.pop("content", "")) if name.startswith(("read", "list", "search")) else ""
        last = self.drafts[-1].more.get("tool") if self.drafts else None
        same = {"name": name, "params": storable(params), "status": drafts.PENDING}
        if last and all(last[key] == value for key, value in same.items()):
            return
        draft = self.call(self.record_id, name, params)
        if kind == "tool":
            draft.set_result(result, drafts.COMPLETED)

    def _add_result(self, text: str) -> None:
        """Append output to the last call's result, because it is written in several messages."""
        seen = mapping(object_in(text))
        if "screenshot" in seen:  # in Base64
            text = "\n".join(filter(None, (string(seen.get("currentUrl")), string(seen.get("logs")), "[screenshot]")))
        last = self.drafts[-1] if self.drafts else None
        if last is None or last.role is not Role.TOOL:
            self.inject(text)
            return
        tool = last.more["tool"]
        tool["result"] = "\n".join(filter(None, (tool["result"], text)))
        tool["status"] = drafts.COMPLETED
        last.add(text)
