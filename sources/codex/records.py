"""Interpret single fields of Codex records, and separate the user's text from its context. Pure."""

import re
from collections.abc import Iterator
from pathlib import Path

from registry.domain import Role
from sources.kit.loose_json import Record, items, mapping, read_json, string, text_at, value_at

IGNORED_RECORDS = ("session_state", "world_state", "token_usage_record", "inter_agent_communication_metadata")
IGNORED_RESPONSES = ("ghost_snapshot", "compaction", "compaction_summary", "image_generation_call", "other")
IGNORED_ITEMS = (
    *("ContextCompaction", "Extension", "SubAgentActivity", "ImageView", "Sleep"),
    *("CollabAgentToolCall", "EnteredReviewMode", "ExitedReviewMode"),  # a call or an answer says the same
)
# prefixes
IGNORED_EVENTS = (
    *("task_", "turn_", "context_compacted", "exec_command_", "patch_apply_", "mcp_tool_call_", "item_started"),
    *("web_search_", "view_image_", "agent_reasoning_", "background_event", "stream_error", "plan_update", "warning"),
    *("thread_settings_", "entered_", "exited_", "session_configured", "deprecation_", "token_usage_record"),
)

_INJECTED = (
    *("# AGENTS.md instructions", "<environment_context>", "<user_instructions>", "<permissions", "<INSTRUCTIONS>"),
    *("<skill", "<turn_aborted>", "<user_shell_command>", "<subagent_notification>", "<collaboration_mode>"),
)


def parent_of(meta: Record) -> tuple[str | None, str | None]:
    """Return the thread that this one comes from, and the relation to it."""
    spawn = mapping(value_at(meta, "source", "subagent", "thread_spawn"))
    caller = string(meta.get("parent_thread_id")) or string(spawn.get("parent_thread_id"))
    if caller:
        return caller, "sub-agent"
    origin = string(meta.get("forked_from_id")) or text_at(meta, "history_base", "thread_id")
    return (origin, "fork") if origin and origin != meta.get("id") else (None, None)


def unwrapped(record: Record) -> tuple[str, Record]:
    """Return type and payload of a record. Before mid-2025 records had no envelope, and the first one was metadata."""
    if isinstance(record.get("payload"), dict):
        return string(record.get("type")), record["payload"]
    if "record_type" in record:
        return "session_state", record
    if "type" in record:
        return "response_item", record
    return ("session_meta" if "id" in record else ""), record


def pieces_of(text: str) -> Iterator[tuple[Role, str]]:
    """Yield the context (system) and the prompt (user) of a user message; an editor appends the prompt."""
    text = text.strip()
    if text.startswith(_INJECTED):
        yield Role.SYSTEM, text
        return
    around, found, request = text.rpartition("## My request for Codex:")
    if found and around.strip():
        yield Role.SYSTEM, around.strip()
    if request.strip():
        yield Role.USER, request.strip()


def typed(prompt: str) -> Iterator[str]:
    """Return the parts of a hook's prompt that the user typed."""
    return (text for role, text in pieces_of(prompt) if role is Role.USER)


def untrusted(hooks: Path, events: tuple[str, ...], ours: re.Pattern[str]) -> list[str]:
    """Return the events whose hook the user has not trusted yet. Later changes of a trusted hook are not noticed."""
    import tomllib  # imported here, because every command imports the clients' records

    from sources.kit.files import read_small_text

    try:
        settings = tomllib.loads(read_small_text(hooks.with_name("config.toml")))
    except ValueError:
        return []
    trusted = mapping(value_at(settings, "hooks", "state"))
    listed = mapping(value_at(read_json(read_small_text(hooks)), "hooks"))
    positions = {event: _hook_position(listed.get(event), ours) for event in events}
    return [event for event, at in positions.items() if at and not _is_trusted(trusted, hooks, event, at)]


def _hook_position(groups: object, ours: re.Pattern[str]) -> str:
    for group, entry in enumerate(items(groups)):
        for handler, given in enumerate(items(value_at(entry, "hooks"))):
            if ours.search(text_at(given, "command")):
                return f"{group}:{handler}"
    return ""


def _is_trusted(state: Record, hooks: Path, event: str, position: str) -> bool:
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
    entries = [mapping(state.get(f"{file}:{snake}:{position}")) for file in (hooks, hooks.resolve())]
    return any(entry.get("trusted_hash") and entry.get("enabled") is not False for entry in entries)
