"""Clients whose conversations are read from account exports: Claude (app and site), ChatGPT and Gemini."""

from sources.client import Client, ServerList, settings_of_the_system

CLAUDE = Client(
    source="claude",
    name="Claude Desktop",
    handshake=("claude-ai", "claude", "claude-desktop"),
    folder=lambda _: settings_of_the_system("Claude"),
    servers=ServerList("claude_desktop_config.json"),
    is_logged_by_model=True,
    installed_as="claude-desktop",
    then="Quit Claude Desktop completely, and start it again.",
    prompt_link="claude://claude.ai/new?q=",
)

GEMINI = Client(source="gemini", name="Gemini", is_logged_by_model=True)
CHATGPT = Client(source="chatgpt", name="ChatGPT", is_logged_by_model=True)
