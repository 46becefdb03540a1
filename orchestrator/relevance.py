"""Which of the messages found answer the request, and how much of them fits. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.nearness import Places, explained, fused, fused_channels, is_near
from orchestrator.reasons import Reason
from orchestrator.recorder import KEPT_ITEMS
from registry.search.retrieval import SearchResult
from registry.text.ranking import Ranked
from registry.text.term_weights import coverage

LEAST_COVERAGE = 0.2
"""A message that covers less than this share of the request is not an answer to it."""
LEAST_SHARE = 0.5
"""A message that scores less than this share of the best one is not shown beside it.

Both from trying others on `benchmarks/retrieval/sets/development.json`: less share brings wrong turns and no right
ones, more of either costs right ones.
"""
NEARLY_KEPT = 10
"""So many places in a record are for the best of those that were dropped: they show where the line was drawn."""
LONG_TURN = 8
"""A longer turn is shown by its question, its hits and its last answer."""

Turn = tuple[int, int]
"""A turn's identity: channel number, seq of its first message."""
MessageDict = dict[str, Any]


class Judged(NamedTuple):
    """A message found, with the verdict on it; `reason` says why it was dropped, None for one that was kept.

    `places` is where it stands by words and by meaning, where both were asked.
    """

    ranked: Ranked
    coverage: float
    reason: Reason | None
    places: Places | None = None

    @property
    def score(self) -> float:
        """What it is ranked by."""
        return self.places.fused if self.places else self.ranked.score

    def as_dict(self) -> dict[str, Any]:
        """As an execution's step shows it."""
        found = self.ranked.candidate
        by_meaning = self.places.as_dict() if self.places else {}
        return by_meaning | {
            "message": found.number,
            "role": found.role,
            "channel_number": found.channel_id,
            "score": round(self.ranked.score, 3),
            "own": round(self.ranked.own, 3),
            "neighbours": round(self.ranked.neighbours, 3),
            "session": round(self.ranked.session, 3),
            "coverage": round(self.coverage, 3),
            "kept": self.reason is None,
            "reason": str(self.reason) if self.reason else None,
            "because": self.reason._asdict() if self.reason else None,
        }


def judge(findings: SearchResult, least_share: float = LEAST_SHARE) -> list[Judged]:
    """A verdict on every message found, best first."""
    best = max((_own(ranked) for ranked in findings.ranked), default=0.0)
    verdicts = [_judged(ranked, findings, least_share * best, best) for ranked in findings.ranked]
    return fused(verdicts, findings.similar, least_share) if is_near(findings) else verdicts


def _judged(ranked: Ranked, findings: SearchResult, least: float, best: float) -> Judged:
    reason = None
    covered = coverage(ranked.candidate.weight, findings.full)
    if ranked.candidate.number not in findings.matched:
        reason = Reason("parts")
    elif covered < LEAST_COVERAGE:
        reason = Reason("coverage", round(covered, 3), LEAST_COVERAGE)
    elif _own(ranked) < least:
        reason = Reason("score", round(_own(ranked) / best, 3), round(least / best, 3))
    return Judged(ranked, covered, reason)


def explanation(findings: SearchResult) -> dict[str, Any]:
    """What was looked up, and what was not and why, as an execution's step shows it."""
    return {
        "by": f"the {findings.index} message index",
        "words": [word.text for word in findings.query.words],
        "terms": [
            {"token": term.token, "weight": round(term.weight, 3), "in_messages": term.frequency}
            for term in findings.terms
        ],
        "terms_beyond_budget": [{"token": term.token, "in_messages": term.frequency} for term in findings.cut_terms],
        "taken_for_typos": dict(findings.typos),
        "candidates": findings.candidates,
        "ranked": len(findings.ranked),
        "unconfirmed": findings.filtered_out,
        **({"meaning": explained(findings.similar)} if findings.similar else {}),
    }


def outcome(verdicts: Sequence[Judged]) -> dict[str, Any]:
    """What became of the messages found, as an execution's step shows it: those kept, and the best of the others."""
    kept = [judged for judged in verdicts if judged.reason is None]
    dropped = [judged for judged in verdicts if judged.reason is not None]
    nearly = dropped[: max(NEARLY_KEPT, KEPT_ITEMS - len(kept))]
    shown = [judged.as_dict() for judged in (*kept[: KEPT_ITEMS - len(nearly)], *nearly)]
    return {"kept": len(kept), "dropped": len(dropped), "verdicts": shown}


def _own(ranked: Ranked) -> float:
    """The score without what the whole channel adds, which is the same for all its messages."""
    return ranked.score - ranked.session


def turns_in(kept: Iterable[Judged]) -> list[Turn]:
    """The turns of some messages, each once, in that order."""
    return list(dict.fromkeys((one.ranked.candidate.channel_id, one.ranked.candidate.turn) for one in kept))


