"""When the messages of a Cursor agent were said: the client notes a time with few of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from registry.domain import Message, parse_time
from sources.cursor.times import Span, dated

LONGEST_STEP = timedelta(seconds=20)
"""An agent says something so often while it works: a turn does not last until the next question."""
_MARK = re.compile(r"#(\d{1,9})@(\d{1,15})\Z")


@dataclass(frozen=True, slots=True)
class Told:
    """What an earlier reading gave times to: so many messages, none later than `until`."""

    count: int = 0
    until: datetime | None = None

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Told:
        """What a reading that ends now gives times to."""
        return cls(len(messages), max((message.timestamp for message in messages if message.timestamp), default=None))

    @classmethod
    def from_mark(cls, fingerprint: str) -> Told:
        """What a fingerprint says at its end; nothing if it says nothing."""
        mark = _MARK.search(fingerprint)
        if mark is None:
            return cls()
        try:
            return cls(int(mark[1]), parse_time(datetime.fromtimestamp(int(mark[2]) / 1000, UTC)))
        except (ValueError, OverflowError, OSError):
            return cls()

    def mark(self) -> str:
        """The same as the end of a fingerprint."""
        return f"#{self.count}@{round(self.until.timestamp() * 1000)}" if self.until else ""


def timed(messages: Sequence[Message], span: Span, told: Told) -> tuple[Message, ...]:
    """The messages with the times they lack, none earlier than the one before it.

    Messages keep the times they were first given (the registry does not change them), so what has come since the
    earlier reading `told` is later than all of that.
    """
    done: list[Message] = []
    latest: datetime | None = None
    for place, message in enumerate(dated(messages, span, LONGEST_STEP)):
        if place == told.count:
            latest = max(filter(None, (latest, told.until)), default=None)
        if latest and message.timestamp and message.timestamp < latest:
            message = replace(message, timestamp=latest)
        latest = message.timestamp or latest
        done.append(message)
    return tuple(done)
