"""Propose sentences to remember: corrections that the user made in several conversations. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.answer.digests.summary import sentences_in
from registry.text.request.query import parse_query

MIN_CHATS = 2  # conversations with a correction before it is proposed
MAX_PROPOSALS = 5
MAX_LENGTH = 120  # characters of a correction; longer sentences are about one task
_IS_CORRECTION = re.compile(
    r"^(?:please )?(?:never|always|stop|don['’]?t|do not|from now on|remember(?= to|:))\b|\binstead of\b"
    r"|^(?:no|nope|again|i (?:said|told you))\b.*"
    r"\b(?:use|not|never|always|don['’]?t|must|should|only|in|into|with|instead|belongs?)\b"
    r"|^(?:아니|아뇨|아냐).*(?:써|쓰|로|만|마|말고|해)|말고.*(?:써|쓰|로|만|해)"
    r"|지 ?마|에만|쓰라고|하라고|라니까|라고 ?했",
    re.IGNORECASE,
)
# words of a correction that do not say what it is about
_FILLER = re.compile(
    r"\b(?:no|nope|again|please|i|said|told|you|we|use|using|not|never|always|stop|don['’]?t|do|must|should|only"
    r"|with|in|into|instead|of|want|just|make|put|add|adding|remember|to|from|now|on)\b"
    r"|아니\w*|아뇨|아냐|말고|지 ?마\w*|쓰\w*|써\w*|했\w*|하라고|라니까|라고|해\w*",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Correction:
    sentence: str
    words: frozenset[str]
    chats: set[int] = field(default_factory=set)


def repeated_corrections(prompts: Iterable[Sequence[Any]], remembered: Iterable[str]) -> list[dict[str, Any]]:
    """Return corrections as last worded, and in how many conversations they were made, the most frequent first.

    `prompts`: conversation and text of the user's messages, the latest first. `remembered`: sentences that hold.
    """
    found: list[_Correction] = []
    for chat, text in prompts:
        for sentence in sentences_in(text):
            is_correction = len(sentence) <= MAX_LENGTH and _IS_CORRECTION.search(sentence)
            if is_correction and (words := _words(sentence)):
                same = next((one for one in found if _are_about_the_same(one.words, words)), None)
                if same is None:
                    found.append(same := _Correction(sentence, words))
                same.chats.add(chat)
    known = [_words(one) for one in remembered]
    repeated = [
        one
        for one in found
        if len(one.chats) >= MIN_CHATS and not any(_are_about_the_same(one.words, words) for words in known)
    ]
    repeated.sort(key=lambda one: -len(one.chats))
    return [{"text": one.sentence, "chats": len(one.chats)} for one in repeated[:MAX_PROPOSALS]]


def _words(sentence: str) -> frozenset[str]:
    return frozenset(word.text.lower() for word in parse_query(_FILLER.sub(" ", sentence)).words)


def _are_about_the_same(some: frozenset[str], others: frozenset[str]) -> bool:
    return 2 * len(some & others) >= max(min(len(some), len(others)), 1)
