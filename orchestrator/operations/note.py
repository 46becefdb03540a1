"""The note of a new chat."""

from __future__ import annotations

from typing import Any

from orchestrator.answer.start_note import Standing, latest_of, told
from orchestrator.requests import NoteRequest
from orchestrator.state import Run, Steps
from registry.storage.database import ReadTransaction


def latest_conversations(tx: ReadTransaction, run: Run, request: NoteRequest) -> list[Standing]:
    """The last few of a folder, without the one that begins."""
    latest, total = latest_of(tx, request.query.folder, request.query.session_id)
    run.recorder.explain(by="the folder's last activity", candidates=total)
    return latest


async def make_note(run: Run, request: NoteRequest, data: list[Standing]) -> dict[str, Any]:
    """The note within its tokens; "" where there is nothing to tell of."""
    run.recorder.explain(kept=len(data), dropped=0, reason="max_tokens")
    return told(data)


NOTE = Steps[NoteRequest, list[Standing]](query=latest_conversations, keep=make_note)
