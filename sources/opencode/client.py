"""OpenCode, and Kilo Code, a fork of it. They run no commands at their events; a small plugin does."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, Hooks, Room, ServerList


def _client(source: str, name: str) -> Client:
    """Return OpenCode or a fork of it: all that is its own has its name."""

    def settings(places: Places) -> Path:
        """Return the settings file, with the ending `.jsonc` if there is one."""
        file = places.folder("XDG_CONFIG_HOME", ".config") / source / f"{source}.json"
        with_comments = file.with_suffix(".jsonc")
        return with_comments if with_comments.exists() else file

    return Client(
        source=source,
        name=name,
        room=Room(40_000, in_bytes=True),
        folder=lambda places: settings(places).parent,
        servers=ServerList(settings, key="mcp", entry={"type": "local", "enabled": True}, is_one_command=True),
        hooks=Hooks(
            events=("session.start", "chat.message", "session.idle"),
            file="plugins/context-registry.js",
            plugin=Path(__file__).with_name("plugin.js"),
        ),
    )


OPENCODE = _client("opencode", "OpenCode")
KILO = _client("kilo", "Kilo Code")
