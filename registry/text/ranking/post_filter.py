"""What the index cannot know, the text decides: phrases, prefixes and exclusions of a search. Pure.

The index has no positions and no unstemmed words, so it is asked for a few messages too many.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial

from registry.text.analysis.analyzer import IDENTIFIER_PREFIX, KEY_PREFIX, Kind, Word, identifier_parts, stem, words
from registry.text.analysis.analyzer import word_tokens as tokens_of
from registry.text.request.syntax import Search

_SHORTEST_STEM = 3
_CJK = "\u1100-\u11ff\u3005-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_STARTS = rf"(?<![^\W_{_CJK}])"
_ENDS = rf"(?![^\W_{_CJK}])"
_IS_CJK = re.compile(f"[{_CJK}]").match

Groups = list[list[str]]


def post_filter(search: Search) -> Callable[[str], bool] | None:
    """The test a message's text must pass; None if the index knows all there is to know."""
    wanted = [*map(_phrase, search.phrases), *map(_prefix, search.prefixes)]
    unwanted = [_phrase(word) for word in search.excluded if not _excluded_token(word)]
    return partial(_passes, wanted, unwanted) if wanted or unwanted else None


def _passes(wanted: Iterable[re.Pattern[str]], unwanted: Iterable[re.Pattern[str]], text: str) -> bool:
    plain = _plain(text)
    return all(one.search(plain) for one in wanted) and not any(one.search(plain) for one in unwanted)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _phrase(text: str) -> re.Pattern[str]:
    """The words as they stand. A Korean word goes on with its particles, an English one has ended."""
    plain = _plain(text)
    starts = _STARTS if plain[0].isalnum() and not _IS_CJK(plain[0]) else ""
    ends = _ENDS if plain[-1].isalnum() and not _IS_CJK(plain[-1]) else ""
    return re.compile(starts + re.escape(plain) + ends)


def _prefix(text: str) -> re.Pattern[str]:
    return re.compile(r"(?<![^\W_])" + re.escape(_plain(text)))


def carried(search: Search) -> Groups:
    """Of each group a message carries one token, or it has not the search's phrases and prefixes."""
    groups: Groups = []
    for phrase in search.phrases:
        groups += (group for word in words(phrase) for group in _whole_word(word))
    for prefix in search.prefixes:
        *before, last = words(prefix)
        groups += (group for word in before for group in _whole_word(word))
        groups.append(_prefix_tokens(last))
    return groups


def left_out(search: Search) -> list[str]:
    """The tokens that no message may carry."""
    return [token for token in map(_excluded_token, search.excluded) if token]


def _excluded_token(text: str) -> str:
    """A plain English word is excluded with its inflections; anything else as it stands in the text."""
    found = words(text)
    if len(found) != 1 or found[0].kind is not Kind.IDENTIFIER or found[0].text != text:
        return ""
    parts = identifier_parts(text)
    return stem(parts[0]) if len(parts) == 1 and text.isalpha() else ""


def _whole_word(word: Word) -> Groups:
    """The tokens that every text with this word carries. A syllable alone may stand inside any bigram."""
    tokens = [token for token in tokens_of(word.text) if not token.startswith((IDENTIFIER_PREFIX, KEY_PREFIX))]
    if word.kind is not Kind.IDENTIFIER:
        return [[token] for token in tokens if len(token) > 1]
    parts = identifier_parts(word.text)
    if len(parts) == 1 and len(parts[0]) > 1:
        return [[*tokens, IDENTIFIER_PREFIX + parts[0]]]
    return [[token] for token in tokens]


def _prefix_tokens(word: Word) -> list[str]:
    """The tokens, or beginnings of tokens (`migrat*`), of any word that begins like this one."""
    if word.kind is Kind.HANGUL or word.kind is Kind.SPACELESS:
        return [word.text[:2] if len(word.text) > 1 else f"{word.text}*"]
    if word.kind is Kind.OTHER:
        return [f"{word.text.casefold().lower()}*"]
    last = identifier_parts(word.text)[-1:] or [""]
    # A stem may be shorter than the prefix (connections* is connect) or end otherwise (happy* is happi).
    begins = last[0][:-1] if len(last[0]) > _SHORTEST_STEM else last[0]
    return [f"{begins}*", *(last[0][:end] for end in range(_SHORTEST_STEM, len(begins)))]
