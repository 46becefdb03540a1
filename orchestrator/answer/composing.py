"""An extraction's answer, of what was read for it: the messages that fit, what is told of the conversation, and what is
left. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from orchestrator.answer.delivery import (
    DEFAULT_TOKENS,
    MessageDict,
    Weigh,
    delivered,
    fits,
    shortened,
    tokens_in,
    tokens_of,
)
from orchestrator.answer.finding.beside import about
from orchestrator.answer.finding.looking_up import understood
from orchestrator.answer.finding.reading import Extraction, Said, taken_back, takes_back
from orchestrator.answer.finding.relevance import guess
from orchestrator.answer.selection import Budget, Selection, place_in_time, select, whole, with_gaps
from orchestrator.answer.standing import Beside, beside_within, where_it_stands
from orchestrator.requests.queries import ExtractQuery
from orchestrator.requests.shapes import ExtractRequest
from registry.domain import format_time, new_id, parse_time
from registry.storage.paging import cursor_of, encode_cursor
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.matching import matching_tokens
from sources.client import Room

SMALL = 0.25
"""A conversation that takes no more of the tokens is given whole."""
GUESS_TOKENS = 1_200
"""A guess is short."""
GUESS = "A guess: little of what was asked stands in this conversation. Say so, or ask which one is meant (candidates)."
TOKENS_PER_WORD = 1.5
"""A model's tokens for each of the analyzer's, about."""
BESIDE = 0.4
"""So much of an answer may be told beside its messages: where it stands, and what may be meant instead."""
TEXTS = 1 / 3
"""So much of it is left to the texts of messages, whatever stands around them."""


def composed(request: ExtractRequest, data: Extraction, room: Room | None) -> tuple[dict[str, Any], int]:
    """The answer, within the tokens asked for and what the client lets through; and how many its messages were given.

    What is told beside the messages is cut first, then they are. `room`: how much the client lets through.
    """
    query = request.query
    most = query.max_tokens or DEFAULT_TOKENS
    told = Beside(where_it_stands(data.recent) if data.recent else {}, data.candidates, data.others)
    beside = beside_within(told, int(BESIDE * most))
    tokens = min(most, GUESS_TOKENS) if data.confidence is Confidence.LOW else most
    known = _known_of(data)
    result = _answer(query, data, beside, tokens, known)
    while tokens > 1 and not request.is_shortened:
        shown = _as_shown(result)
        if fits(room, shown) and (tokens <= TEXTS * most or tokens_of(shown) <= most):
            break
        tokens = tokens * 3 // 4
        result = _answer(query, data, beside, tokens, known)
    return result if request.is_shortened else _briefly(result, most), tokens


_LEAST_SIGNIFICANT = ("stands_at", "first", "last", "understood", "project", "source", "title")
"""What is left out around the messages, in turn, where little room was asked for."""
_KEPT_ASIDE = ("extract_id", "ranking")
"""What is kept with the record, and does not go out."""


def _briefly(result: dict[str, Any], most: int) -> dict[str, Any]:
    """The same within the tokens asked for, as far as what is told around the messages can be left out."""
    for name in _LEAST_SIGNIFICANT:
        if tokens_of(_as_shown(result)) <= most:
            break
        result = {**_without(result, name), "metadata": _without(result["metadata"], name)}
    return result


def _without(given: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


def _as_shown(result: dict[str, Any]) -> dict[str, Any]:
    shown = [delivered(message) for message in result["messages"]]
    return {**_without(result, *_KEPT_ASIDE), "messages": shown}


class _Known(NamedTuple):
    """What is told once for all the sizes in which an answer is tried: what a text holds of each wording, the place of
    a message (seq) in the channel, and all these in ascending order."""

    held: Callable[[str], Sequence[frozenset[str]]]
    place: Callable[[int], int | None]
    ascending: Sequence[int]


def _known_of(data: Extraction) -> _Known:
    queries = [wording.query for wording in data.result.wordings] if data.result else []
    held = cache(lambda text: [matching_tokens(query, text) for query in queries])
    ascending = sorted(data.seqs)
    return _Known(held, _places_in(data.seqs, ascending), ascending)


def _places_in(seqs: Sequence[int], ascending: Sequence[int]) -> Callable[[int], int | None]:
    """Where a message stands: most conversations came in the order in which they were spoken, and an answer asks for
    a few of thousands of places."""
    if seqs != ascending:
        return {seq: place for place, seq in enumerate(seqs)}.get

    def place(seq: int) -> int | None:
        at = bisect_left(ascending, seq)
        return at if at < len(ascending) and ascending[at] == seq else None

    return place


def _answer(query: ExtractQuery, data: Extraction, beside: Beside, tokens: int, known: _Known) -> dict[str, Any]:
    budget = Budget(query.limit, tokens)
    goes_on = data.read.goes_on or (not data.ranked and not data.kept)
    everything = _everything(query, data, budget, goes_on=goes_on)
    weigh = _weigher(data, known)
    if everything is not None:
        selection = Selection(everything, len(data.turns))
    else:
        is_first = data.kept is None
        selection = select(data.ranked, data.end, data.hits, budget, weigh, goes_on=goes_on, is_first_page=is_first)
    shown = _marked(data, beside, with_gaps(selection.messages, known.place), known)
    result = _result(data, beside, shown, [] if goes_on else _best(data, shown, weigh))
    _say_what_is_left(result, data, selection, shown, known)
    return result


def _everything(query: ExtractQuery, data: Extraction, budget: Budget, *, goes_on: bool) -> list[MessageDict] | None:
    """All of the conversation, where somebody wants to go on with it, or it is too small to be worth gaps; None where
    that does not fit, or only a time of it is wanted."""
    if data.kept or len(data.seqs) > sum(map(len, data.end)):
        return None
    if goes_on:
        return whole(data.end, budget)
    small = min(budget.tokens, int(SMALL * (query.max_tokens or DEFAULT_TOKENS)))
    return whole(data.end, replace(budget, tokens=small)) if _is_within_time(query, data) else None


def _is_within_time(query: ExtractQuery, data: Extraction) -> bool:
    """Whether all of the conversation was said in the time that is asked for."""
    begins = [at for at in (query.from_, data.read.search.from_) if at]
    ends = [at for at in (query.to, data.read.search.to) if at]
    row = data.channel
    return all(row.created_at >= at for at in begins) and all(row.updated_at <= at for at in ends)


def _weigher(data: Extraction, known: _Known) -> Weigh:
    """How much of the request a passage holds: each word by how rare it is."""
    weights = {term.token: term.weight for term in data.result.terms} if data.result else {}

    def weigh(text: str) -> float:
        return sum(weights.get(token, 0.0) for token in frozenset[str]().union(*known.held(text)))

    return weigh


def _marked(data: Extraction, beside: Beside, messages: list[MessageDict], known: _Known) -> list[MessageDict]:
    """Messages that a later one takes back say so."""
    if data.result is None:
        return messages
    later = taken_back(_said(messages, known)) if any(takes_back(message["text"]) for message in messages) else {}
    shown = {message["id"] for channel in ({"messages": messages}, *beside.others) for message in channel["messages"]}
    later |= {one: other for one, other in data.taken_back.items() if other in shown}
    return [
        {**message, "superseded_by": later[message["id"]]} if message["id"] in later else message
        for message in messages
    ]


def _said(messages: Sequence[MessageDict], known: _Known) -> list[Said]:
    return [
        Said(
            message["id"],
            (message["timestamp"], message["number"]),
            message["text"],
            frozenset().union(*known.held(message["text"])),
            (message["channel_number"], message["turn"]),
        )
        for message in messages
    ]


PASSAGES, PASSAGE, AHEAD = 3, 60, 250
"""So many of the best passages, of so many tokens, stand first where so many tokens of messages stand before them."""


def _best(data: Extraction, shown: Sequence[MessageDict], weigh: Weigh) -> list[dict[str, Any]]:
    """The passages that answer best, best first: the messages, in the order of the talk, may hide them in the middle.

    In place of one that was taken back stands what took it back.
    """
    by_id = {message["id"]: message for message in shown}
    found = [message for message in shown if message["number"] in data.hits] if data.verdicts else []
    ranked = sorted(found, key=lambda message: data.hits[message["number"]])
    ids = (message.get("superseded_by", message["id"]) for message in ranked)
    best = [by_id[one] for one in dict.fromkeys(ids) if one in by_id][:PASSAGES]
    if not best or sum(tokens_in(one["text"]) for one in shown[: shown.index(best[0])]) < AHEAD:
        return []
    return [{"id": one["id"], "text": shortened(one["text"], PASSAGE, weigh).text} for one in best]


def _result(data: Extraction, beside: Beside, shown: list[MessageDict], best: list[dict[str, Any]]) -> dict[str, Any]:
    row = data.channel
    told = {
        "extract_id": new_id("ext"),
        **about(row),
        "first": format_time(row.created_at),
        "last": format_time(row.updated_at),
        "confidence": data.confidence.value if data.confidence else None,
        "note": _note(data) or None,
        "newer": data.newer,
        "best": best or None,
        "messages": shown,
        "stands_at": beside.stands_at or None,
        "others": beside.others or None,
        "candidates": beside.candidates,
        "metadata": {
            "total_count": row.message_count,
            "filtered_count": len(shown),
            "last_activity": format_time(row.updated_at),
            "understood": understood(data.read, data.result, relaxed=data.relaxed),
        },
    }
    return {name: value for name, value in told.items() if value is not None}


def _note(data: Extraction) -> str:
    is_guess = data.confidence is Confidence.LOW
    return " ".join(filter(None, [data.note, guess(GUESS, data.result) if is_guess else ""]))


def _say_what_is_left(
    result: dict[str, Any], data: Extraction, selection: Selection, shown: list[MessageDict], known: _Known
) -> None:
    """What is not shown, and how to get at it."""
    metadata = result["metadata"]
    if not shown:
        return
    last = shown[-1]["seq"]
    newer = len(known.ascending) - bisect_right(known.ascending, last)
    left = len(data.seqs) - len(shown)
    if newer:
        metadata["newer_messages"] = newer
    if left > 0:
        share = left / max(data.channel.message_count, 1)
        metadata["left_out"] = {"messages": left, "tokens": round(share * data.channel.token_count * TOKENS_PER_WORD)}
    if data.turns and selection.taken < len(data.turns):
        _keep_ranking(result, data, selection.taken)
    elif data.is_paged and (data.has_older or place_in_time(shown[0]) > min(map(place_in_time, chain(*data.end)))):
        metadata["next_cursor"] = cursor_of(parse_time(shown[0]["timestamp"]), shown[0]["number"])


def _keep_ranking(result: dict[str, Any], data: Extraction, taken: int) -> None:
    """The first page's record keeps the rest of the ranking; later pages go on where the one before ended."""
    if data.kept:
        place = {"x": data.kept.result_id, "o": data.kept.offset + taken}
        if not taken:  # of a turn with more of what was found than a page may hold the best is shown first
            place["h"] = 1 + max(data.hits.get(message["number"], -1) for message in result["messages"])
    else:
        shown = {message["turn"] for message in result["messages"]}
        numbers = {message["number"] for message in result["messages"]}
        found = (one for one in chain(*data.ranked, *data.end) if one["number"] in data.hits)
        shown -= {message["turn"] for message in found if message["number"] not in numbers}
        # Of the first of them, and of the channel's last turn, a part may be shown: the next page leaves that out.
        (_, first), *others = data.turns[taken:]
        rest = [first, *[turn for _, turn in others if turn not in shown]]
        place = {"x": result["extract_id"], "o": 0}
        result["ranking"] = {"turns": rest, "hits": list(data.hits)}
    result["metadata"]["next_cursor"] = encode_cursor(place)
