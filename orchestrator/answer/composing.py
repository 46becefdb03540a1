"""Compose the answer of an extraction. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from math import inf
from typing import Any

from orchestrator.answer.conversation_state import state_of
from orchestrator.answer.delivery import DEFAULT_TOKENS, MessageDict, TextWeight, deliver, fits, tokens_in, tokens_of
from orchestrator.answer.finding.alternatives import (
    MAX_CHOICES_TOKENS,
    describe_channel,
    is_question_to_user,
    with_last_answer,
)
from orchestrator.answer.finding.extraction import MIN_SCORE_SHARE, Extraction
from orchestrator.answer.finding.lookup import describe_request
from orchestrator.answer.finding.relevance import CLOSE_SCORE
from orchestrator.answer.selection import Budget, Selection, select, select_all, time_key, with_gaps
from orchestrator.requests.shapes import ExtractRequest
from registry.domain import Role, format_time, new_id, parse_time
from registry.storage.paging import cursor_of, encode_cursor
from registry.text.ranking.confidence import Confidence
from registry.text.ranking.matching import matching_tokens
from sources.client import SizeLimit

MAX_WHOLE_TOKENS = 1_500  # a conversation to continue is sent whole if it has at most this many tokens
CHOICE_TOKENS = 60  # tokens of texts from the first conversation of an unsure answer; more if alternatives need fewer
LONE_CHOICE_TOKENS = 260  # the same if no other conversation is close
# Weaker turns are added until the texts have this many tokens; fewer if the best turn is surely right, or comes later.
MIN_TOKENS, MIN_TOKENS_SURE = 200, 60
MESSAGE_TOKENS = 30  # of a message's id, role and time
MAX_REST_TOKENS = 150  # messages left out are added if they take at most this many tokens
NEARLY_BEST = 0.8  # share of the best turn's score from which an earlier turn is shown before it


def compose(request: ExtractRequest, data: Extraction, limit: SizeLimit | None) -> tuple[dict[str, Any], int]:
    """Return the answer within the requested tokens and the client's limit, and the token budget of its messages.

    Shorten the messages first, down to a third of the tokens, then drop other fields.
    """
    most = request.query.max_tokens or DEFAULT_TOKENS
    tokens = most
    if _is_guess(data) and not request.is_shortened:
        unused = max(0, MAX_CHOICES_TOKENS - tokens_of(data.candidates))
        tokens = unused + (CHOICE_TOKENS if _is_choice(data) else LONE_CHOICE_TOKENS)
    weigh = _text_weight(data)
    is_sure = bool(data.ranked) and data.confidence is not Confidence.LOW
    if is_sure and not (request.is_shortened or data.position or data.parsed.is_continuation):
        data = _defer_early_turns(data)
    result = _answer(request, data, tokens, weigh)
    while tokens > 1 and not request.is_shortened:
        sent = as_delivered(result)
        if fits(limit, sent) and (tokens <= most / 3 or tokens_of(sent) <= most):
            break
        tokens = tokens * 3 // 4
        result = _answer(request, data, tokens, weigh)
    if not request.is_shortened:
        for name in ("stands_at", "candidates", "first", "last", "understood", "project", "source", "title"):
            if tokens_of(as_delivered(result)) <= most:
                break
            result = {**_without_keys(result, name), "metadata": _without_keys(result["metadata"], name)}
    return result, tokens


def _is_guess(data: Extraction) -> bool:
    """Return True for an unsure answer with alternatives, if the user named no time, project or client."""
    is_unsure = data.confidence is Confidence.LOW and not data.parsed.is_narrowed
    return is_unsure and bool(data.candidates) and bool(data.ranked)


def _is_choice(data: Extraction) -> bool:
    """Return True for a guess with close alternatives, which is answered by one turn and the alternatives.

    Not for a request about the past: there the turn is less certain than the conversation.
    """
    return _is_guess(data) and not data.parsed.is_about_past and data.candidates[0].get("score", 1.0) > CLOSE_SCORE


def _is_surely_right(data: Extraction) -> bool:
    """Return True if the best turn most likely answers: with one wording it is wrong more often."""
    return data.confidence is Confidence.HIGH and data.result is not None and len(data.result.wordings) > 1


def _best_turn(data: Extraction) -> list[MessageDict]:
    """Return the best hit's turn: the user's message, the hit or the first answer, and the outcome."""
    ranked = data.ranked[0]
    best = min(ranked, key=lambda message: data.hits.get(message["number"], len(data.hits)))
    question = [one for one in ranked if one["role"] == Role.USER and one["seq"] == best["turn"] != best["seq"]]
    after = [one for one in ranked if time_key(one) > time_key(best)]
    answer = after[:1] if best["role"] == Role.USER else []
    reply = after[len(answer) : len(answer) + 1] if is_question_to_user([best, *answer][-1]) else []
    outcome = [*answer, *reply]
    return [*question, best, *outcome, *(one for one in with_last_answer([best, *after])[1:] if one not in outcome)]


def _without_keys(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


def as_delivered(result: dict[str, Any]) -> dict[str, Any]:
    """Return the answer as the client gets it, without the fields that are only recorded."""
    fields = _without_keys(result, "extract_id", "ranking")
    return {**fields, "messages": [deliver(message) for message in result["messages"]]}


def _text_weight(data: Extraction) -> TextWeight:
    """Return a cached function that weighs a text; it is used for all sizes that are tried."""
    queries = [wording.query for wording in data.result.wordings] if data.result else []
    weights = {term.token: term.weight for term in data.result.terms} if data.result else {}

    @cache
    def weigh(text: str) -> float:
        matched = frozenset[str]().union(*(matching_tokens(query, text) for query in queries))
        return sum(weights.get(token, 0.0) for token in matched)

    return weigh


def _answer(request: ExtractRequest, data: Extraction, tokens: int, weigh: TextWeight) -> dict[str, Any]:
    """Return the answer with the messages that fit `tokens`: the whole conversation, or a selection of its turns."""
    few = request.query.limit if _is_choice(data) else max(2, tokens // MESSAGE_TOKENS)
    budget = Budget(min(request.query.limit, few), tokens)
    is_continuation = (data.parsed.is_continuation and not _is_choice(data)) or not (data.ranked or data.position)
    selection = _whole_conversation(data, budget) if is_continuation else None
    if selection is None:
        end = data.end if is_continuation else []
        ranked = [_best_turn(data)] if _is_choice(data) and not request.is_shortened else data.ranked
        is_all = request.is_shortened or data.position or ranked is not data.ranked
        until = [inf] * len(ranked) if is_all else _token_limits(data)
        is_first_page = not data.position
        outcome = [] if is_all or end or data.confidence is Confidence.HIGH else _outcome(data)
        selection = select(
            ranked, end, data.hits, budget, weigh, until=until, outcome=outcome, is_first_page=is_first_page
        )
        if not is_all:
            selection = _with_small_rest(data, selection, budget)
    shown = _mark_messages(data, with_gaps(selection.messages, data.seqs))
    result = _result(data, shown, with_state=is_continuation)
    _add_left_out(result, data, selection, shown)
    return result


def _outcome(data: Extraction) -> list[MessageDict]:
    """Return the last two messages of a conversation that was read whole. They often say what came of its beginning,
    in other words than the request."""
    messages = [one for one in chain(*data.end) if one["role"] in (Role.USER, Role.ASSISTANT)]
    return messages[-2:] if _is_read_whole(data) else []


def _is_read_whole(data: Extraction) -> bool:
    return len(data.seqs) <= sum(map(len, data.end))


def _with_small_rest(data: Extraction, selection: Selection, budget: Budget) -> Selection:
    """Add the messages left out if they are few and short: to name them and their cursor takes as many tokens."""
    shown = {message["number"] for message in selection.messages}
    rest = [message for message in chain(*data.end) if message["number"] not in shown]
    tokens = sum(tokens_in(message["text"]) + MESSAGE_TOKENS for message in rest)
    is_small = tokens <= MAX_REST_TOKENS and len(shown) + len(rest) <= budget.messages
    if not (is_small and _is_read_whole(data)):
        return selection
    return Selection(sorted([*selection.messages, *rest], key=time_key), len(data.turns))


def _token_limits(data: Extraction) -> list[float]:
    """Return for each ranked turn the tokens of the answer up to which it is added: unlimited for a good match, the
    fewest for a turn deferred by `_defer_early_turns`."""
    least = 0.25 if data.confidence is Confidence.LOW else MIN_SCORE_SHARE  # if unsure, show more turns
    further = MIN_TOKENS_SURE if _is_surely_right(data) else MIN_TOKENS
    shares = [data.shares.get(turn[0]["turn"]) for turn in data.ranked]
    return [MIN_TOKENS_SURE if share is None else inf if share >= least else further for share in shares]


def _defer_early_turns(data: Extraction) -> Extraction:
    """Move weaker turns before the best one to the next page, so that a reader reaches the answer sooner."""
    begin = data.ranked[0][0]["turn"]
    early = {turn for turn, share in data.shares.items() if turn < begin and share < NEARLY_BEST}
    return replace(
        data,
        ranked=sorted(data.ranked, key=lambda one: one[0]["turn"] in early),
        turns=sorted(data.turns, key=early.__contains__),
        shares={turn: share for turn, share in data.shares.items() if turn not in early},
    )


def _whole_conversation(data: Extraction, budget: Budget) -> Selection | None:
    """Return the whole conversation if it was read and fits; else None."""
    if data.position or not _is_read_whole(data):
        return None
    messages = select_all(data.end, budget._replace(tokens=min(budget.tokens, MAX_WHOLE_TOKENS)))
    return None if messages is None else Selection(messages, len(data.turns))


def _mark_messages(data: Extraction, messages: list[MessageDict]) -> list[MessageDict]:
    """Mark why each message is shown (in a search by words), and when a later statement replaced it."""
    last = {message["number"] for turn in data.end[-1:] for message in turn}

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


def _result(data: Extraction, shown: list[MessageDict], *, with_state: bool) -> dict[str, Any]:
    row = data.channel
    similar = data.result.similar if data.result else None
    is_partial = data.confidence is Confidence.LOW and similar is not None and bool(similar.note)
    note = [data.note, f"Found by words only: {similar.note}." if similar and is_partial else ""]
    result = {
        "extract_id": new_id("ext"),
        **describe_channel(row),
        "confidence": data.confidence.value if data.confidence else None,
        "note": " ".join(filter(None, note)),
        "newer": data.newer,
        "messages": shown,
        "first": None if _is_choice(data) else format_time(row.created_at),
        "last": None if _is_choice(data) else format_time(row.updated_at),
        "stands_at": state_of(data.recent, {message["id"] for message in shown}) if with_state else None,
        "metadata": {
            "total_count": row.message_count,
            "filtered_count": len(shown),
            "last_activity": format_time(row.updated_at),
            **_describe_reading(data),
        },
        "candidates": data.candidates,
    }
    return {name: value for name, value in result.items() if value or name == "messages"}


def _describe_reading(data: Extraction) -> dict[str, Any]:
    """Return how the request was understood, if that is more than its words."""
    parsed = _without_keys(describe_request(data.parsed, data.result, relaxed=data.relaxed), "also")
    return {"understood": parsed} if parsed.keys() - {"words", "typos"} else {}


def _add_left_out(result: dict[str, Any], data: Extraction, selection: Selection, shown: list[MessageDict]) -> None:
    """Add the number of messages that are not shown, and the cursor to them."""
    metadata = result["metadata"]
    if not shown or _is_choice(data):
        return
    shown_seqs = {message["seq"] for message in shown}
    places = [place for place, seq in enumerate(data.seqs) if seq in shown_seqs]  # an undone message has none
    newer = len(data.seqs) - 1 - places[-1] if places else 0
    left = len(data.seqs) - len(shown)
    if newer:
        metadata["newer_messages"] = newer
    if left > 0:
        metadata["left_out"] = {"messages": left, "tokens": _tokens_left(left, data, shown)}
    if data.turns and selection.taken < len(data.turns):
        _save_ranking(result, data, selection.taken)
    elif data.is_paged and (data.has_older or time_key(shown[0]) > min(map(time_key, chain(*data.end)))):
        metadata["next_cursor"] = cursor_of(parse_time(shown[0]["timestamp"]), shown[0]["number"])


def _tokens_left(left: int, data: Extraction, shown: Sequence[MessageDict]) -> int:
    """Estimate the tokens of the messages left out: counted for those that were read, else the average."""
    lengths = {message["number"]: tokens_in(message["text"]) for message in chain(*data.ranked, *data.end)}
    mean = sum(lengths.values()) / max(len(lengths), 1)
    for message in shown:
        lengths.pop(message["number"], None)
    return round(sum(lengths.values()) + max(left - len(lengths), 0) * mean)


def _save_ranking(result: dict[str, Any], data: Extraction, taken: int) -> None:
    """Record the rest of the ranking with the first page; each later page continues where the previous one ended."""
    if data.position:
        position = {"x": data.position["x"], "o": data.position["o"] + taken}
        if not taken:  # a turn has more hits than a page; the best were shown
            position["h"] = 1 + max(data.hits.get(message["number"], -1) for message in result["messages"])
    else:
        shown = {message["turn"] for message in result["messages"]}
        numbers = {message["number"] for message in result["messages"]}
        found = (one for one in chain(*data.ranked, *data.end) if one["number"] in data.hits)
        shown -= {message["turn"] for message in found if message["number"] not in numbers}
        # The first of these turns and the channel's last turn may be partly shown; the next page omits those messages.
        first, *others = data.turns[taken:]
        rest = [turn for turn in others if turn not in shown]
        of_first = [one["number"] for one in chain(*data.ranked) if one["turn"] == first]
        if not of_first or not numbers.issuperset(of_first):
            rest = [first, *rest]
        if not rest:
            return
        position = {"x": result["extract_id"], "o": 0}
        result["ranking"] = {"turns": rest, "hits": list(data.hits)}
    result["metadata"]["next_cursor"] = encode_cursor(position)
