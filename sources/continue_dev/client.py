"""Continue: its extensions for editors and its command line, which share one folder."""

from sources.client import Client

CONTINUE = Client(
    source="continue",
    name="Continue",
    handshake=("continue", "continue-client", "continue-cli-client"),
    folder=lambda places: places.folder("CONTINUE_GLOBAL_DIR", ".continue"),
)
