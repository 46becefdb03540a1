"""Report the conversations of Windsurf, which are encrypted."""

from typing import ClassVar

from sources.clients import WINDSURF
from sources.kit.reader import FileReader


class Windsurf(FileReader):
    """Reads nothing; it counts what is missing."""

    client = WINDSURF
    is_rare = True
    patterns = ()
    unreadable: ClassVar = {"cascade/*.pb": "encrypted by Windsurf"}
