"""/flow/sources: where conversations come from. The clients' own stores, and whether the clients know us."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from backoffice.dependencies import CopyOf, Local, without_parameters
from backoffice.pages.flow.rendering import render_flow
from sources.exports.client import CHATGPT, CLAUDE, GEMINI
from sources.purging import LONG

router = APIRouter(prefix="/flow", default_response_class=HTMLResponse)

SHOWN_REASONS = 20


@router.get("/sources", dependencies=[without_parameters])
async def sources_page(request: Request, machine: Local, elsewhere: CopyOf) -> HTMLResponse:
    """Stores with what was read of them and what was not; clients with what is installed and how to install it."""
    seen = await machine.look()
    return render_flow(
        request,
        "sources.html",
        section="sources",
        stores=seen["stores"],
        clients=[_shown(client) for client in seen["clients"] if client["is_here"]],
        absent=[client["client"] for client in seen["clients"] if not client["is_here"]],
        is_shared=seen["is_shared"],
        sync=seen["sync"],
        elsewhere=elsewhere,
        most=SHOWN_REASONS,
        long=LONG,
        imported=(CLAUDE.source, CHATGPT.source, GEMINI.source),
    )


def _shown(client: dict[str, Any]) -> dict[str, Any]:
    """A client with its parts by kind, each once: of a rule in several projects, all of them."""
    by_kind = groupby(client["parts"], key=lambda part: part["what"])
    return {**client, "parts": {what: list(parts) for what, parts in by_kind}}


@router.post("/sources/sync")
async def start_sync(machine: Local) -> RedirectResponse:
    """Bring in what is new in the stores; the page shows how it goes."""
    machine.start_sync()
    return RedirectResponse("/flow/sources", 303)
