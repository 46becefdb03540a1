"""Cursor, the editor, and its agent on the command line and in other editors, which the same settings connect."""

from pathlib import Path

from registry.domain import Role
from sources.client import Client, Hooks, ProjectRule, ServerList

CURSOR_AGENT = Client(source="cursor-agent", name="Cursor's agent")

CURSOR = Client(
    source="cursor",
    name="Cursor",
    handshake=("cursor-vscode", "cursor"),
    folder=lambda places: places.home / ".cursor",
    servers=ServerList("mcp.json"),
    hooks=Hooks(
        events=("sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "stop", "sessionEnd"),
        said={
            "beforeSubmitPrompt": (Role.USER, "prompt"),
            "afterAgentResponse": (Role.ASSISTANT, "text"),
        },
        format="list",
        handler=lambda command: {"command": command},
    ),
    is_logged_by_model=True,
    rule=ProjectRule(".cursor/rules/context-registry.mdc", Path(__file__).with_name("rule.md")),
    project_option="put the rule into this project",
    link="cursor://anysphere.cursor-deeplink/mcp/install",
    prompt_link="cursor://anysphere.cursor-deeplink/prompt?text=",
)
