"""Names and addresses of all pages of a filled registry."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from playwright.async_api import Page
from sqlalchemy import Column, ColumnElement, select

from registry.registry import Registry
from registry.storage.tables import channel, conversation, execution

FULL = ("home", "search: words", "search: korean words", "search: newest first", "runs")  # lists of more than one page
FRAGMENTS = ("palette", "margin")  # parts of pages: rules for whole pages do not apply
ROWS, MESSAGES = "main [data-row]", "#detail article.message"
SHOWS = {  # an element that each page must contain; pages not named here must contain rows
    **{name: f"{ROWS} mark" for name in ("search: words", "search: korean words", "search: newest first")},
    "search: nothing": ".list .empty",
    "overview": ".year rect",
    "palette": "a[href^='/channels/']",
    "today": "#detail h1",
    "long conversation: search": f"{MESSAGES}, #detail mark",
    **dict.fromkeys(
        ("long conversation", "long conversation: end", "long conversation: middle", "deleted conversation"), MESSAGES
    ),
    "margin": "#beside",
    **dict.fromkeys(("backups", "access", "settings"), ".tabs [aria-current]"),
    "forget": "form [name=before]",
    "guessed run": ".verdict.guessed",
    "not-found run": ".verdict.not_found",
    **dict.fromkeys(("insights", "insights: a day", "insights: all"), ".year rect, #chart-data"),
    "playground": "form [name=text]",
    "cases": "main .empty, main table",
    "login": "form [name=token]",
    "unknown page": "h1",
    "reference": "main h2",
}
WORDS = {"words": "postgres connection pool", "korean words": "배포 실패 원인", "nothing": "quokkaxyzzy"}


def pages(registry: Registry) -> Mapping[str, str]:
    """Return the address of each page by its name. LookupError if the registry has nothing to show on one.

    Pages show the oldest record of a kind, because the oldest runs are real ones with the times of their steps.
    """

    def first(column: Column[str], *conditions: ColumnElement[bool]) -> str:
        with registry.engine.connect() as connection:
            found = connection.execute(
                select(column).where(*conditions).order_by(column.table.c.number).limit(1)
            ).scalar()
        if found is None:
            raise LookupError(f"The registry has no {column} where {' and '.join(map(str, conditions))}")
        return quote(found, safe="")

    def run(operation: str, status: str) -> str:
        return first(execution.c.id, execution.c.operation == operation, execution.c.status == status)

    long = first(channel.c.name, channel.c.message_count > 100)
    gone = first(channel.c.name, channel.c.deleted)
    message = first(conversation.c.id, conversation.c.channel_number == 1, conversation.c.seq == 100)
    project = first(channel.c.project_path, channel.c.project_path.is_not(None))
    with_runs = first(execution.c.channel, execution.c.channel.is_not(None))
    guessed, not_found = run("extract", "guessed"), run("extract", "not_found")
    return {
        "home": "/",
        "conversations: yesterday": "/?from=yesterday&to=yesterday",
        "conversations: a client's": "/?source=cursor",
        "conversations: a project's": f"/?project={project}",
        **{f"search: {name}": f"/?{urlencode({'q': words})}" for name, words in WORDS.items()},
        "search: newest first": f"/?{urlencode({'q': WORDS['words'], 'order': 'newest'})}",
        "overview": "/overview",
        "palette": f"/palette?{urlencode({'q': WORDS['words']})}",
        "today": "/today",
        "long conversation": f"/channels/{long}",
        "long conversation: end": f"/channels/{long}?at=latest",
        "long conversation: middle": f"/channels/{long}?at={message}",
        "long conversation: search": f"/channels/{long}?q=postgres",
        "deleted conversation": f"/channels/{gone}?deleted=1",
        "margin": f"/margin/{long}",
        "trash": "/settings/trash",
        "backups": "/settings/backups",
        "forget": "/settings/forget",
        "access": "/settings/access",
        "runs": "/flow",
        "runs: failed": "/flow?status=failed",
        "runs: words": f"/flow?{urlencode({'q': 'quokka'})}",
        "runs: a client's": "/flow?client=cursor",
        "runs: slow": "/flow?min_duration_ms=1000",
        "runs: of a conversation": f"/flow?channel={with_runs}",
        "guessed run": f"/flow/{guessed}",
        "not-found run": f"/flow/{not_found}",
        "insights": "/insights",
        "insights: a day": "/insights?last=24h",
        "insights: all": "/insights?last=all",
        "playground": f"/flow/try?run={guessed}",
        "cases": "/flow/cases",
        "settings": "/settings",
        "login": "/login",
        "unknown page": "/nowhere",
        "reference": "/docs",
    }


async def open_page(page: Page, url: str, name: str, address: str) -> None:
    """Open a page. AssertionError if it shows an error or an empty list."""
    answer = await page.goto(url + address)
    assert answer
    assert answer.status == (404 if name == "unknown page" else 200), f"{name}: {answer.status}"
    assert await page.locator(SHOWS.get(name, ROWS)).count(), f"{name}: shows nothing"
    rows = await page.locator("[data-row]").count()
    assert name not in FULL or rows >= 50, f"{name}: {rows} rows"
