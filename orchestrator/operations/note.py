"""note: summarise the latest conversations of a folder for a new chat, or a compacted chat for itself."""

from typing import Any

from pydantic import Field

from orchestrator.answer.conversation_state import state_of
from orchestrator.answer.delivery import message_dict, tokens_in
from orchestrator.answer.digests.recap import recap
from orchestrator.answer.digests.start_note import (
    SESSIONS_READ,
    SESSIONS_WITH_STATE,
    STATE_MESSAGES,
    SessionState,
    compose_note,
    recent_sessions,
)
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import Operation, Run, Steps, as_read
from registry.access import Level
from registry.storage.conversations.channels import numbers_of, some_channels
from registry.storage.conversations.message_windows import remembered
from registry.storage.conversations.messages import messages_of
from registry.storage.conversations.references import resolve_session
from registry.storage.database import ReadTransaction


class NoteQuery(QueryShape):
    """The folder and the id of a chat that begins, or continues after a compaction."""

    folder: str = Field(min_length=1, description="the folder that the chat works in")
    session_id: str | None = Field(None, description="the chat itself; the note contains only its id")
    is_compacted: bool = Field(False, description="return what the compaction of that chat dropped")


class NoteRequest(Request):
    operation = "note"
    query: NoteQuery

    @property
    def is_about_current_chat(self) -> bool:
        return self.query.is_compacted  # of a chat that was never stored nothing would be known


def read_note(tx: ReadTransaction, run: Run, request: NoteRequest) -> dict[str, Any]:
    """Return the note: facts lost by a compaction, or the folder's latest conversations and remembered sentences."""
    query = request.query
    sentences = [one["text"] for one in remembered(tx, query.folder)]
    if query.is_compacted and query.session_id:
        row = resolve_session(tx, query.session_id)
        run.recorder.explain(by="compaction", channel=row.name)
        text = recap([message_dict(each) for each in messages_of(tx, row.number, limit=5000)], sentences)
        note: dict[str, Any] = {"note": text, "tokens": tokens_in(text), "told_of": [query.session_id] if text else []}
    else:
        latest, total = latest_of(tx, query.folder, query.session_id)
        run.recorder.explain(by="the folder's last activity", candidates=total)
        note = compose_note(latest, sentences, query.session_id)
    run.recorder.explain(kept=len(note["told_of"]), dropped=0, reason="max_tokens")
    return note


def latest_of(tx: ReadTransaction, folder: str, session_id: str | None) -> tuple[list[SessionState], int]:
    """Return the folder's latest conversations without the new chat, and the number of all."""
    some, total = some_channels(tx, project=folder, limit=SESSIONS_READ, offset=0)
    others = recent_sessions(some, session_id)
    numbers = numbers_of(tx, [each["channel"] for each in others[:SESSIONS_WITH_STATE]])
    sessions = []
    for each in others[:SESSIONS_WITH_STATE]:
        end = messages_of(tx, numbers[each["channel"]], limit=STATE_MESSAGES)
        sessions.append(SessionState(each, state_of(list(map(message_dict, end)))))
    return sessions + [SessionState(each, {}) for each in others[SESSIONS_WITH_STATE:]], total


OPERATION = Operation(
    request=NoteRequest,
    level=Level.READ,
    syncs_first=True,
    labels={"is_compacted": ("after a compaction", "대화 압축 후")},
    steps=Steps[NoteRequest, dict[str, Any]](query=read_note, answer=as_read),
)
