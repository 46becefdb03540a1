"""Goose: its command line and its desktop application, which share one database."""

from sources.client import Client

GOOSE = Client(
    source="goose",
    name="Goose",
    handshake=("goose", "goose-cli", "goose-desktop"),
    is_logged_by_model=True,
)
