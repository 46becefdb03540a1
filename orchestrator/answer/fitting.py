"""As much of a conversation, or of a list of sessions, as one answer holds. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.answer.delivery import room_for, shortened, tokens_in

OURS = 0.85
"""So much of what a client lets through is ours: the envelope takes some, and marks and line ends are escaped."""
AROUND = 45
"""Tokens of a message's id, role, time and sequence."""


def tokens_for(client: str | None, wanted: int, setting: int = 0) -> int:
    """The tokens that are wanted, or as many as the client lets through, or as a setting says."""
    return min(wanted, int(room_for(client, setting) * OURS) // 3)


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
    """As much of a text from an offset on as fits, to the end of a line if there is one in its last tenth."""
    rest = text[offset:]
    if fits(rest):
        return rest
    least, most = 1, len(rest) - 1
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(rest[:middle]) else (least, middle - 1)
    line_end = rest.rfind("\n", least - least // 10, least) + 1
    return rest[: line_end or least]


def _fitting(message: dict[str, Any], max_tokens: int) -> dict[str, Any]:
    text, full_length = shortened(message["text"], max(max_tokens, 1), lambda _: 0.0)
    return {**message, "text": text, "full_length": full_length} if full_length else message


def _cost(message: dict[str, Any]) -> int:
    return tokens_in(message["text"]) + _around(message)


def _around(message: dict[str, Any]) -> int:
    return AROUND + tokens_in("".join(str(message[name]) for name in ("context", "tool") if message.get(name)))


Found = dict[str, Any]
_ALWAYS = ("session_id", "channel", "source", "title", "score", "match_count", "matches")
"""What is shown of a session even where there is little room."""
_AT_LAST = ("summary", "summary_by")
"""What is shown where there is room left: it answers no question."""
_CHARACTERS_A_TOKEN = 4


def fitted(sessions: Sequence[Found], max_tokens: int) -> list[Found]:
    """The sessions with as much of their matches and descriptions as fits; no message twice, nothing empty.

    Each has its description and `matches`, best first, each with its `context`. The first match of the first session
    is there whatever its size.
    """
    shown = [{**_filled(session, _ALWAYS), "matches": []} for session in sessions]
    left = max_tokens - sum(map(_size, shown))
    for place, piece in _pieces(sessions, shown):
        cost = _size(piece)
        if cost <= left or (place == 0 and not shown[0]["matches"]):
            _add(shown[place], piece)
            left -= cost
    return shown


def as_many_as_fit(sessions: Sequence[Found], fits: Callable[[Sequence[Found]], bool]) -> list[Found]:
    """The sessions, or the first of them that fit; those with a title without their beginnings before any is left out.

    The first one is always there.
    """
    if fits(sessions):
        return list(sessions)
    brief = [{**one, "first_message_preview": None, "summary": None} if one.get("title") else one for one in sessions]
    least, most = 1, len(brief)
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(brief[:middle]) else (least, middle - 1)
    return brief[:least]


def _pieces(sessions: Sequence[Found], shown: Sequence[Found]) -> Iterator[tuple[int, Found]]:
    """What may be added, best first: first matches, descriptions, what stands around, other matches, summaries."""
    for place, session in enumerate(sessions):
        yield from ((place, {"match": match}) for match in session["matches"][:1])
    for place, session in enumerate(sessions):
        yield place, {"about": _filled(session, session.keys() - {*_ALWAYS, *_AT_LAST})}
    for place, session in enumerate(sessions):
        for match in session["matches"][:1]:
            for line in sorted(match.get("context", ()), key=lambda line: _nearness(line, match)):
                if not _has(shown[place], line["sequence"]):
                    yield place, {"line": line, "of": match["sequence"]}
    for place, session in enumerate(sessions):
        for match in session["matches"][1:]:
            if not _has(shown[place], match["sequence"]):
                yield place, {"match": match}
    for place, session in enumerate(sessions):
        yield place, {"about": _filled(session, _AT_LAST)}


def _add(session: Found, piece: Found) -> None:
    if "match" in piece:
        session["matches"].append({name: value for name, value in piece["match"].items() if name != "context"})
    elif "line" in piece:
        match = next((one for one in session["matches"] if one["sequence"] == piece["of"]), None)
        if match is not None:
            around = [*match.get("context", []), piece["line"]]
            match["context"] = sorted(around, key=lambda line: line["sequence"])
    else:
        session |= piece["about"]


def _nearness(line: Found, match: Found) -> tuple[int, int]:
    """The nearest first, and of these what comes after: the answer to a question rather than what was before it."""
    step = line["sequence"] - match["sequence"]
    return abs(step), -step


def _has(session: Found, sequence: int) -> bool:
    lines = (line for match in session["matches"] for line in match.get("context", ()))
    return any(one["sequence"] == sequence for one in (*session["matches"], *lines))


def _filled(session: Mapping[str, Any], names: Any) -> Found:
    """Of these fields those that say something; the beginning of a chat says nothing beside a title made of it."""
    kept = {name: session[name] for name in session if name in names and session[name] not in (None, "", [])}
    if kept.get("first_message_preview") == session.get("title"):
        kept.pop("first_message_preview", None)
    return kept


def _size(piece: Mapping[str, Any]) -> int:
    text = json.dumps({name: value for name, value in piece.items() if name != "of"}, ensure_ascii=False)
    return min(tokens_in(text), len(text) // _CHARACTERS_A_TOKEN + 1) if text.isascii() else tokens_in(text) // 2 + 1
