"""/briefings: what the days brought, and a form to make the briefing of one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from backoffice.dependencies import SOURCE, Asking
from backoffice.pages.reader import reader_now, utc_offset_minutes
from backoffice.pages.rendering import address, render
from backoffice.pages.viewer.markdown import html_of
from backoffice.queries import Word
from orchestrator.views import conversations

router = APIRouter(prefix="/briefings", default_response_class=HTMLResponse)

SEE_OTHER = 303


@router.get("")
async def briefings_page(
    request: Request, client: Asking, briefing: Annotated[Word | None, Query()] = None
) -> HTMLResponse:
    """The days that have a briefing, and the text of one: the one that is asked for, else the last."""
    found = await client.view(conversations.list_briefings)
    shown = next((one for one in found if one["id"] == briefing), found[0] if found else None)
    html = Markup(html_of(shown["text"])) if shown else None  # noqa: S704, sanitised by `markdown`
    today = reader_now(request).date().isoformat()
    return render(request, "briefings.html", section="briefings", found=found, shown=shown, html=html, today=today)


@router.post("")
async def make_briefing(request: Request, client: Asking, date: Annotated[str, Form()]) -> Response:
    """Make the briefing of a day, or hand it on again to what did not take it."""
    query: dict[str, Any] = {"date": date, "utc_offset_minutes": utc_offset_minutes(request)}
    made = await client.run({"operation": "daily_briefing", "query": query, "source": SOURCE})
    return RedirectResponse(address("/briefings", briefing=made["briefing"]["id"]), SEE_OTHER)
