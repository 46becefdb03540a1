"""Tags for a session that has none: tags that are in use already, then what it speaks of. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache

from registry.text.analysis.particles import strip_particles
from registry.text.request.request_words import is_generic_word, is_request_word

MOST = 3
LONGEST = 24
_WORD = re.compile(r"(?<![A-Za-z0-9_./@-])[A-Za-z][A-Za-z0-9+#]{2,}(?![A-Za-z0-9_/@]|\.\w)|[가-힣]{2,}")
"""No part of a path, a file's name or an address."""
_NAMED = re.compile(r"[A-Z]{2,}[a-z]?|[A-Z]?[a-z]+[A-Z]|[A-Za-z]+[0-9]")
"""Letters that only the name of something is written in: JWT, PostgreSQL, s3."""
_SAYING_NOTHING = """\
asked answered changed decided open yes yeah sure okay thanks please great fine right exactly actually because
before after while since until during between within each every both either another more most less least only
even already never always often sometimes usually third next one two three four five few lot lots bit through
across against along under above below goes going went come comes came becomes become happens happened seem seems
feel feels puts takes took taking taken turn turns turned means mean meant quite pretty rather almost instead else
yet now soon later tomorrow morning evening night month year itself myself yourself those such own per via nor not
none nothing nobody everything everyone sound sounds bad best worse worst able available possible likely think
thought guess hope wish love hey hello finally called died getting
그러면 하지만 그래도 때문 그대로 이상 이하 하나 내일 지금 바로 여기 거기 저기 우리 이런 그런 저런 모두 전부 각각
많이 너무 아주 정말 진짜 일단 역시 아직 이미 항상 자주 가끔 보통 다만 따라서 만약 아마 물론 사실 같은 질문 결정
변경 미해결"""
_NOTHING = frozenset(_SAYING_NOTHING.split())
_NO_NOUN = re.compile(
    r"(?:[는던면게지고서니까요다죠네자줘해돼봐라한할될된쓸볼둘받렇]|[었았했됐겠렸졌췄][어음던].*|[^영단언국용]어|[는은인]데|[해아어여]야|[^가마노]을|에[도는서])$"
)
"""Ends of Korean words that are no nouns."""
_NOUN = re.compile(r"(?<![는은을할던한])[지고서니게요어](?:가|를|와|의|에서)$")


def suggest_tags(texts: Iterable[str], used: Iterable[str]) -> list[str]:
    """Up to three tags for what a session's texts (title, first words, summary) speak of: those in `used` first."""
    spoken = [_words(text) for text in texts]
    there = {word for words in spoken for word, _ in words}
    known = [tag for tag in used if (parts := _parts(tag)) and parts <= there]
    return list(dict.fromkeys([*known, *_most_said(spoken)]))[:MOST]


@lru_cache(1024)
def _parts(tag: str) -> Set[str]:
    return {word for word, _ in _words(re.sub(r"[\s_./:-]+", " ", tag))}


def _most_said(spoken: Sequence[Sequence[tuple[str, bool]]]) -> list[str]:
    """Return words that occur more than once or are names, those of most texts first; else all words."""
    said = Counter(word for words in spoken for word, _ in words)
    held_by = Counter(word for words in spoken for word in {word for word, _ in words})
    named = {word for words in spoken for word, is_name in words if is_name}
    short = [word for word in said if len(word) <= LONGEST]
    significant = [word for word in short if said[word] > 1 or word in named]
    return sorted(significant or short, key=lambda word: (-held_by[word] - (word in named), -said[word]))


@lru_cache(512)
def _words(text: str) -> Sequence[tuple[str, bool]]:
    """The words that may name a subject, each with whether it is written as a name is; the same sessions are listed
    again and again."""
    return tuple(_words_in(text))


def _words_in(text: str) -> Iterator[tuple[str, bool]]:
    for word in _WORD.findall(text):
        lower = word.lower()
        if word.isascii() and not _says_nothing(lower):
            yield lower, bool(_NAMED.match(word))
        elif not (word.isascii() or _says_nothing(word)):
            stem = strip_particles(word)
            is_noun = _NOUN.search(word) or not _NO_NOUN.search(stem)
            if is_noun and not _says_nothing(stem):
                yield stem, False


def _says_nothing(word: str) -> bool:
    return word in _NOTHING or is_request_word(word) or is_generic_word(word)
