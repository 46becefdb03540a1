"""Aider, which keeps its chats in each project's own folder."""

from sources.client import Client

AIDER = Client(
    source="aider",
    name="Aider",
    history="`.aider.chat.history.md` in the home folder and two levels below it; `AIDER_CHAT_HISTORY_FILE` or "
    "`CTXR_AIDER_DIRS` (folders of projects)",
)
