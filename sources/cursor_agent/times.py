"""Times of a Cursor agent's messages: the client notes a time with few of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from registry.domain import Message
from sources.cursor.times import TimeFrame, dated, moment

LONGEST_STEP = timedelta(seconds=20)  # estimates are no farther apart: a working agent says something this often
_FINGERPRINT = re.compile(r"(\w*)\.(\w*)#(\d{1,9})@(\d{1,15})")


class Fingerprint(NamedTuple):
    """The contents of a fingerprint: digests of files and content, number of messages, time of the latest one."""

    files: str = ""
    content: str = ""
    message_count: int = 0
    until: datetime | None = None

    @classmethod
    def parse(cls, fingerprint: str) -> Fingerprint:
        """Parse a fingerprint; an empty reading if it is none."""
        noted = _FINGERPRINT.fullmatch(fingerprint)
        return cls(noted[1], noted[2], int(noted[3]), moment(int(noted[4]))) if noted else cls()

    def fingerprint(self) -> str:
        until_ms = round(self.until.timestamp() * 1000) if self.until else 0
        return f"{self.files}.{self.content}#{self.message_count}@{until_ms}"


def timed(messages: Sequence[Message], span: TimeFrame, earlier: Fingerprint) -> tuple[Message, ...]:
    """Fill in missing times, none earlier than that of the message before.

    The registry never changes the time of a stored message, so messages that are new since the `earlier` reading are
    later than all of those.
    """
    done: list[Message] = []
    latest: datetime | None = None
    for place, message in enumerate(dated(messages, span, LONGEST_STEP)):
        if place == earlier.message_count:
            latest = max(filter(None, (latest, earlier.until)), default=None)
        if latest and message.timestamp and message.timestamp < latest:
            message = replace(message, timestamp=latest)
        latest = message.timestamp or latest
        done.append(message)
    return tuple(done)
