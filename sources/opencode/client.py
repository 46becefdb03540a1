"""OpenCode."""

from __future__ import annotations

from sources.client import Client

OPENCODE = Client(
    source="opencode",
    name="OpenCode",
    handshake=("opencode",),
    history="`~/.local/share/opencode`; `XDG_DATA_HOME` (the folder above) or `CTXR_OPENCODE_DIR`",
)
