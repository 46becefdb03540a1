"""What single fields of a Claude Code record mean (format 3, 5, 6). Pure."""

from __future__ import annotations

from datetime import datetime

from sources.kit import drafts
from sources.kit.jsonl import Record, mapping, string

KEPT_SYSTEM = ("", "compact_boundary", "local_command", "informational", "away_summary", "model_refusal_fallback")
IGNORED_SYSTEM = (
    *("turn_duration", "microcompact_boundary", "stop_hook_summary", "task_started", "task_progress"),
    *("task_notification", "hook_result", "bridge_status"),
)
IGNORED = (
    *("progress", "queue-operation", "file-history-snapshot", "permission-mode", "mode", "pr-link", "frame-link"),
    *("worktree-state", "bridge-session", "agent-setting", "content-replacement", "fork-context-ref"),
    *("observer-ref", "atis-latch"),
)
NOT_TYPED_FLAGS = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
SYNTHETIC = "<synthetic>"
FILLERS = ("(no content)", "No response requested.")
REFUSALS = ("The user doesn't want to proceed", "The user doesn't want to take this action")


def time(record: Record) -> datetime | None:
    """When the record was written."""
    return drafts.moment(record.get("timestamp"))


def is_clients_own(record: Record) -> bool:
    """The client wrote the answer itself: an error of the service, in the place of an answer."""
    return bool(record.get("isApiErrorMessage")) or mapping(record.get("message")).get("model") == SYNTHETIC


def model_of(record: Record) -> dict[str, str]:
    """The model as part of a message's `more`; nothing where there was none or it is not known."""
    model = string(mapping(record.get("message")).get("model"))
    return {"model": model} if model not in ("", SYNTHETIC) else {}


def status(block: Record, result: str, structured: object) -> str:
    """How a call ended, by its result block, the text in it, and the structured output beside it."""
    if not block.get("is_error"):
        return drafts.COMPLETED
    is_refused = result.startswith(REFUSALS) or string(structured).startswith("User rejected")
    return drafts.REJECTED if is_refused else drafts.FAILED


def error_text(record: Record) -> str:
    """What the client tells of an error of the service; its shape has changed several times."""
    error = record.get("error")
    told = (record.get("content"), mapping(error).get("message"), error, mapping(record.get("cause")).get("message"))
    return next(filter(None, map(string, told)), "") or drafts.readable(error) or "API error"
