"""/palette: conversations, messages, runs and commands, from everywhere."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from backoffice.channels import find_channels
from backoffice.dependencies import SOURCE, CurrentClient, HttpClient
from backoffice.pages.flow.runs import WITHOUT_HINTS, group_by_question
from backoffice.pages.reader import language_of, translator, utc_offset_minutes
from backoffice.pages.rendering import address, channel_url, render
from backoffice.pages.viewer.channels import best_hits
from backoffice.queries import ChannelsQuery
from orchestrator.requests.field_types import NameKind
from orchestrator.views import conversations, runs
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
NAMES = 6  # suggested values of a key


@router.get("/palette")
async def palette(
    request: Request, client: CurrentClient, q: Annotated[str, Query(max_length=1000)] = "", typing: bool = True
) -> HTMLResponse:
    """List what matches the words; a search here is not recorded."""
    words = q.strip()
    translate = translator(language_of(request))
    commands = [(f"{label} {translate(label)}", translate(label), *rest) for label, *rest in COMMANDS]
    shelf = [(label, label, *rest) for label, *rest in _shelf(await client.view(conversations.rail))]
    filters = {"words": words, "without_source": SOURCE, **WITHOUT_HINTS}
    executions = await client.view(runs.list_executions, filters, Page(8)) if words else {}
    query = ChannelsQuery(q=words or None, limit=8)
    found = await find_channels(client, query, utc_offset_minutes(request), is_recorded=False)
    beginning, _, last = words.rpartition(" ")
    completed = await _completions(client, last) if last else []
    return render(
        request,
        "palette.html",
        q=words,
        commands=[shown for searched, *shown in (*shelf, *commands) if words.lower() in searched.lower()],
        runs=[run for run, _ in group_by_question(executions.get("items", []))][:4],
        found=found["items"],
        hits=best_hits(found),
        keys=[f"{beginning} {one}".strip() for one in completed],
    )


def _shelf(rail: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield label, address and icon of each entry of the sidebar, which phones do not show."""
    for one in rail["pinned"]:
        label = one["nickname"] or one["title"] or one["first_message_preview"] or one["channel"]
        yield label, channel_url(one["channel"], at="latest"), "pin"
    for view in rail["views"]:
        yield view["name"], view["address"], "bookmark"
    for project in rail["projects"]:
        yield project["name"], address("/", project=project["path"]), "folder"


async def _completions(client: HttpClient, word: str) -> list[str]:
    """Return the keys of the search language that begin with a word, or the values of the key in it."""
    key, colon, value = word.partition(":")
    if not colon or f"{key}:" not in KEYS:
        return [one for one in KEYS if one.startswith(word)]
    if key not in get_args(NameKind):
        return []
    found = await client.run("complete", {"kind": key, "text": value, "limit": NAMES}, is_recorded=False)
    return [f'{key}:"{name}"' if " " in name else f"{key}:{name}" for name in found["names"] if name != value]
