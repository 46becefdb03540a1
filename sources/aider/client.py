"""Aider, which keeps its chats in each project's own folder."""

from sources.client import Client

AIDER = Client(
    source="aider",
    name="Aider",
)
