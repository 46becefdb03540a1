"""Fit messages, texts and lists of sessions into the tokens of an answer. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from orchestrator.answer.delivery import shortened, tokens_in, tokens_of

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


SessionDict = dict[str, Any]
_ALWAYS = ("session_id", "channel", "source", "title", "score", "match_count", "matches")
"""Fields of a session that are always shown."""
_AT_LAST = ("summary", "summary_by")
"""Fields of a session that are shown if room is left."""
_WORTH = {"match": (1.0, 0.55, 0.4), "line": (0.6, 0.45, 0.3), "about": (0.5,), "summary": (0.0,)}
"""Worth of the first, second and third match of a session, of the lines around the best one, and so on; for a session
with half of the first one's score half of that."""
_SAID = ("match", "line")
_LEAST_SHARE = 0.05
"""A session that is only near in meaning may score next to nothing; its first match still comes before its second."""


Write = Callable[[int, str, Mapping[str, Any]], Mapping[str, Any]]
"""A match or a line of the session at a place, with its text."""


def _as_it_is(_place: int, _kind: str, held: Mapping[str, Any]) -> Mapping[str, Any]:
    return held


def fitted(sessions: Sequence[SessionDict], max_tokens: int, written: Write = _as_it_is) -> list[SessionDict]:
    """The sessions with as much of their matches and descriptions as fits; no message twice, nothing empty.

    Each has its description and `matches`, best first, the first with its `context`. The first match of the first
    session is there whatever its size. `written` gives the texts of matches and lines, where these come without them:
    of most there is no room.
    """
    shown = [{**_filled(session, _ALWAYS), "matches": []} for session in sessions]
    left = max_tokens - sum(map(tokens_of, shown))
    for piece in sorted(_pieces_of(sessions), key=lambda piece: -piece.worth):
        session = shown[piece.place]
        if not piece.may_join(session):
            continue
        is_first = piece.place == 0 and not session["matches"]
        if not is_first and tokens_of(piece.held) > left:  # nor has it room with its text
            continue
        held = written(piece.place, piece.kind, piece.held) if piece.kind in _SAID else piece.held
        cost = tokens_of(held)
        if cost <= left or is_first:
            piece.join(session, held)
            left -= cost
    return shown


def as_many_as_fit(sessions: Sequence[SessionDict], fits: Callable[[Sequence[SessionDict]], bool]) -> list[SessionDict]:
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


@dataclass(frozen=True, slots=True)
class _Piece:
    """Piece that may be added to the session at a place: a match, a line around the match `of`, or a description."""

    worth: float
    place: int
    kind: str
    held: Mapping[str, Any]
    of: int = 0

    def may_join(self, session: SessionDict) -> bool:
        if self.kind == "line" and not any(one["sequence"] == self.of for one in session["matches"]):
            return False
        return self.kind not in _SAID or not _has(session, self.held["sequence"])

    def join(self, session: SessionDict, held: Mapping[str, Any]) -> None:
        """Put it in, as it was written."""
        if self.kind == "match":
            session["matches"].append(held)
        elif self.kind == "line":
            match = next(one for one in session["matches"] if one["sequence"] == self.of)
            match["context"] = sorted([*match.get("context", []), held], key=lambda line: line["sequence"])
        else:
            session |= held


def _pieces_of(sessions: Sequence[SessionDict]) -> Iterator[_Piece]:
    best = max((session.get("score") or 0.0 for session in sessions), default=0.0)
    for place, session in enumerate(sessions):
        share = max((session.get("score") or 0.0) / best, _LEAST_SHARE) if best else 1.0
        about = _filled(session, session.keys() - {*_ALWAYS, *_AT_LAST})
        matches = [{name: value for name, value in match.items() if name != "context"} for match in session["matches"]]
        first = session["matches"][:1]
        around = [line for match in first for line in sorted(match.get("context", ()), key=partial(_distance, match))]
        of = first[0]["sequence"] if first else 0
        kinds = {"match": matches, "line": around, "about": [about], "summary": [_filled(session, _AT_LAST)]}
        for kind, held in kinds.items():
            worths = _WORTH[kind]
            for rank, one in enumerate(held):
                yield _Piece(share * worths[min(rank, len(worths) - 1)], place, kind, one, of)


def _distance(match: SessionDict, line: SessionDict) -> tuple[int, int]:
    """The nearest first, and of these what comes after: the answer to a question rather than what was before it."""
    step = line["sequence"] - match["sequence"]
    return abs(step), -step


def _has(session: SessionDict, sequence: int) -> bool:
    lines = (line for match in session["matches"] for line in match.get("context", ()))
    return any(one["sequence"] == sequence for one in (*session["matches"], *lines))


def _filled(session: Mapping[str, Any], names: Any) -> SessionDict:
    """Return the fields that are not empty; a beginning equal to the title is left out."""
    kept = {name: session[name] for name in session if name in names and session[name] not in (None, "", [])}
    if kept.get("first_message_preview") == session.get("title"):
        kept.pop("first_message_preview", None)
    return kept
