"""What a word that somebody has begun may become: names of sessions, tags, projects and clients."""

from __future__ import annotations

from typing import Any

from orchestrator.requests.shapes import CompleteRequest
from orchestrator.state import Run, Steps
from registry.storage.conversations.facets import names_like
from registry.storage.database import ReadTransaction


def names(tx: ReadTransaction, run: Run, request: CompleteRequest) -> list[str]:
    """The names there are, those used last first."""
    query = request.query
    found = names_like(tx, query.kind, query.text, query.limit)
    run.recorder.explain(names=len(found))
    return found


async def as_answer(_run: Run, _request: CompleteRequest, found: list[str]) -> dict[str, Any]:
    """The names as they are."""
    return {"names": found}


COMPLETE = Steps[CompleteRequest, list[str]](query=names, keep=as_answer)
