"""Load the rules for secrets from `rules.toml`, and from a file of the same form in the registry's folder."""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from registry.text.privacy.values import TESTS, is_unmistakable

OWN_RULES = "secret-rules.toml"  # a user's own rules, in the registry's folder
CACHED_WORDS = 20_000  # cached words of up to 64 characters: 3 MB; 50_000 are 10 % faster
UNMISTAKABLE = ""  # the keyword of texts with a word that can only be a password
SHORTEST_KEY = 20  # characters of the shortest secret that is recognised by its beginning alone
_BETWEEN = r"(?:(?:[ \t=]|\\\n)+|[\"'],\s*[\"'])"  # two arguments of a command
_PLAIN_REST = r"[\w+/=%-]{14,}"  # of a key
_ARGUMENT = r"""[\"']?(?P<secret>(?<=[\"'])[^\"'\n$-][^\"'\n$]{3,}(?=[\"'])|[^\s\"'`$/-][^\s\"'`]{3,})"""
_MIXED = re.compile("[0-9]|[a-z][A-Z]+[a-z]+[A-Z]")
_LONG_NUMBER = re.compile(r"[0-9]{4}(?:[ -][0-9]{4}|[0-9]{9}|[0-9]{2} ?- ?[0-9]{7}| [0-9]{6})")


