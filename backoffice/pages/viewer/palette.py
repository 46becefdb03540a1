"""/palette: conversations, messages, runs and commands, from everywhere."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from backoffice.channels import find_channels
from backoffice.dependencies import SOURCE, CurrentClient
from backoffice.pages.flow.runs import WITHOUT_HINTS, group_by_question
from backoffice.pages.reader import language_of, translator, utc_offset_minutes
from backoffice.pages.rendering import render
from backoffice.pages.viewer.channels import best_hits
from backoffice.queries import ChannelsQuery
from orchestrator.views import runs
from orchestrator.views.conversations import Page

router = APIRouter(default_response_class=HTMLResponse)

# English label, address and icon of each command.
COMMANDS = (
    ("Today", "/today", "calendar-days"),
    ("Runs", "/flow", "workflow"),
    ("Ask something", "/flow/try", "sparkles"),
    ("Test cases", "/flow/cases", "list-checks"),
    ("Insights", "/insights", "chart-column"),
    ("Settings", "/settings", "settings"),
    ("Trash", "/settings/trash", "trash-2"),
    ("Backups", "/settings/backups", "archive"),
)
KEYS = ("tag:", "project:", "source:", "after:", "before:")


@router.get("/palette")
async def palette(
    request: Request, client: CurrentClient, q: Annotated[str, Query(max_length=1000)] = "", typing: bool = True
) -> HTMLResponse:
    """List what matches the words; a search here is not recorded."""
    words = q.strip()
    translate = translator(language_of(request))
    commands = [one for one in COMMANDS if words.lower() in f"{one[0]} {translate(one[0])}".lower()]
    filters = {"words": words, "without_source": SOURCE, **WITHOUT_HINTS}
    executions = await client.view(runs.list_executions, filters, Page(8)) if words else {}
    query = ChannelsQuery(q=words or None, limit=8)
    found = await find_channels(client, query, utc_offset_minutes(request), is_recorded=False)
    last = words.rpartition(" ")[2]
    return render(
        request,
        "palette.html",
        q=words,
        commands=commands,
        runs=[run for run, _ in group_by_question(executions.get("items", []))][:4],
        found=found["items"],
        hits=best_hits(found),
        keys=[f"{words.removesuffix(last)}{key}" for key in KEYS if last and key.startswith(last)],
    )
