"""/: the list of conversations, filtered and searched."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, Field

from backoffice.channels import find_channels
from backoffice.dependencies import CopyOf, CurrentClient, HttpClient
from backoffice.pages.reader import as_instant, as_local, day_names, day_of, utc_offset_minutes
from backoffice.pages.rendering import address, channel_url, render, see_other
from backoffice.pages.viewer.steps import first_steps
from backoffice.queries import ChannelsQuery
from orchestrator.requests.refusals import checked
from orchestrator.views import conversations as views

router = APIRouter(default_response_class=HTMLResponse)

ROWS = 50
PERIOD = ("from", "to")
FILTERS = ("source", "project", "tag", "from", "to", "q", "order", "deleted")
CONDITION_FILTERS = ("source", "project", "tag", "from", "to")

Model = TypeVar("Model", bound=BaseModel)


class Part(NamedTuple):
    """A part of a snippet; `is_hit`: it is one of the words."""

    text: str
    is_hit: bool


def given_query(
    request: Request, shape: type[Model], parameters: Mapping[str, str] | None = None, **defaults: Any
) -> Model:
    """Validate the parameters, by default the address's; empty ones, as forms send them, count as not given."""
    parameters = request.query_params if parameters is None else parameters
    given = {name: value for name, value in parameters.items() if value}
    given |= {name: as_instant(request, name, given[name]) for name in PERIOD if name in given}
    with checked():
        return shape.model_validate({**defaults, **given})


class RegistryQuery(ChannelsQuery):
    typing: bool = Field(False, description="the user is still typing: the search is not recorded")
    day: str | None = Field(None, max_length=10, description="day of the previous row, whose heading is shown already")


@router.get("/", response_model=None)
async def channels_page(request: Request, client: CurrentClient, elsewhere: CopyOf) -> Response:
    """Show the channels by last activity; with words, the matching ones, best first."""
    query = given_query(request, RegistryQuery, limit=ROWS)
    if query.q and IDENTIFIER.fullmatch(query.q.strip()):
        found = await client.view(views.find_by_id, query.q.strip())
        if found:
            kind, name = found
            url = channel_url(name) if kind == "channel" else f"/{'messages' if kind == 'message' else 'flow'}/{name}"
            is_part = "hx-request" in request.headers  # htmx is redirected by a header of its own
            return Response(headers={"HX-Redirect": url}) if is_part else see_other(url)
    given = {name: request.query_params.get(name, "") for name in FILTERS}
    listing = await list_context(request, client, query, given)
    return render(request, "channels.html", elsewhere=elsewhere, **listing)


async def list_context(
    request: Request, client: HttpClient, query: RegistryQuery, given: Mapping[str, str]
) -> dict[str, Any]:
    is_newest = not (query.q or query.cursor or query.deleted)
    shown = await client.view(views.list_header, is_newest=is_newest)
    found = await find_channels(client, query, utc_offset_minutes(request), is_recorded=not query.typing)
    understood = found.get("understood", {})
    meaning = client.orchestrator.meaning
    days = [None if query.is_by_relevance else day_of(request, item["updated_at"]) for item in found["items"]]
    cursor = found["next_cursor"]
    return {
        "given": given,
        "limits": {name: as_local(request, as_instant(request, name, given[name])) for name in PERIOD},
        "found": found,
        "hits": best_hits(found),
        "understood": understood,
        "more": address("/", **given, cursor=cursor, day=days[-1]) if cursor else None,
        "days": days,
        "day_before": query.day,
        "named_days": day_names(request),
        "address_here": address("/", **given),
        "is_newest": is_newest,
        "is_by_words_only": bool(query.q and meaning and meaning.is_loading),
        "is_by_relevance": query.is_by_relevance,
        "steps": None if found["items"] or any(given.values()) else await first_steps(request, client),
        "chips": [chip for chip in chips(query.q or "", understood) if chip.kind != "word" or chip.text.endswith("*")],
        "narrowed": {name: given[name] for name in CONDITION_FILTERS if given[name]},
        **shown,
    }


@router.get("/suggestions/{kind}")
async def suggestions(request: Request, client: CurrentClient, kind: Literal["project", "tag"]) -> HTMLResponse:
    """Suggest the latest projects or tags; the browser narrows them to what is typed."""
    found = await client.run("complete", {"kind": kind, "limit": 100}, is_recorded=False)
    return render(request, "suggestions.html", found=found["names"])


