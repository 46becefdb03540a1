"""Load the rules for secrets from `rules.toml`, and from a file of the same form in the registry's folder."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from registry.text.privacy.likeness import TESTS

OWN_RULES = "secret-rules.toml"  # a user's own rules, in the registry's folder
MOST_PLAIN_WORDS = 50_000  # cached words without a keyword
SHORTEST_KEY = 20  # characters; no secret that is recognised by its beginning alone is shorter
_MADE = re.compile("[0-9]|[a-z][A-Z]+[a-z]+[A-Z]")
_LONG_NUMBER = re.compile(r"[0-9]{4}(?:[ -][0-9]{4}|[0-9]{9}|[0-9]{2} ?- ?[0-9]{7}| [0-9]{6})")


class Rule(NamedTuple):
    """A format of secrets. The group `secret` is masked, else the whole match."""

    kind: str
    regex: str
    keywords: tuple[str, ...]
    """In lower case; one of them is in every text with a match. A rule without any is about long numbers."""
    looks: Callable[[str], bool] | None
    needs: tuple[str, ...] = ()
    """If there are any, one of them is in the text, too."""
    is_long: bool = False
    """True if the keyword is in a run of 20 characters or more in each match."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled expression, in ASCII: a key ends where a Korean particle begins."""
        return _compile(self.regex)


@cache
def _compile(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.ASCII)


class Name(NamedTuple):
    """A name behind which a value may be a secret, in lower case, its words separated by spaces."""

    kind: str
    words: str
    is_whole_word: bool

    @property
    def needs_long(self) -> bool:
        """Return True if the value has 20 characters or more."""
        return self.is_whole_word and self.kind == "secret"


class Keywords:
    """Keywords, each of one or more words, with the longest word of each."""

    def __init__(self, keywords: Iterable[str]) -> None:
        self.words = {keyword: max(keyword.split(), key=len) for keyword in keywords}

    def found_in(self, text: str, words: str) -> list[str]:
        """Return the keywords in a text; `words` are its words that may belong to one."""
        return [keyword for keyword, word in self.words.items() if word in words and keyword in text]


def _any_of(words: set[str]) -> re.Pattern[str]:
    """Return an expression for any of the words, grouped by first letters, which takes a fifth of the time."""
    shortest = sorted(word for word in words if not any(other in word for other in words - {word}))
    by_letter = {letter: [re.escape(word[1:]) for word in same] for letter, same in groupby(shortest, itemgetter(0))}
    return re.compile("|".join(f"{re.escape(letter)}(?:{'|'.join(rest)})" for letter, rest in by_letter.items()))


class Rules:
    """Rules and names of some files."""

    def __init__(self, files: list[str]) -> None:
        tables = []
        for file in files:
            with open(file, "rb") as written:
                tables.append(tomllib.load(written))
        self.problem = ""
        self.digest = blake2b(repr(tables).encode(), digest_size=8).hexdigest()
        self.all = [rule for table in tables for rule in _read_rules(table)]
        self.names = {name.words: name for table in tables for name in _read_names(table)}
        self._places: dict[str, list[int]] = {}
        for at, rule in enumerate(self.all):
            for keyword in rule.keywords:
                self._places.setdefault(keyword, []).append(at)
        self._in_runs = Keywords(each for rule in self.all if rule.is_long for each in rule.keywords)
        self._in_text = Keywords(each for rule in self.all if not rule.is_long for each in rule.keywords)
        self._short_names = Keywords(name.words for name in self.names.values() if not name.needs_long)
        self._long_names = Keywords(name.words for name in self.names.values() if name.needs_long)
        self._numbers = [at for at, rule in enumerate(self.all) if not rule.keywords]
        self._telling = _any_of({*self._in_text.words.values(), *self._short_names.words.values()})
        self._plain_words: set[str] = set()

    def matching(self, text: str) -> tuple[list[Rule], list[Name]]:
        """Return the rules and the names that may match in a text, the rules in their order."""
        words = set(text.split())
        long = " ".join([word for word in words if len(word) >= SHORTEST_KEY and _MADE.search(word)]).lower()
        telling = self._telling_of(words)
        if not telling and not long and not _LONG_NUMBER.search(text):
            return [], []
        lowered = text.lower()
        keywords = [*self._in_text.found_in(lowered, telling), *self._in_runs.found_in(long, long)]
        places = {at for keyword in keywords for at in self._places[keyword]}
        if _LONG_NUMBER.search(text):
            places.update(self._numbers)
        spaced = spaced_words(lowered)
        names = self._short_names.found_in(spaced, telling)
        names += self._long_names.found_in(spaced, spaced) if long else []
        rules = [self.all[at] for at in sorted(places)]
        rules = [rule for rule in rules if not rule.needs or any(each in lowered for each in rule.needs)]
        return rules, [self.names[each] for each in names]

    def _telling_of(self, words: set[str]) -> str:
        """Return the words that may hold a keyword, in lower case. Words without one are cached."""
        telling = words.difference(self._plain_words)
        plain = {word for word in telling if not self._telling.search(word.lower())}
        if len(self._plain_words) > MOST_PLAIN_WORDS:
            self._plain_words.clear()
        self._plain_words.update([word for word in plain if len(word) <= 64])
        return " ".join(telling - plain).lower()


def spaced_words(lowered: str) -> str:
    """Return a text with a space in the place of each sign that joins words of a name."""
    return lowered.replace("_", " ").replace("-", " ")


def _read_rules(table: Mapping[str, Any]) -> Iterator[Rule]:
    for kind, beginnings, rest in table.get("keys", ()):
        begins = beginnings.split()
        regex = rf"\b(?:{'|'.join(map(re.escape, begins))}){rest}"
        yield Rule(kind, regex, tuple(map(str.lower, begins)), None, is_long=True)
    for rule in table.get("rules", ()):
        looks = TESTS[rule["looks"]] if "looks" in rule else None
        keywords, needs = (tuple(rule.get(name, ())) for name in ("keywords", "needs"))
        yield Rule(rule["kind"], rule["regex"], keywords, looks, needs, rule.get("long", False))


def _read_names(table: Mapping[str, Any]) -> Iterator[Name]:
    for section in ("names", "words"):
        for kind, names in table.get(section, {}).items():
            for name in names:
                for words in {name, name.replace(" ", "")}:
                    yield Name(kind, words, section == "words")


_own_files: list[str] = []


def use_own_rules(home: str | os.PathLike[str]) -> None:
    """Add the rules that a user keeps in the registry's folder."""
    own = os.path.join(home, OWN_RULES)
    if _own_files != [own]:
        _own_files[:] = [own]
        load_rules.cache_clear()


@cache
def load_rules() -> Rules:
    """Return the rules of this installation. If the user's own cannot be used, `problem` says why."""
    built_in = os.path.join(os.path.dirname(__file__), "rules.toml")
    own = [file for file in _own_files if os.path.isfile(file)]
    try:
        rules = Rules([built_in, *own])
        for rule in rules.all if own else ():
            re.compile(rule.regex, re.ASCII)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, re.error) as exc:
        rules = Rules([built_in])
        rules.problem = f"{own[0]} is not used: {exc}"
    return rules
