"""Goose: its command line and its desktop application, which share one database."""

from sources.client import Client

GOOSE = Client(
    source="goose",
    name="Goose",
    handshake=("goose", "goose-cli", "goose-desktop"),
    history="`~/.local/share/goose/sessions`; `GOOSE_PATH_ROOT` or `CTXR_GOOSE_DIR`",
    is_logged_by_model=True,
)
