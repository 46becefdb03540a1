"""Read the tasks of Roo Code's extension, which it keeps as Cline does."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sources.base import Places
from sources.cline.reader import Cline
from sources.roo.client import ROO_CODE


class RooCode(Cline):
    """Reads `tasks/` of the extension's folder. Settings lie beside it."""

    client = ROO_CODE
    extension = "rooveterinaryinc.roo-cline"

    def roots(self, places: Places) -> Iterable[Path]:
        return places.named("CTXR_ROO_CODE_DIR") or self.in_editors(places)
