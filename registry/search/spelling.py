"""Correct typos: for a query word that occurs nowhere, find similar words that occur in the registry."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from registry.storage.database import ReadTransaction
from registry.storage.index.message_index import MessageIndex
from registry.text.analysis.analyzer import identifier_parts, stem
from registry.text.analysis.edit_distance import MIN_LETTERS, similar_hangul_words, words_one_edit_away
from registry.text.ranking.term_weights import occurs_at_all
from registry.text.request.query import ParsedQuery, QueryWord

MOST_CORRECTIONS = 3
# A token of these letters alone is rather a piece of an id or hash: "decide" is not a typo of "decd".
_HEX_LETTERS = frozenset("abcdef")
_TWO_SYLLABLES = re.compile("[가-힣]{2}")


@dataclass(frozen=True, slots=True)
class Corrected:
    """A query with corrections added to its unknown words as variants; `typos`: the corrections by word."""

    query: ParsedQuery
    frequencies: Mapping[str, int]
    typos: Mapping[str, list[str]]


def correct(tx: ReadTransaction, index: MessageIndex, query: ParsedQuery, frequencies: Mapping[str, int]) -> Corrected:
    """Correct the typos of a query. A query without unknown words costs nothing."""
    typos: dict[str, list[str]] = {}
    known = dict(frequencies)
    changed: list[QueryWord] = []
    for word in query.words:
        tokens = [] if occurs_at_all(word, frequencies) else _corrections(tx, index, word)
        if tokens:
            known |= index.count(tx, tokens)
            typos[word.text] = tokens
            word = replace(word, variants=(*word.variants, *tokens))
        changed.append(word)
    return Corrected(ParsedQuery(tuple(changed)), known, typos)


def _may_be_typo(word: QueryWord) -> bool:
    is_plain = word.text.isascii() and word.text.isalpha() and len(identifier_parts(word.text)) == 1
    # An inflected word counts by its stem: "bathing" has four significant letters, as few as "bash".
    stemmed = stem(word.text.lower())
    significant_letters = len(word.text) if len(word.text) - len(stemmed) <= 1 else len(stemmed)
    return is_plain and significant_letters >= MIN_LETTERS


def _corrections(tx: ReadTransaction, index: MessageIndex, word: QueryWord) -> list[str]:
    """Return the stems of existing words one edit away, the most frequent first."""
    if _TWO_SYLLABLES.fullmatch(word.text):
        counts = index.count(tx, similar_hangul_words(word.text))
        return sorted(counts, key=lambda token: (-counts[token], token))[:MOST_CORRECTIONS]
    if not _may_be_typo(word):
        return []
    typed = word.text.lower()
    stems = dict.fromkeys(map(stem, words_one_edit_away(typed)))
    possible = [token for token in stems if token not in word.exact and not _HEX_LETTERS.issuperset(token)]
    found = index.count(tx, possible)
    return sorted(found, key=lambda token: (-found[token], token))[:MOST_CORRECTIONS]