IDENTIFIER = re.compile(r"(?=.*\d)(?=.*[_/-])[^\s\"]{8,200}")
"""Matches an id: pasted into the search field, it is opened instead of searched for."""


class Chip(NamedTuple):
    """A condition of a search. `kind` names its label.

    Without it the words are `rest`, or the field `drop` is not given; neither: it cannot be removed.
    """

    kind: str
    text: str
    rest: str | None
    drop: str | None = None


class Hit(NamedTuple):
    """The best message of a found conversation, and how many match."""

    message_id: str
    parts: Sequence[Part]
    messages: int | None
    is_undone: bool


def chips(text: str, understood: Mapping[str, Any]) -> list[Chip]:
    """Return the conditions of a search in the order of their kinds."""
    return [Chip(kind, shown, _without(text, pattern)) for kind, shown, pattern in _conditions(understood)]


def _conditions(understood: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield kind, shown text, and a pattern that matches it as it was typed."""
    for word in understood.get("words", ()):
        yield "word", word, rf"(?<!\w){re.escape(word)}\S*"
    for word in understood.get("excluded", ()):
        yield "without", word, rf'-["“]?{re.escape(word)}["”]?'
    for tag in understood.get("tags", ()):
        yield "tag", tag, _field("tag", tag)
    for source in understood.get("sources", ()):
        yield "source", source, rf"{_field('source', source)}|(?:in )?\b{re.escape(source)}\S*"
    if project := understood.get("project"):
        name = project.replace("\\", "/").rpartition("/")[2]
        yield "project", name, rf"{_field('project', project)}|{_field('project', name)}|(?:in )?\b{re.escape(name)}\S*"
    if when := understood.get("when"):
        yield "time", when, rf"{re.escape(when)}\S*"
    elif "from" in understood or "to" in understood:
        days = (understood.get(edge, "")[:10] for edge in ("from", "to"))
        yield "time", " – ".join(days).strip(), r'(?:after|before):(?:"[^"]+"|\S+)'


def _field(name: str, value: str) -> str:
    return rf'{name}:"?{re.escape(value)}"?'


def _without(text: str, pattern: str) -> str | None:
    rest = " ".join(re.sub(pattern, " ", text, flags=re.IGNORECASE).split())
    return rest if rest != " ".join(text.split()) else None


def best_hits(found: Mapping[str, Any]) -> dict[str, Hit]:
    """Return for each channel of a search its best message, and how many match."""
    words = found.get("understood", {}).get("words", [])
    return {
        item["channel"]: Hit(
            best["id"], marked(best["snippet"], words), item["match_count"], bool(best.get("superseded"))
        )
        for item in found["items"]
        for best in item.get("passages", ())[:1]
    }


def marked(passage: str, words: Sequence[str]) -> list[Part]:
    """Split a passage at its hits, which are between asterisks, and shorten the text before the first one."""
    if "**" not in passage:
        return snippet(passage, words, MAX_LEAD)
    first, *others = passage.split("**")
    lead = first if len(first) <= MAX_LEAD else f"…{first[-MAX_LEAD:].partition(' ')[2] or first[-MAX_LEAD:]}"
    return [Part(part, at % 2 == 1) for at, part in enumerate([lead, *others]) if part]


MAX_LEAD = 10  # characters before the first hit in a row of a list, which shows some 25 of a passage
CHARS_BEFORE_HIT = 60  # the same in the hits of one conversation, whose rows are wider
SNIPPET_CHARS = 200


def snippet(text: str, words: Sequence[str], before: int = CHARS_BEFORE_HIT) -> list[Part]:
    """Return one line of the text from shortly before the first of the words, with all words marked."""
    longest_first = sorted(filter(None, words), key=len, reverse=True)
    pattern = re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})", re.IGNORECASE)
    first = pattern.search(text)
    start = max(first.start() - before, 0) if first else 0
    line = " ".join(text[start : start + SNIPPET_CHARS].split())
    shown = f"{'…' if start else ''}{line}{'…' if start + SNIPPET_CHARS < len(text) else ''}"
    return [Part(part, pattern.fullmatch(part) is not None) for part in pattern.split(shown) if part]
