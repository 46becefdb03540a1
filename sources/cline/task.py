"""Parse a task of Cline's (or Roo Code's) extension as its user saw it, in which all messages have times. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from registry.domain import Role
from sources.kit import drafts
from sources.kit.drafts import Conversation
from sources.kit.loose_json import Record, first_text, items, object_in, storable, string, text_at

_TYPED = frozenset(("task", "user_feedback", "user_feedback_diff"))
_ANSWERED = frozenset(("text", "completion_result", "followup", "plan_mode_respond", "act_mode_respond", "new_task"))
_CALLED = {"tool": "tool", "command": "execute_command", "use_mcp_server": "use_mcp_server"} | dict.fromkeys(
    ("browser_action_launch", "browser_action", "use_subagents", "codebase_search"), ""
)
_RESULTS = frozenset(("command_output", "mcp_server_response", "browser_action_result", "subtask_result"))
_FAILED = frozenset(
    ("error", "diff_error", "rooignore_error", "clineignore_error", "api_req_failed", "mistake_limit_reached")
)
_BOOKKEEPING = frozenset(
    (
        *("api_req_started", "api_req_finished", "api_req_retried", "api_req_deleted", "deleted_api_reqs"),
        *("api_req_retry_delayed", "api_req_rate_limit_wait", "error_retry", "checkpoint_created", "checkpoint_saved"),
        *("resume_task", "resume_completed_task", "mcp_server_request_started", "mcp_notification", "task_progress"),
        *("hook_status", "hook_output_stream", "subagent", "subagent_usage", "conditional_rules_applied", "info"),
        *("shell_integration_warning", "shell_integration_warning_with_suggestion", "load_mcp_documentation"),
        *("generate_explanation", "report_bug", "auto_approval_max_req_reached", "condense_context", "condense"),
        *("condense_context_error", "sliding_window_truncation", "command_permission_denied", "summarize_task"),
        *("interactive_app", "too_many_tools_warning", "image", "codebase_search_result", "finish_task"),
    )
)


@dataclass(slots=True)
class Task(Conversation):
    """Builds a task from the messages of its view."""

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
        elif kind in _ANSWERED:
            self._add_answer(text)
        elif kind == "reasoning":
            self.say(Role.THINKING, text or string(message.get("reasoning")))
        elif kind in _CALLED:
            self._add_call(kind, text)
        elif kind in _RESULTS:
            self._add_result(text)
        elif kind in _FAILED:
            self.say(Role.ERROR, text)
        elif kind not in _BOOKKEEPING:
            self.pass_over("message", kind)
            self.say(Role.SYSTEM, text)
        if self.drafts[before:] and self.drafts[before].role in (Role.ASSISTANT, Role.THINKING, Role.TOOL):
            self.count_tokens(before, self._usage)  # they belong to the first message that came of the request
            self._usage = None

    def _add_answer(self, text: str) -> None:
        """Add an answer; a question or a plan is an object with the text in it."""
        text = first_text(object_in(text), "question", "response", "context") or text
        if not (self.drafts and self.drafts[-1].role is Role.ASSISTANT and self.drafts[-1].parts == [text]):
            self.say(Role.ASSISTANT, text)  # a completion is written twice, the second time as a question

    def _add_call(self, kind: str, text: str) -> None:
        """Add a call, which is written twice: as a question, and when it runs."""
        params = dict(object_in(text) or ({"command": text} if text else {}))
        name = string(params.pop("tool", "")) or string(params.get("toolName")) or _CALLED[kind] or kind
        result = string(params.pop("content", "")) if name.startswith(("read", "list", "search")) else ""
        last = self.drafts[-1].more.get("tool") if self.drafts else None
        same = {"name": name, "params": storable(params), "status": drafts.PENDING}
        if last and all(last[key] == value for key, value in same.items()):
            return
        draft = self.call(self.record_id, name, params)
        if kind == "tool":
            draft.answer(result, drafts.COMPLETED)

    def _add_result(self, text: str) -> None:
        """Add output to the last call: it comes in pieces, and may be asked about between them."""
        last = self.drafts[-1] if self.drafts else None
        if last is None or last.role is not Role.TOOL:
            self.inject(text)
            return
        tool = last.more["tool"]
        tool["result"] = "\n".join(filter(None, (tool["result"], text)))
        tool["status"] = drafts.COMPLETED
        last.add(text)
