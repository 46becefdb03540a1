"""/bo/sources: the stores of this machine's clients, what was read of them, and how the clients are connected."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from backoffice.connections import Connection
from backoffice.dependencies import Local, without_parameters
from backoffice.schemas import TIME, Problem, example


class PassedOver(BaseModel):
    """A part of a store that was skipped."""

    what: str
    why: str


class Store(BaseModel):
    """A client's own history and the last sync that found something new in it."""

    source: str
    path: str
    is_here: bool = Field(description="a reader finds it on this machine now")
    synced_at: str | None = Field(description="when a sync last found news in it; null: it was never read")
    looked_at: str | None = Field(description="when the sync last started from the pages ended, if it looked here")
    seen: int = Field(description="sessions known of it")
    parsed: int = Field(description="sessions read by that sync: the new and the changed ones")
    only_here: int = Field(0, description="conversations read of it that are gone from it, and kept in the registry")
    skipped: list[PassedOver]
    drift: list[PassedOver] = Field(description="what the reader did not understand: the client's format has changed")


class StoreOutcome(BaseModel):
    """The outcome of a sync for one store."""

    source: str
    path: str
    new_messages: int
    parsed: int
    skipped: int


class SyncOutcome(BaseModel):
    """The sync that was last started from the pages."""

    state: Literal["running", "done", "failed"]
    started_at: str
    finished_at: str | None
    error: Problem | None
    stores: list[StoreOutcome]


class Sources(BaseModel):
    """Stores and clients of the machine that the server runs on."""

    model_config = example(
        is_shared=False,
        stores=[
            {
                "source": "claude-code",
                "path": "/home/me/.claude",
                "is_here": True,
                "synced_at": TIME,
                "looked_at": TIME,
                "seen": 214,
                "parsed": 2,
                "only_here": 31,
                "skipped": [],
                "drift": [{"what": "3 x record summary-v2", "why": "unknown to this reader"}],
            }
        ],
        clients=[
            {
                "client": "Cursor",
                "command": "cursor",
                "is_here": True,
                "parts": [
                    {
                        "what": "server",
                        "file": "/home/me/.cursor/mcp.json",
                        "state": "missing",
                        "command": "ctxr install cursor",
                    }
                ],
            }
        ],
        sync=None,
    )

    is_shared: bool = Field(description="others use this registry too: it looks at nobody's files")
    stores: list[Store]
    clients: list[Connection]
    sync: SyncOutcome | None


router = APIRouter(prefix="/bo", tags=["sources"])


@router.get("/sources", response_model=Sources, dependencies=[without_parameters])
async def show_sources(machine: Local) -> dict[str, Any]:
    """Return stores and clients on this machine; for a shared registry only the stores read into it."""
    return await machine.look()
