"""Suggest repairs of a run: its request without one condition, and what that would find."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from backoffice.dependencies import Client
from backoffice.pages.viewer.channels import chips


class Condition(NamedTuple):
    """A condition of a request. Without it the words are `text`, or the field `drop` is not given."""

    kind: str
    shown: str
    text: str | None
    drop: str | None


class Repair(NamedTuple):
    """A condition, and the conversation that is found without it."""

    condition: Condition
    found: dict[str, Any]
    confidence: str


def conditions_of(request: Mapping[str, Any], understood: Mapping[str, Any]) -> list[Condition]:
    """Return the conditions of a request: those in its words, then those in its fields."""
    query: Mapping[str, Any] = request.get("query") or {}
    in_words = [Condition(one.kind, one.text, one.rest, None) for one in chips(query.get("text") or "", understood)]
    return [*in_words, *_in_fields(request, query)]


def _in_fields(request: Mapping[str, Any], query: Mapping[str, Any]) -> Iterator[Condition]:
    if request.get("channel"):
        yield Condition("channel", str(request["channel"]), None, "channel")
    for name in ("source", "project", "tag", "from", "to"):
        if query.get(name) and query[name] != "all":
            yield Condition({"from": "time", "to": "time"}.get(name, name), str(query[name]), None, name)


def changed(request: Mapping[str, Any], text: str | None, drop: Sequence[str]) -> dict[str, Any]:
    """Return a request with other words, and without some of its fields."""
    query = {name: value for name, value in (request.get("query") or {}).items() if name not in drop}
    if text:
        query["text"] = text
    kept = {name: value for name, value in request.items() if name not in ("query", *drop)}
    return {**kept, "query": query}


async def repairs(client: Client, request: Mapping[str, Any], conditions: Sequence[Condition]) -> list[Repair]:
    """Search without each condition in turn, and return those that find a conversation."""
    found: list[Repair] = []
    narrowing = [one for one in conditions if one.kind != "word" and (one.text or one.drop)]
    for condition in narrowing[:5]:
        asked = changed(request, condition.text, [condition.drop] if condition.drop else [])["query"]
        names = ("text", "also", "source", "project", "tag", "from", "to")
        query = {name: asked[name] for name in names if asked.get(name)} | {"limit": 1, "context_window": 0}
        answer = await client.ask("search_sessions", query, is_recorded=False)
        if answer["success"] and answer["sessions"] and answer["sessions"][0]["match_count"]:
            found.append(Repair(condition, answer["sessions"][0], answer.get("confidence", "low")))
    return found
