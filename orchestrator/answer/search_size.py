"""Sessions listed or found, as many and as much of each as an answer holds: names first, then passages. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.answer.size import tokens_in

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
