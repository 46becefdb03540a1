"""Which client a request comes from, when it does not say so itself."""

from __future__ import annotations

import re

from sources.clients import CLIENTS

_SOURCES = {name: client.source for client in CLIENTS for name in client.handshake}

UNKNOWN = "unknown"

_CHANNEL_PATTERN = re.compile(r"([a-z0-9-]+)_session_")


def source_of(given: str | None, client: str | None, channel: str | None = None) -> str:
    """The source: what the caller says, else its client's name, else the channel's `{source}_session_…`.

    `client` is a name with or without a version behind it: "cursor-vscode 1.0".
    """
    if given:
        return given
    name = (client or "").lower().rpartition(" ")[0] or (client or "").lower()
    if name in _SOURCES:
        return _SOURCES[name]
    named = _CHANNEL_PATTERN.match(channel or "")
    return named[1] if named else re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:64] or UNKNOWN
