"""What a message says of its time, as far as it can be true. Pure.

A time of the year 9999, or of 1, is a client's mistake. Taken at its word it would hold its channel on top for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from registry.domain import EARLIEST, Message, format_time

AHEAD = timedelta(days=1)
"""So far another machine's clock, or its idea of a time zone, may be ahead of ours."""


def with_sound_times(messages: Sequence[Message], received_at: datetime) -> Sequence[Message]:
    """The messages; those whose times cannot be have their neighbours', else none, and keep what they said."""
    latest = received_at + AHEAD
    is_sound = [message.timestamp is None or EARLIEST <= message.timestamp <= latest for message in messages]
    if all(is_sound):
        return messages
    pairs = list(zip(messages, is_sound, strict=True))
    at = next((message.timestamp for message, sound in pairs if sound and message.timestamp), None)
    done = []
    for message, sound in pairs:
        at = message.timestamp if sound else at
        done.append(message if sound else _at(message, at))
    return done


def _at(message: Message, at: datetime | None) -> Message:
    said = format_time(message.timestamp) if message.timestamp else None
    return replace(message, timestamp=at, more={**message.more, "time": "inferred", "said_at": said})
