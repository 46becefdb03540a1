"""Claude Code."""

from registry.domain import Role
from sources.claude_code.prompts import typed
from sources.client import Client, Hooks, Purge, Room, ServerList

CLAUDE_CODE = Client(
    source="claude-code",
    name="Claude Code",
    room=Room(40_000),
    folder=lambda places: places.folder("CLAUDE_CONFIG_DIR", ".claude"),
    # beside the folder of settings, or in it if the user has moved that
    servers=ServerList(lambda places: places.folder("CLAUDE_CONFIG_DIR") / ".claude.json"),
    hooks=Hooks(
        events=("SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"),
        said={"UserPromptSubmit": (Role.USER, "prompt"), "Stop": (Role.ASSISTANT, "last_assistant_message")},
        acts=("PreToolUse", "Bash|Edit|MultiEdit|Write"),
        file="settings.json",
        is_among_settings=True,
        typed=typed,
    ),
    purge=Purge("settings.json", ("cleanupPeriodDays",), 30),
)
