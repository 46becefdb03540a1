"""Fit messages, texts and lists of sessions into the tokens of an answer. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from orchestrator.answer.delivery import most_fitting, shortened, tokens_in, tokens_of

AROUND = 45
"""Tokens of a message's id, role, time and sequence."""


def page_within(messages: Iterable[dict[str, Any]], max_tokens: int) -> list[dict[str, Any]]:
    """The first of these messages that fit; where they do not all fit, none takes more than half of the room.

    A message that is not shown whole says its `full_length`, in characters.
    """
    given = list(messages)
    if sum(map(_cost, given)) <= max_tokens:
        return given
    shown: list[dict[str, Any]] = []
    left = max_tokens
    for message in given:
        fitting = _fitting(message, max_tokens // 2 - _around(message))
        if shown and _cost(fitting) > left:
            break
        shown.append(fitting)
        left -= _cost(fitting)
    return shown


def piece_of(text: str, offset: int, fits: Callable[[str], bool]) -> str:
    """Return the text from an offset on that fits, up to the end of a line if there is one in its last tenth."""
    rest = text[offset:]
    if fits(rest):
        return rest
    end = max(1, most_fitting(len(rest) - 1, lambda end: fits(rest[:end])))
    line_end = rest.rfind("\n", end - end // 10, end) + 1
    return rest[: line_end or end]


def _fitting(message: dict[str, Any], max_tokens: int) -> dict[str, Any]:
    text, full_length = shortened(message["text"], max(max_tokens, 1), lambda _: 0.0)
    return {**message, "text": text, "full_length": full_length} if full_length else message


def _cost(message: dict[str, Any]) -> int:
    return tokens_in(message["text"]) + _around(message)


def _around(message: dict[str, Any]) -> int:
    return AROUND + tokens_in("".join(str(message[name]) for name in ("context", "tool") if message.get(name)))


SessionDict = dict[str, Any]


def fitted(sessions: Sequence[SessionDict], max_tokens: int) -> list[SessionDict]:
    """Return the sessions with as much of their matches as fits: the first match of each, then the lines around these,
    the nearest first, then further matches, at last the rest of their facts; no message twice, nothing empty.

    Each has its `matches`, best first, the first with its `context`. The first match of the first session is there
    whatever its size.
    """
    shown = [{**_filled(session), "matches": []} for session in sessions]
    left = max_tokens - sum(map(tokens_of, shown))
    for place, piece in _in_turn(sessions):
        session, is_first = shown[place], place == 0 and not shown[0]["matches"]
        cost = tokens_of(piece)
        if (cost > left and not is_first) or _has(session, piece["sequence"]):
            continue
        if "snippet" in piece:
            session["matches"].append(piece)
        elif session["matches"]:
            first = session["matches"][0]
            first["context"] = sorted([*first.get("context", []), piece], key=lambda line: line["sequence"])
        left -= cost
    for session, given in zip(shown, sessions, strict=True):
        rest = {name: given[name] for name in given if name in _AT_LAST and given[name]}
        cost = tokens_of(rest)
        if cost <= left:
            session |= rest
            left -= cost
    return shown


def _in_turn(sessions: Sequence[SessionDict]) -> Iterator[tuple[int, SessionDict]]:
    """Yield the sessions' places with their matches and lines in the order in which they are shown."""
    matches = [
        (rank, place, {name: value for name, value in match.items() if name != "context"})
        for place, session in enumerate(sessions)
        for rank, match in enumerate(session["matches"])
    ]
    yield from ((place, held) for rank, place, held in matches if rank == 0)
    for place, session in enumerate(sessions):
        for match in session["matches"][:1]:
            lines = sorted(match.get("context", ()), key=partial(_distance, match))
            yield from ((place, line) for line in lines)
    yield from ((place, held) for rank, place, held in sorted(matches, key=lambda one: one[:2]) if rank)


def _distance(match: SessionDict, line: SessionDict) -> tuple[int, int]:
    """The nearest first, and of these what comes after: the answer to a question rather than what was before it."""
    step = line["sequence"] - match["sequence"]
    return abs(step), -step


def _has(session: SessionDict, sequence: int) -> bool:
    lines = (line for match in session["matches"] for line in match.get("context", ()))
    return any(one["sequence"] == sequence for one in (*session["matches"], *lines))


_AT_LAST = {"project_name", "message_count", "created_at", "last_accessed", "summary", "summary_by"}
"""Fields of a session that are shown if room is left."""


def _filled(session: Mapping[str, Any]) -> SessionDict:
    """Return what tells a session from others; without a title its beginning."""
    hidden = {"matches", *_AT_LAST, *(["first_message_preview"] if session.get("title") else [])}
    return {name: value for name, value in session.items() if name not in hidden and value not in (None, "", [])}


def as_many_as_fit(sessions: Sequence[SessionDict], fits: Callable[[Sequence[SessionDict]], bool]) -> list[SessionDict]:
    """The sessions, or the first of them that fit; those with a title without their beginnings before any is left out.

    The first one is always there.
    """
    if fits(sessions):
        return list(sessions)
    brief = [{**one, "first_message_preview": None, "summary": None} if one.get("title") else one for one in sessions]
    return brief[: max(1, most_fitting(len(brief), lambda end: fits(brief[:end])))]
