"""Compose an extraction's answer of what was read for it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from math import inf
from typing import Any

from orchestrator.answer.delivery import DEFAULT_TOKENS, MessageDict, Weigh, delivered, fits, tokens_in, tokens_of
from orchestrator.answer.finding.beside import about, asks, with_outcome
from orchestrator.answer.finding.looking_up import understood
from orchestrator.answer.finding.reading import NEAR, Extraction
from orchestrator.answer.selection import Budget, Selection, place_in_time, select, whole, with_gaps
from orchestrator.answer.standing import where_it_stands
from orchestrator.requests.shapes import ExtractRequest
from registry.domain import Role, format_time, new_id, parse_time
from registry.storage.paging import cursor_of, encode_cursor
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.matching import matching_tokens
from sources.client import Room

WHOLE = 1_500  # tokens up to which a conversation comes whole if it goes on
FIRST_CHOICE = 60  # tokens of the texts of an unsure answer's first conversation
ALONE = 180  # the same if the next one has at most
# tokens of texts below which turns that match less are taken, too: in one wording the best turn is wrong more often
LEAST, LEAST_IN_ONE_WORDING = 60, 200
CLOSE = 0.6  # of its score: of strangers' guesses with other wordings 47 of 49 are right, and held the fact too rarely
NEARLY_BEST = 0.8  # share of the best turn's score from which on an earlier turn is shown before it
ASIDE = ("extract_id", "ranking")  # kept with the record, and not sent


def composed(request: ExtractRequest, data: Extraction, room: Room | None) -> tuple[dict[str, Any], int]:
    """Return the answer within the tokens asked for and the client's room, and the tokens that its messages were given.

    The messages are cut first, down to a third of the tokens; then what stands around them.
    """
    most = request.query.max_tokens or DEFAULT_TOKENS
    tokens = most
    if _is_guess(data) and not request.is_shortened:
        tokens = FIRST_CHOICE if _is_choice(data) else ALONE
    weigh = _weigh_for(data)
    is_sure = bool(data.ranked) and data.confidence is not Confidence.LOW
    if is_sure and not (request.is_shortened or data.kept or data.read.is_continuation):
        data = _from_the_best_on(data)
    result = _answer(request, data, tokens, weigh)
    while tokens > 1 and not request.is_shortened:
        sent = _as_sent(result)
        if fits(room, sent) and (tokens <= most / 3 or tokens_of(sent) <= most):
            break
        tokens = tokens * 3 // 4
        result = _answer(request, data, tokens, weigh)
    if not request.is_shortened:
        for name in ("stands_at", "candidates", "first", "last", "understood", "project", "source", "title"):
            if tokens_of(_as_sent(result)) <= most:
                break
            result = {**_without(result, name), "metadata": _without(result["metadata"], name)}
    return result, tokens


def _is_guess(data: Extraction) -> bool:
    """Return True for an unsure answer from a conversation that nobody named, beside others that may be meant."""
    is_unsure = data.confidence is Confidence.LOW and not data.read.is_narrowed
    return is_unsure and bool(data.candidates) and bool(data.ranked)


def _is_choice(data: Extraction) -> bool:
    """Return True for a guess that others come close to: one turn of it, and the others to choose from.

    Asked for what held then, which of its turns is more in doubt than which conversation.
    """
    return _is_guess(data) and not data.read.is_about_past and data.candidates[0].get("score", 1.0) > CLOSE


def _speaking(data: Extraction) -> list[MessageDict]:
    """Return the turn of a conversation's best hit: the user's message, the hit or the first answer, and what came of
    it."""
    ranked = data.ranked[0]
    best = min(ranked, key=lambda message: data.hits.get(message["number"], len(data.hits)))
    asked = [one for one in ranked if one["role"] == Role.USER and one["seq"] == best["turn"] != best["seq"]]
    behind = [one for one in ranked if place_in_time(one) > place_in_time(best)]
    answer = behind[:1] if best["role"] == Role.USER else []
    reply = behind[len(answer) : len(answer) + 1] if asks([best, *answer][-1]) else []
    told = [*answer, *reply]
    return [*asked, best, *told, *(one for one in with_outcome([best, *behind])[1:] if one not in told)]


def _without(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


def _as_sent(result: dict[str, Any]) -> dict[str, Any]:
    return {**_without(result, *ASIDE), "messages": [delivered(message) for message in result["messages"]]}


def _weigh_for(data: Extraction) -> Weigh:
    """Return the function that weighs a text, for all sizes in which an answer is tried."""
    queries = [wording.query for wording in data.result.wordings] if data.result else []
    weights = {term.token: term.weight for term in data.result.terms} if data.result else {}

    @cache
    def weigh(text: str) -> float:
        held = frozenset[str]().union(*(matching_tokens(query, text) for query in queries))
        return sum(weights.get(token, 0.0) for token in held)

    return weigh


def _answer(request: ExtractRequest, data: Extraction, tokens: int, weigh: Weigh) -> dict[str, Any]:
    few = request.query.limit if _is_choice(data) else max(2, tokens // 30)  # each has an id and a time, too
    budget = Budget(min(request.query.limit, few), tokens)
    is_continuation = (data.read.is_continuation and not _is_choice(data)) or not (data.ranked or data.kept)
    everything = _everything(data, budget) if is_continuation else None
    if everything is not None:
        selection = Selection(everything, len(data.turns))
    else:
        end = data.end if is_continuation else []
        ranked = [_speaking(data)] if _is_choice(data) and not request.is_shortened else data.ranked
        is_all = request.is_shortened or data.kept or ranked is not data.ranked
        until = [inf] * len(ranked) if is_all else _until(data)
        selection = select(
            ranked,
            end,
            data.hits,
            budget,
            weigh,
            is_continuation=is_continuation,
            until=until,
            is_first_page=not data.kept,
        )
    places = {seq: place for place, seq in enumerate(data.seqs)}
    shown = _marked(data, with_gaps(selection.messages, places), is_continuation=is_continuation)
    result = _result(data, shown, stands=is_continuation)
    _name_what_is_left(result, data, selection, shown)
    return result


def _until(data: Extraction) -> list[float]:
    """Return for each ranked turn the tokens of the answer below which it is shown: any number for what matches well,
    the fewest for what `_from_the_best_on` left for the next page."""
    least = 0.25 if data.confidence is Confidence.LOW else NEAR  # unsure which of them answers: more of them
    further = LEAST_IN_ONE_WORDING if data.result and len(data.result.wordings) == 1 else LEAST
    shares = [data.shares.get(turn[0]["turn"]) for turn in data.ranked]
    return [LEAST if share is None else inf if share >= least else further for share in shares]


def _from_the_best_on(data: Extraction) -> Extraction:
    """Put the turns before the best one that say clearly less last, for the next page: a reader of the answer reaches
    the fact sooner."""
    begin = data.ranked[0][0]["turn"]
    early = {turn for turn, share in data.shares.items() if turn < begin and share < NEARLY_BEST}
    return replace(
        data,
        ranked=sorted(data.ranked, key=lambda one: one[0]["turn"] in early),
        turns=sorted(data.turns, key=lambda turn: turn[1] in early),
        shares={turn: share for turn, share in data.shares.items() if turn not in early},
    )


def _everything(data: Extraction, budget: Budget) -> list[MessageDict] | None:
    """Return the whole conversation that goes on, if it fits; else None."""
    if data.kept or len(data.seqs) > sum(map(len, data.end)):
        return None
    return whole(data.end, budget._replace(tokens=min(budget.tokens, WHOLE)))


def _marked(data: Extraction, messages: list[MessageDict], *, is_continuation: bool) -> list[MessageDict]:
    """Mark why each message is shown, where something was asked for by words, and which ones a later one replaces."""
    last = {message["number"] for turn in data.end[-1:] for message in turn} if is_continuation else set[int]()

    def why(message: MessageDict) -> str:
        if message["number"] in data.hits:
            return "match"
        return "end" if message["number"] in last else "context"

    return [
        {
            **message,
            **({"why": why(message)} if data.hits else {}),
            **({"replaced_on": data.replaced_on[message["id"]]} if message["id"] in data.replaced_on else {}),
        }
        for message in messages
    ]


def _result(data: Extraction, shown: list[MessageDict], *, stands: bool) -> dict[str, Any]:
    row = data.channel
    similar = data.result.similar if data.result else None
    is_partial = data.confidence is Confidence.LOW and similar is not None and bool(similar.note)
    note = [data.note, f"Found by words alone: {similar.note}." if similar and is_partial else ""]
    result = {
        "extract_id": new_id("ext"),
        **about(row),
        "confidence": data.confidence.value if data.confidence else None,
        "note": " ".join(filter(None, note)),
        "newer": data.newer,
        "messages": shown,
        "first": None if _is_choice(data) else format_time(row.created_at),
        "last": None if _is_choice(data) else format_time(row.updated_at),
        "stands_at": where_it_stands(data.recent, {message["id"] for message in shown}) if stands else None,
        "metadata": {
            "total_count": row.message_count,
            "filtered_count": len(shown),
            "last_activity": format_time(row.updated_at),
            **_reading(data),
        },
        "candidates": data.candidates,
    }
    return {name: value for name, value in result.items() if value or name == "messages"}


def _reading(data: Extraction) -> dict[str, Any]:
    """Return how the request was read, where that is more than its words."""
    read = _without(understood(data.read, data.result, relaxed=data.relaxed), "also")
    return {"understood": read} if read.keys() - {"words", "typos"} else {}


def _name_what_is_left(
    result: dict[str, Any], data: Extraction, selection: Selection, shown: list[MessageDict]
) -> None:
    """Add what is not shown, and the cursor that leads to it."""
    metadata = result["metadata"]
    if not shown or _is_choice(data):
        return
    newer = sum(seq > shown[-1]["seq"] for seq in data.seqs)
    left = len(data.seqs) - len(shown)
    if newer:
        metadata["newer_messages"] = newer
    if left > 0:
        metadata["left_out"] = {"messages": left, "tokens": _tokens_left(left, data, shown)}
    if data.turns and selection.taken < len(data.turns):
        _keep_ranking(result, data, selection.taken)
    elif data.is_paged and (data.has_older or place_in_time(shown[0]) > min(map(place_in_time, chain(*data.end)))):
        metadata["next_cursor"] = cursor_of(parse_time(shown[0]["timestamp"]), shown[0]["number"])


def _tokens_left(left: int, data: Extraction, shown: Sequence[MessageDict]) -> int:
    """Return the tokens of so many messages: counted where they were read, else as long as those on average."""
    lengths = {message["number"]: tokens_in(message["text"]) for message in chain(*data.ranked, *data.end)}
    mean = sum(lengths.values()) / max(len(lengths), 1)
    for message in shown:
        lengths.pop(message["number"], None)
    return round(sum(lengths.values()) + max(left - len(lengths), 0) * mean)


def _keep_ranking(result: dict[str, Any], data: Extraction, taken: int) -> None:
    """Keep the rest of the ranking with the first page's record; later pages go on where the one before ended."""
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
        rest = [turn for _, turn in others if turn not in shown]
        of_first = [one["number"] for one in chain(*data.ranked) if one["turn"] == first]
        if not of_first or not numbers.issuperset(of_first):
            rest = [first, *rest]
        if not rest:
            return
        place = {"x": result["extract_id"], "o": 0}
        result["ranking"] = {"turns": rest, "hits": list(data.hits)}
    result["metadata"]["next_cursor"] = encode_cursor(place)
