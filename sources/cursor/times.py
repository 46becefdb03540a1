"""Find the times of Cursor messages, and estimate missing ones. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from registry.domain import Message, parse_time
from sources.kit import drafts
from sources.kit.loose_json import mapping

_EARLIEST_MS = 1e12  # September 2001: a smaller number is elapsed time, not a date
_TIMINGS = ("clientRpcSendTime", "clientSettleTime", "clientEndTime", "clientStartTime")


@dataclass(frozen=True, slots=True)
class TimeFrame:
    """The known beginning and last change of a conversation, and the current time."""

    start: datetime | None
    end: datetime | None
    now: datetime


def moment(value: Any) -> datetime | None:
    """Parse a stored time, milliseconds since 1970 or ISO 8601; None if it is neither, or a duration."""
    return None if isinstance(value, int | float) and value < _EARLIEST_MS else drafts.moment(value)


def bubble_time(bubble: Mapping[str, Any], header: Mapping[str, Any]) -> datetime | None:
    """Return the time of a bubble: its own, its header's, or else the first date in its timings."""
    timings = mapping(bubble.get("timingInfo"))
    candidates = (bubble.get("createdAt"), header.get("createdAt"), *map(timings.get, _TIMINGS))
    return next(filter(None, map(moment, candidates)), None)


def dated(messages: Sequence[Message], span: TimeFrame, longest_step: timedelta | None = None) -> tuple[Message, ...]:
    """Estimate missing times, evenly between the known ones, none in the future.

    An estimate is marked `more["time"] = "inferred"`; a time remains None if no time is known. With `longest_step`,
    estimates follow the start of the conversation or the message before, at most that far apart.
    """
    estimates = _estimates([message.timestamp for message in messages], span, longest_step)
    return tuple(
        message
        if message.timestamp is not None and message.timestamp <= span.now
        else drafts.with_inferred_time(message, min(estimate, span.now) if estimate else None)
        for message, estimate in zip(messages, estimates, strict=True)
    )


def _estimates(
    times: Sequence[datetime | None], span: TimeFrame, longest_step: timedelta | None
) -> Iterator[datetime | None]:
    """Yield the known times, and estimates between them for the missing ones."""
    earlier = min(filter(None, (span.start, next(filter(None, times), None))), default=None)
    end = 0
    for is_known, group in groupby(times, key=lambda time: time is not None):
        run = list(group)
        end += len(run)
        later = times[end] if end < len(times) else span.end
        begin = earlier or later
        if is_known:
            yield from run
            earlier = run[-1]
        elif begin is None:
            yield from run
        else:
            first = 0 if longest_step and end == len(run) else 1  # 0: the first message is at the beginning
            step = max((later or begin) - begin, timedelta()) / (len(run) + first)
            step = min(step, longest_step or step)
            yield from (parse_time(begin + step * index) for index in range(first, first + len(run)))