def best_channels(findings: SearchResult) -> list[tuple[int, float]]:
    """Channels with their scores, best first: by their best relevant message and their title."""
    return session_scores([judged for judged in judge(findings, 0.0) if judged.reason is None], findings)


def session_scores(kept: Iterable[Judged], findings: SearchResult) -> list[tuple[int, float]]:
    """The channels of the messages kept, with their scores, best first; of equal ones the newer first."""
    judged_all = list(kept)
    scores: dict[int, float] = defaultdict(float)
    for judged in judged_all:
        number = judged.ranked.candidate.channel_id
        if judged.places and judged.places.by_words is None:
            continue
        scores[number] = max(scores[number], judged.ranked.score)
    for number, mass in findings.titles.items():
        if coverage(mass, findings.full) >= LEAST_COVERAGE:
            scores[number] += mass
    by_words = sorted(scores.items(), key=lambda item: (-item[1], -item[0]))
    return fused_channels([number for number, _ in by_words], judged_all) if is_near(findings) else by_words


def arrange(
    turns: Sequence[Turn],
    messages: Iterable[MessageDict],
    hits: frozenset[int],
    *,
    limit: int,
    max_tokens: int | None,
) -> tuple[list[MessageDict], int]:
    """The messages of as many turns as fit, best turns first, in conversation order; and how many turns that is.

    Each message has `number`, `channel_number`, `turn`, `role`, `text`. A first turn too long for the limits
    is cut to its hits, then its texts are cut, so that there is always an answer.
    """
    by_turn: Mapping[Turn, list[MessageDict]] = _by_turn(messages)
    chosen: list[MessageDict] = []
    taken = 0
    for turn in turns:
        whole = _shortened(by_turn.get(turn, []), hits)
        more = whole if taken else _cut_to(whole, hits, limit, max_tokens)
        if len(chosen) + len(more) > limit or not _fits([*chosen, *more], max_tokens):
            break
        chosen += more
        taken += 1
    return sorted(chosen, key=lambda message: (message["timestamp"], message["number"])), taken


def last_within(messages: Sequence[MessageDict], max_tokens: int | None) -> list[MessageDict]:
    """As many of the newest messages as fit, in order; the newest is cut if it alone is too long."""
    chosen: list[MessageDict] = []
    for message in reversed(messages):
        if not _fits([message, *chosen], max_tokens):
            break
        chosen.insert(0, message)
    if messages and not chosen and max_tokens is not None:
        return [cut(messages[-1], max_tokens)]
    return chosen


def _by_turn(messages: Iterable[MessageDict]) -> dict[Turn, list[MessageDict]]:
    groups: dict[Turn, list[MessageDict]] = defaultdict(list)
    for message in messages:
        groups[(message["channel_number"], message["turn"])].append(message)
    return groups


def _shortened(turn: list[MessageDict], hits: frozenset[int]) -> list[MessageDict]:
    """A long turn (an agent's many tool calls) without what is neither question, hit nor last answer."""
    if len(turn) <= LONG_TURN:
        return turn
    answers = [message for message in turn if message["role"] == "assistant"]
    ends = {turn[0]["number"], *(message["number"] for message in answers[-1:])}
    return [message for message in turn if message["number"] in hits | ends]


def _cut_to(turn: list[MessageDict], hits: frozenset[int], limit: int, max_tokens: int | None) -> list[MessageDict]:
    """The best turn, made to fit: hits before the rest, then shorter texts."""
    wanted = sorted(turn, key=lambda message: message["number"] not in hits)[:limit]
    if max_tokens is None or _fits(wanted, max_tokens):
        return wanted
    fitting: list[MessageDict] = []
    for message in wanted:
        if _fits([*fitting, message], max_tokens):
            fitting.append(message)
    return fitting or [cut(message, max_tokens) for message in wanted[:1]]


def _fits(messages: Iterable[MessageDict], max_tokens: int | None) -> bool:
    return max_tokens is None or sum(tokens_in(message["text"]) for message in messages) <= max_tokens


def tokens_in(text: str) -> int:
    """An estimate of a text's length in a model's tokens that errs upwards: ASCII 3 characters, others 1."""
    ascii_count = sum(map(str.isascii, text))
    return -(-ascii_count // 3) + (len(text) - ascii_count)


def cut(message: MessageDict, max_tokens: int) -> MessageDict:
    """The message with as much of its text as fits, and a mark where it ends."""
    return {**message, "text": within(message["text"], max_tokens)}


def within(text: str, max_tokens: int | None) -> str:
    """As much of a text as fits, and a mark where it was cut."""
    if max_tokens is None or tokens_in(text) <= max_tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens_in(text[:middle] + "…") <= max_tokens else (low, middle - 1)
    return text[:low] + "…"
