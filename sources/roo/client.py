"""Roo Code, which began as Cline and lives in the same editors."""

from __future__ import annotations

from sources.client import Client

ROO_CODE = Client(
    source="roo-code",
    name="Roo Code",
    handshake=("roo code", "roo-code"),
    history="its folder in `globalStorage` of VS Code, VSCodium, Cursor and Windsurf; `CTXR_ROO_CODE_DIR`",
    is_logged_by_model=True,
)
