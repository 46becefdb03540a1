"""The notes that clients keep of their users and projects, and hand to their models again."""

from sources.client import Client

MEMORY_FILES = Client(
    source="memory-files",
    name="Memory files",
    is_logged_by_model=True,
)
