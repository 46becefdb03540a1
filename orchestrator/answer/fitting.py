"""Fit messages, texts and lists of sessions into the tokens of an answer. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from orchestrator.answer.delivery import largest_fitting, shorten, tokens_in, tokens_of

OVERHEAD = 45  # tokens of a message's id, role, time and sequence


def fit_page(messages: Iterable[dict[str, Any]], max_tokens: int) -> list[dict[str, Any]]:
    """Return the first messages that fit; unless all fit, shorten each to at most half of the tokens.

    A shortened message has its `full_length` in characters.
    """
    given = list(messages)
    if sum(map(_cost, given)) <= max_tokens:
        return given
    shown: list[dict[str, Any]] = []
    left = max_tokens
    for message in given:
        fitting = _shorten_message(message, max_tokens // 2 - _overhead(message))
        if shown and _cost(fitting) > left:
            break
        shown.append(fitting)
        left -= _cost(fitting)
    return shown


def piece_of(text: str, offset: int, fits: Callable[[str], bool]) -> str:
    """Return the part of a text from an offset that fits, cut at a line end if one is in its last tenth."""
    rest = text[offset:]
    if fits(rest):
        return rest
    end = max(1, largest_fitting(len(rest) - 1, lambda end: fits(rest[:end])))
    line_end = rest.rfind("\n", end - end // 10, end) + 1
    return rest[: line_end or end]


def _shorten_message(message: dict[str, Any], max_tokens: int) -> dict[str, Any]:
    text, full_length = shorten(message["text"], max(max_tokens, 1), lambda _: 0.0)
    return {**message, "text": text, "full_length": full_length} if full_length else message


def _cost(message: dict[str, Any]) -> int:
    return tokens_in(message["text"]) + _overhead(message)


def _overhead(message: dict[str, Any]) -> int:
    return OVERHEAD + tokens_in("".join(str(message[name]) for name in ("context", "tool") if message.get(name)))


SessionDict = dict[str, Any]


def fit_sessions(sessions: Sequence[SessionDict], max_tokens: int) -> list[SessionDict]:
    """Return the sessions with as many of their matches as fit.

    Add in this order: each session's first match, the lines around these (nearest first), further matches, optional
    fields. No message is repeated and no empty field is kept. `matches` are best first; the first one has a `context`.
    The first match of the first session is always included.
    """
    shown = [{**_identifying_fields(session), "matches": []} for session in sessions]
    left = max_tokens - sum(map(tokens_of, shown))
    for index, piece in _in_display_order(sessions):
        session, is_first = shown[index], index == 0 and not shown[0]["matches"]
        cost = tokens_of(piece)
        if (cost > left and not is_first) or _is_shown(session, piece["sequence"]):
            continue
        if "snippet" in piece:
            session["matches"].append(piece)
        elif session["matches"]:
            first = session["matches"][0]
            first["context"] = sorted([*first.get("context", []), piece], key=lambda line: line["sequence"])
        left -= cost
    for session, given in zip(shown, sessions, strict=True):
        rest = {name: given[name] for name in given if name in _OPTIONAL and given[name]}
        cost = tokens_of(rest)
        if cost <= left:
            session |= rest
            left -= cost
    return shown


def _in_display_order(sessions: Sequence[SessionDict]) -> Iterator[tuple[int, SessionDict]]:
    """Yield (index of the session, match or line) in the order in which they are added."""
    matches = [
        (rank, index, {name: value for name, value in match.items() if name != "context"})
        for index, session in enumerate(sessions)
        for rank, match in enumerate(session["matches"])
    ]
    yield from ((index, piece) for rank, index, piece in matches if rank == 0)
    for index, session in enumerate(sessions):
        for match in session["matches"][:1]:
            lines = sorted(match.get("context", ()), key=partial(_distance, match))
            yield from ((index, line) for line in lines)
    yield from ((index, piece) for rank, index, piece in sorted(matches, key=lambda one: one[:2]) if rank)


def _distance(match: SessionDict, line: SessionDict) -> tuple[int, int]:
    """Return a sort key: the nearest line first; a line after the match, which may answer it, before the other."""
    step = line["sequence"] - match["sequence"]
    return abs(step), -step


def _is_shown(session: SessionDict, sequence: int) -> bool:
    lines = (line for match in session["matches"] for line in match.get("context", ()))
    return any(one["sequence"] == sequence for one in (*session["matches"], *lines))


_OPTIONAL = {"project_name", "message_count", "created_at", "last_accessed", "summary", "summary_by"}
"""Fields of a session that are added last, if they fit."""


def _identifying_fields(session: Mapping[str, Any]) -> SessionDict:
    """Return the fields that identify a session, with its beginning if it has no title."""
    hidden = {"matches", *_OPTIONAL, *(["first_message_preview"] if session.get("title") else [])}
    return {name: value for name, value in session.items() if name not in hidden and value not in (None, "", [])}


def as_many_as_fit(
    sessions: Sequence[SessionDict | str], fits: Callable[[Sequence[SessionDict | str]], bool]
) -> list[SessionDict | str]:
    """Return the first sessions that fit, at least one; drop previews of titled sessions before any session.

    A session is a dict, or one line of text.
    """
    if fits(sessions):
        return list(sessions)
    brief = [_without_preview(one) if isinstance(one, dict) and one.get("title") else one for one in sessions]
    return brief[: max(1, largest_fitting(len(brief), lambda end: fits(brief[:end])))]


def _without_preview(session: SessionDict) -> SessionDict:
    return {**session, "first_message_preview": None, "summary": None}
