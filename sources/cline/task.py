"""A task of Cline's (or Roo Code's) extension as its user saw it: what was said and asked, each with its time. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from registry.domain import Role
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, object_in, string

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
_SPOKEN = ("question", "response", "context")
_USAGE = {
    "tokensIn": "input_tokens",
    "tokensOut": "output_tokens",
    "cacheReads": "cache_read_input_tokens",
    "cacheWrites": "cache_creation_input_tokens",
}


@dataclass(slots=True)
class Task:
    """A task in the making: hand it the messages of its view, then take its drafts."""

    folder: str = ""
    unknown: Counter[str] = field(default_factory=Counter)
    found: list[Draft] = field(default_factory=list)
    _usage: dict[str, int] = field(default_factory=dict)

    def read(self, message: Record) -> None:
        """Take in one message; what is not understood is counted in `unknown`."""
        kind = string(message.get("say")) or string(message.get("ask"))
        if message.get("partial") is True:
            return
        text = string(message.get("text")).strip()
        if kind == "api_req_started":
            told = object_in(text) or {}
            self._usage = {ours: told[theirs] for theirs, ours in _USAGE.items() if isinstance(told.get(theirs), int)}
        if kind in _TYPED or (kind == "text" and not self.found):  # Roo Code's first message is its user's
            self._typed(message, text)
        elif kind in _ANSWERED:
            self._answered(message, text)
        elif kind == "reasoning":
            self._add(message, Role.THINKING, text or string(message.get("reasoning")).strip())
        elif kind in _CALLED:
            self._called(message, kind, text)
        elif kind in _RESULTS:
            self._result(message, text)
        elif kind in _FAILED:
            self._add(message, Role.ERROR, text)
        elif kind not in _BOOKKEEPING:
            self.unknown[f"message {kind or 'without kind'}"] += 1
            self._add(message, Role.SYSTEM, text)

    def _typed(self, message: Record, text: str) -> None:
        sent = [*("image" for _ in items(message.get("images"))), *map(string, items(message.get("files")))]
        draft = self._draft(message, Role.USER, text, **({"attachments": sent} if sent else {}))
        self.found.append(draft)

    def _answered(self, message: Record, text: str) -> None:
        """A question or a plan is an object with what was said in it."""
        spoken = object_in(text)
        if spoken is not None:
            text = next(filter(None, (string(spoken.get(key)) for key in _SPOKEN)), text)
        if self.found and self.found[-1].role is Role.ASSISTANT and self.found[-1].parts == [text]:
            return  # a completion is said, and then asked about
        self._add(message, Role.ASSISTANT, text)

    def _called(self, message: Record, kind: str, text: str) -> None:
        """A call is asked about, then said: the same call."""
        params = dict(object_in(text) or ({"command": text} if text else {}))
        name = string(params.pop("tool", "")) or string(params.get("toolName")) or _CALLED[kind] or kind
        result = string(params.pop("content", "")) if name.startswith(("read", "list", "search")) else ""
        last = self.found[-1] if self.found else None
        if last and last.role is Role.TOOL and last.more["tool"]["name"] == name and _same(last, params):
            return
        draft = drafts.tool_draft(_key(message), name, params, drafts.moment(message.get("ts")), folder=self.folder)
        self._measure(draft, message)
        self.found.append(draft)
        if kind == "tool":
            drafts.answer(draft, result, drafts.COMPLETED)

    def _result(self, message: Record, text: str) -> None:
        """The output of the last call: it comes in pieces, and may be asked about between them."""
        last = self.found[-1] if self.found else None
        if last is None or last.role is not Role.TOOL:
            self._add(message, Role.SYSTEM, text, injected=True)
            return
        tool = last.more["tool"]
        tool["result"] = "\n".join(filter(None, (tool["result"], text)))
        tool["status"] = drafts.COMPLETED
        last.add(text)

    def _add(self, message: Record, role: Role, text: str, **more: Any) -> None:
        if text:
            draft = self._draft(message, role, text, **more)
            if role in (Role.ASSISTANT, Role.THINKING):
                self._measure(draft, message)
            self.found.append(draft)

    def _draft(self, message: Record, role: Role, text: str, **more: Any) -> Draft:
        parts = [text] if text else []
        return Draft(role, parts, drafts.moment(message.get("ts")), {"native_id": _key(message), **more})

    def _measure(self, draft: Draft, message: Record) -> None:
        """What a request used belongs to the first that came of it."""
        if model := string(mapping(message.get("modelInfo")).get("modelId")):
            draft.more["model"] = model
        if self._usage:
            draft.more["usage"], self._usage = self._usage, {}


def _same(draft: Draft, params: dict[str, Any]) -> bool:
    tool = draft.more["tool"]
    return bool(tool["params"] == drafts.shallow(params)) and tool["status"] == drafts.PENDING


def _key(message: Record) -> str:
    kind = string(message.get("say")) or string(message.get("ask"))
    return f"{message.get('ts')}:{kind}"
