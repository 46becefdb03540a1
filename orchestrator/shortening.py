"""Shorter forms of messages: the `transform` of extract's `summary` and `digest`, and of a briefing. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from registry.domain import preview_of

SENTENCE_END = re.compile(r"(?<=[.!?。？！])\s+|\n")
DIGEST_WIDTH = 240


class Summarizer(Protocol):
    """Makes a text of messages; a language model may take this place."""

    name: str

    def summarize(self, messages: Sequence[dict[str, Any]]) -> str:
        """What was said, shorter."""


class FirstSentences:
    """The summary that needs no model: of every question and answer its first sentence."""

    name = "first sentences"

    def summarize(self, messages: Sequence[dict[str, Any]]) -> str:
        """One line per user and assistant message, in order."""
        marks = {"user": "Q", "assistant": "A"}
        return "\n".join(
            f"{marks[message['role']]}: {first_sentence(message['text'])}"
            for message in messages
            if message["role"] in marks and message["text"].strip()
        )


def digest(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same messages, each cut to its first lines."""
    return [{**message, "text": preview_of(message["text"], DIGEST_WIDTH)} for message in messages]


def first_sentence(text: str) -> str:
    """The first sentence that says something, on one line."""
    sentences = (sentence.strip(" #*->`") for sentence in SENTENCE_END.split(text.strip()))
    return preview_of(next((sentence for sentence in sentences if sentence), ""), DIGEST_WIDTH)
