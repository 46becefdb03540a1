"""What a user of Codex really typed, and the context that the client sends in the user's name (format 3). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from registry.domain import Role

_REQUEST = "## My request for Codex:"
_INJECTED = (
    *("# AGENTS.md instructions", "<environment_context>", "<user_instructions>", "<permissions", "<INSTRUCTIONS>"),
    *("<skill", "<turn_aborted>", "<user_shell_command>", "<subagent_notification>", "<collaboration_mode>"),
)


def pieces_of(text: str) -> Iterator[tuple[Role, str]]:
    """The context (system) and the prompt (user) in a text of the user; an editor puts the prompt last."""
    text = text.strip()
    if text.startswith(_INJECTED):
        yield Role.SYSTEM, text
        return
    around, found, request = text.rpartition(_REQUEST)
    if found and around.strip():
        yield Role.SYSTEM, around.strip()
    if request.strip():
        yield Role.USER, request.strip()
