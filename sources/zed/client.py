"""Zed, the editor."""

from __future__ import annotations

import sys
from pathlib import Path

from sources.base import Places
from sources.client import Client, ServerList, settings_of_the_system


def _folder(places: Places) -> Path:
    if sys.platform == "win32":
        return settings_of_the_system("Zed")
    return places.folder("XDG_CONFIG_HOME", ".config") / "zed"


ZED = Client(
    source="zed",
    name="Zed",
    folder=_folder,
    servers=ServerList("settings.json", key="context_servers"),
    is_logged_by_model=True,
    then="Zed starts the server at once; the agent panel's settings show it.",
)
