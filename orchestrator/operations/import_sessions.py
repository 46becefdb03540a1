"""import: store the sessions that a reader found in a client's store."""

from typing import Any

from pydantic import ConfigDict

from orchestrator.requests.shapes import Request
from orchestrator.state import GeneralState, Operation, Run, Steps
from registry.access import Level
from registry.ingest.from_client import ingest_all
from registry.storage.client_stores import save_seen_sessions
from registry.storage.database import WriteTransaction
from sources.base import FoundSession


class ImportRequest(Request):
    """Sessions found by a reader, which has checked them. Not for doors."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    operation = "import"
    is_awaited = False

    store: str
    found: list[FoundSession]

    @property
    def write_target(self) -> str | None:
        return self.store

    def summary(self) -> dict[str, Any]:
        messages = sum(len(found.session.messages) for found in self.found)
        return {"store": self.store, "sessions": len(self.found), "messages": messages}


def import_sessions(tx: WriteTransaction, run: Run, request: ImportRequest, _state: GeneralState) -> dict[str, Any]:
    """Store the new messages of a store's sessions, and mark the sessions as read."""
    not_empty = [found for found in request.found if found.session.messages or found.session.undone]
    stored = ingest_all(tx, request.source, [found.session for found in not_empty])
    numbers = {found.key: saved.channel_number or None for found, saved in zip(not_empty, stored, strict=True)}
    seen = [(found.key, found.fingerprint, numbers.get(found.key)) for found in request.found]
    new, sent = sum(saved.new for saved in stored), sum(len(saved.ids) for saved in stored)
    save_seen_sessions(tx, request.source, request.store, seen)
    run.recorder.explain(store=request.store, sessions=len(request.found), new=new, duplicates=sent - new)
    return {"sessions": len(request.found), "new_count": new, "duplicate_count": sent - new}


OPERATION = Operation(
    request=ImportRequest,
    level=Level.WRITE,
    is_internal=True,
    steps=Steps[ImportRequest, None](write=import_sessions),
    labels={"store": ("store", "저장소"), "found": ("found", "찾음")},
)
