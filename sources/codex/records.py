"""Interpret single fields of Codex records, and separate what the user typed from its context. Pure."""

import re
from collections.abc import Iterator
from pathlib import Path

from registry.domain import Role
from sources.kit.loose_json import Record, items, mapping, read_json, string, text_at, value_at

IGNORED_RESPONSES = ("ghost_snapshot", "compaction", "compaction_summary", "image_generation_call", "other")
IGNORED_ITEMS = ("ContextCompaction", "Extension", "SubAgentActivity", "ImageView", "Sleep")
IGNORED_EVENTS = (
    *("task_started", "task_complete", "turn_started", "turn_complete", "context_compacted"),
    *("exec_command_begin", "exec_command_output_delta", "patch_apply_begin", "mcp_tool_call_begin", "item_started"),
    *("web_search_begin", "web_search_end", "view_image_tool_call", "agent_reasoning_section_break", "turn_diff"),
    *("agent_reasoning_raw_content", "background_event", "stream_error", "plan_update", "thread_settings_applied"),
    *("entered_review_mode", "exited_review_mode", "session_configured", "warning", "deprecation_notice"),
    "token_usage_record",
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
    """Return type and payload of a line. Before mid-2025 lines had no envelope, and the first one was the meta data."""
    if isinstance(record.get("payload"), dict):
        return string(record.get("type")), record["payload"]
    if "record_type" in record:
        return "session_state", record
    if "type" in record:
        return "response_item", record
    return ("session_meta" if "id" in record else ""), record


def pieces_of(text: str) -> Iterator[tuple[Role, str]]:
    """Yield the context (system) and the prompt (user) in a text of the user; an editor puts the prompt last."""
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
    """Return the events whose hook of ours is not trusted yet; a change after it was trusted is not noticed."""
    import tomllib  # a record of facts imports what takes time only when it is asked

    from sources.kit.files import small_text

    try:
        settings = tomllib.loads(small_text(hooks.with_name("config.toml")))
    except ValueError:
        return []
    trusted = mapping(value_at(settings, "hooks", "state"))
    listed = mapping(value_at(read_json(small_text(hooks)), "hooks"))
    places = {event: _place(listed.get(event), ours) for event in events}
    return [event for event, place in places.items() if place and not _is_trusted(trusted, hooks, event, place)]


def _place(groups: object, ours: re.Pattern[str]) -> str:
    for group, entry in enumerate(items(groups)):
        for handler, given in enumerate(items(value_at(entry, "hooks"))):
            if ours.search(text_at(given, "command")):
                return f"{group}:{handler}"
    return ""


def _is_trusted(state: Record, hooks: Path, event: str, place: str) -> bool:
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
    entries = [mapping(state.get(f"{file}:{snake}:{place}")) for file in (hooks, hooks.resolve())]
    return any(entry.get("trusted_hash") and entry.get("enabled") is not False for entry in entries)