class Rule(NamedTuple):
    """A format of secrets. The group `secret` is masked, else the whole match."""

    kind: str
    regex: str
    keywords: tuple[str, ...]
    """In lower case; every text with a match contains one of them. A rule without keywords matches long numbers."""
    test: Callable[[str], bool]
    is_long: bool = False
    """True if the keyword is part of a word of 20 characters or more in each match."""
    beginnings: tuple[str, ...] = ()
    """The possible first characters of a match, case-sensitive."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """The compiled expression, in ASCII: a key ends where a Korean particle begins."""
        return _compile(self.regex)


@cache
def _compile(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.ASCII)


class Name(NamedTuple):
    """A name after which a value may be a secret, in lower case, its words separated by spaces."""

    kind: str
    words: str
    is_whole_word: bool
    is_cue: bool = False
    """True for a word that only announces a login, so that a value near it may be a password."""

    @property
    def needs_long(self) -> bool:
        """Return True if only a generated value of 16 characters or more is a secret of this name."""
        return self.is_whole_word and self.kind == "secret"


def _any_of(words: Iterable[str]) -> str:
    """Return an expression for any of the words, grouped by first letters, which matches in a fifth of the time."""
    by_letter = {letter: sorted(same, reverse=True) for letter, same in groupby(sorted(words), itemgetter(0))}
    rests = {letter: "|".join(re.escape(word[1:]) for word in same) for letter, same in by_letter.items()}
    return "|".join(f"{re.escape(letter)}(?:{rest})" for letter, rest in rests.items())


class Rules:
    """The rules and names of some files, with indexes to find those that may match in a text."""

    def __init__(self, files: list[str]) -> None:
        tables = []
        for file in files:
            with open(file, "rb") as written:
                tables.append(tomllib.load(written))
        self.problem = ""
        self.digest = blake2b(repr(tables).encode(), digest_size=8).hexdigest()
        self.all = [rule for table in tables for rule in _read_rules(table)]
        self.names = {name.words: name for table in tables for name in _read_names(table)}
        self._rules_by_keyword: dict[str, list[int]] = {}
        for at, rule in enumerate(self.all):
            for keyword in rule.keywords:
                self._rules_by_keyword.setdefault(keyword, []).append(at)
        self._beginnings = {each: each.lower() for rule in self.all for each in rule.beginnings}
        self._begin = re.compile(rf"\b(?=({_any_of(self._beginnings)}))", re.ASCII)
        self._in_runs = {each for rule in self.all if rule.is_long and not rule.beginnings for each in rule.keywords}
        self._of_texts = {each for rule in self.all if not rule.is_long for each in rule.keywords}
        self._numbers = [at for at, rule in enumerate(self.all) if not rule.keywords]
        longest = {keyword: max(keyword.split(), key=len) for keyword in (*self._of_texts, *self.names)}
        words = {*longest.values()}
        shortest = [word for word in words if not any(other in word for other in words - {word})]
        self.trigger_words = sorted(shortest)  # each text with a keyword or a name contains one, in lower case
        self._trigger = re.compile(f"(?=({_any_of(shortest)}))")
        self._longest: dict[str, list[tuple[str, str]]] = {}  # by the trigger word in it: keywords, their longest word
        for keyword, word in longest.items():
            self._longest.setdefault(next(each for each in shortest if each in word), []).append((keyword, word))
        self._remembered = lru_cache(CACHED_WORDS)(self._keywords_in)

    def matching(self, text: str) -> tuple[list[Rule], list[Name], bool]:
        """Return the rules and names that may match in a text, and whether one of its words can only be a password."""
        words = set(text.split())
        long = " ".join([word for word in words if len(word) >= SHORTEST_KEY and _MIXED.search(word)])
        keywords_of = (self._remembered(word) if len(word) <= 64 else self._keywords_in(word) for word in words)
        announced = {*chain.from_iterable(keywords_of)}
        has_number = _LONG_NUMBER.search(text) is not None
        if not announced and not long and not has_number:
            return [], [], False
        lowered, lowered_long = text.lower(), long.lower()
        keywords = [each for each in announced if each in self._of_texts and each in lowered]
        keywords += [each for each in self._in_runs if each in lowered_long]
        for beginning in {found[1] for found in self._begin.finditer(long)}:
            keywords += [low for each, low in self._beginnings.items() if beginning.startswith(each)]
        indexes = {at for keyword in keywords for at in self._rules_by_keyword[keyword]}
        if has_number:
            indexes.update(self._numbers)
        rules = [self.all[at] for at in sorted(indexes)]
        spaced = spaced_words(lowered)
        names = [self.names[each] for each in announced if each in self.names and each in spaced]
        names.sort(key=lambda name: (name.is_cue, name.words))
        return rules, [name for name in names if long or not name.needs_long], UNMISTAKABLE in announced

    def _keywords_in(self, word: str) -> tuple[str, ...]:
        """Return the keywords that a word may be part of, and UNMISTAKABLE if it can only be a password."""
        lowered, odd = word.lower(), (UNMISTAKABLE,) if is_unmistakable(word) else ()
        triggers = {*self._trigger.findall(lowered)}
        return (*odd, *(each for trigger in triggers for each, longest in self._longest[trigger] if longest in lowered))


def spaced_words(lowered: str) -> str:
    """Return a text with spaces instead of the hyphens and underscores that join words of a name."""
    return lowered.replace("_", " ").replace("-", " ")


def _read_rules(table: Mapping[str, Any]) -> Iterator[Rule]:
    for kind, beginnings, *rest in table.get("keys", ()):
        begins = beginnings.split()
        regex = rf"\b(?:{'|'.join(map(re.escape, begins))}){rest[0] if rest else _PLAIN_REST}"
        test = TESTS[rest[1] if len(rest) > 1 else "any" if rest else "random"]
        yield Rule(kind, regex, tuple(map(str.lower, begins)), test, is_long=True, beginnings=tuple(begins))
    for kind, parts, regex, *test in table.get("formats", ()):
        yield Rule(kind, regex, tuple(parts.split()), TESTS[test[0] if test else "any"], is_long=True)
    for names, before in table.get("commands", ()):
        programs = names.split(", ")
        between = "" if before[0] == "^" else r"(?:[^\n|;]{0,200}?[\s\"'])??"
        words = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in programs)
        program, option = rf"(?<![\w-])(?:{words})(?:\.exe[\"']?)?", before.lstrip("^").replace(" ", _BETWEEN)
        regex = f"{program}{_BETWEEN}{between}{option}{_ARGUMENT}"
        yield Rule("password", regex, tuple(name.lower() for name in programs), TESTS["argument"])
    for rule in table.get("rules", ()):
        keywords = tuple(rule.get("keywords", ()))
        yield Rule(rule["kind"], rule["regex"], keywords, TESTS[rule.get("looks", "any")])


def _read_names(table: Mapping[str, Any]) -> Iterator[Name]:
    for section in ("names", "words", "cues"):
        for kind, names in table.get(section, {}).items():
            for name in names:
                for words in {name, name.replace(" ", "")}:
                    yield Name(kind, words, section != "names", section == "cues")


_own_file: list[tuple[str, int]] = []  # the user's own rules, and their time of modification in ns


def use_own_rules(home: str | os.PathLike[str]) -> None:
    """Load also the user's own rules from the registry's folder, if there are any."""
    own = os.path.join(home, OWN_RULES)
    _own_file[:] = [(own, os.stat(own).st_mtime_ns)] if os.path.isfile(own) else []


def load_rules() -> Rules:
    """Return the rules of this installation. If the user's own cannot be used, `problem` says why."""
    return _load(*_own_file)


@cache
def _load(*own: tuple[str, int]) -> Rules:
    built_in = os.path.join(os.path.dirname(__file__), "rules.toml")
    try:
        rules = Rules([built_in, *(file for file, _ in own)])
        for rule in rules.all if own else ():
            re.compile(rule.regex, re.ASCII)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, re.error) as exc:
        rules = Rules([built_in])
        rules.problem = f"{own[0][0]} is not used: {exc}"
    return rules
