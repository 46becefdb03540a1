"""/backups: the backups that this registry has."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from backoffice.dependencies import SOURCE, Asking, Local, without_parameters
from backoffice.pages.rendering import render

router = APIRouter(default_response_class=HTMLResponse)


@router.get("/backups", dependencies=[without_parameters])
async def backups_page(request: Request, client: Asking, _here: Local) -> HTMLResponse:
    """The files in the folder of backups, newest first; they are made and put back in a terminal."""
    answer = await client.run({"operation": "list_backups", "query": {}, "source": SOURCE})
    return render(request, "backups.html", section="sources", backups=answer["backups"])
