"""What a conversation was about, in its own sentences: what was asked, decided and changed, and what is open. Pure.

Nothing is made up: every line is a sentence that was said, or what the record of a tool tells.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from orchestrator.answer.delivery import tokens_in, within
from orchestrator.answer.digests import cues
from registry.domain import Role, preview_of
from registry.text.request.request_words import is_request_word

WRITER = "extractive"
"""Who made such a summary, wherever one is kept or shown."""
SHOWN = 220
"""Characters of a sentence."""
MOST = {"asked": 4, "told": 2, "decided": 4, "answered": 2, "changed": 5, "open": 2}
"""Sentences of each kind; in a long summary twice as many."""
SHORT_TOKENS = 600
"""How long a summary or a digest is unless the caller asks for another size."""
LABELS = {
    "en": {
        "asked": "Asked",
        "told": "Told",
        "decided": "Decided",
        "answered": "Answered",
        "changed": "Changed",
        "open": "Open",
    },
    "ko": {
        "asked": "질문",
        "told": "알린 것",
        "decided": "결정",
        "answered": "답",
        "changed": "변경",
        "open": "미해결",
    },
}
ORDER = ("asked", "told", "decided", "changed", "answered", "open")
TELL = {"user": "told", "assistant": "answered"}
SIGNIFICANT = 4
"""Words of which something was said, beside those that any talk has."""
FIRST_TO_GO = ("told", "answered", "changed", "open", "decided", "asked")
"""What is left out first where there is little room: of each kind its least significant sentence."""

LISTED = 0.3
"""What a heading or an item of a list counts beside a sentence."""

_CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_NO_SENTENCES = re.compile(r"^[ \t]*(?:#{1,6} .*|\|.*|[-*_=]{3,}|\*\*[^*\n]*\*\*:?)[ \t]*$", re.MULTILINE)
"""Headings, rows of tables, rules: what they say is said below them, or makes no sense alone."""
_MARKUP = re.compile(r"^[\s>#*+\-•]+|^\d+[.)]\s+|\*{1,3}|`|\b_|_\b")
_SENTENCE_END = re.compile(r"(?<=[.!?。？！])\s+|\n+")
_HANGUL = re.compile(r"[가-힣]")
_WORD = re.compile(r"[A-Za-z0-9_]{3,}|[가-힣]{2,}")
_WRITES = re.compile(r"edit|write|create|patch|apply|replace|rename|delete|move|notebook", re.IGNORECASE)
_PATHS = ("file_path", "path", "filePath", "absolute_path", "target_file", "relative_workspace_path", "filename")
_COMMANDS = ("command", "cmd", "script")
_FILES, _RUNS = 8, 3


class _Sentence(NamedTuple):
    text: str
    role: str
    place: int
    tokens: frozenset[str]
    weight: float


def summary_of(messages: Sequence[Mapping[str, Any]], max_tokens: int, language: str = "") -> str:
    """The summary, a line for each kind of thing; "" where nothing was said that says anything.

    Each message has `role`, `text` and, from a tool, `tool` {name, params, result, status}. `language`: "en" or "ko";
    by default the one that most of it is in.
    """
    points = points_of(messages, 2)
    labels = LABELS[language or language_of(messages)]
    while points and tokens_in(_written(points, labels)) > max_tokens:
        if sum(map(len, points.values())) == 1:
            break
        _drop_one(points)
    return within(_written(points, labels), max_tokens)


def points_of(messages: Sequence[Mapping[str, Any]], times: int = 1) -> dict[str, list[str]]:
    """What was asked, told, decided, answered and changed, and what is open, each in the order of the talk.

    Of each kind up to so many times as many as a short summary holds.
    """
    said = _weighed([message for message in messages if message["role"] in ("user", "assistant")])
    most = {kind: times * number for kind, number in MOST.items()}
    used: list[_Sentence] = []
    opened = _open(said, used, most["open"])
    asked = _asked(said, used, most["asked"])
    decided = _best(_decisions(said), used, most["decided"], latest=True)
    changed = [*_best(_changes(said), used, most["changed"]), *_by_tools(messages)]
    told, answered = (_best(_significant_of(said, role), used, most[kind]) for role, kind in TELL.items())
    found = (asked, told, decided, changed, answered, opened)
    return {kind: lines for kind, lines in zip(ORDER, found, strict=True) if lines}


def _significant_of(said: Sequence[_Sentence], role: str) -> list[_Sentence]:
    """What one side says at some length; where it says nothing so, what it says in few words."""
    is_wish = cues.ASKS if role == "user" else cues.TRIES
    told = [one for one in said if one.role == role and not is_wish.search(one.text)]
    return [one for one in told if len(one.tokens) >= SIGNIFICANT] or told


def _changes(said: Sequence[_Sentence]) -> list[_Sentence]:
    """Those that name something that changed: "ok, passed" alone tells of nothing, and who asks changes nothing."""
    told = (one for one in said if len(one.tokens) > 1 and cues.CHANGES.search(one.text))
    return [one for one in told if one.role == "assistant" or not cues.TRIES.search(one.text)]


def _decisions(said: Sequence[_Sentence]) -> list[_Sentence]:
    """What sounds decided; of a user who settles something all that the message says, for it is short."""
    found = [one for one in said if cues.DECIDES.search(one.text) and not cues.TRIES.search(one.text)]
    for place, group in groupby((one for one in said if one.role == "user" and one.place), key=lambda one: one.place):
        told = [one for one in group if not cues.TRIES.search(one.text)]
        if any(cues.SETTLES.search(one.text) or cues.DECIDES.search(one.text) for one in told):
            found = [one for one in found if one.place != place] + [_as_one(told)]
    return found


def _as_one(sentences: Sequence[_Sentence]) -> _Sentence:
    whole = " ".join(dict.fromkeys(one.text for one in sentences))
    tokens = frozenset[str]().union(*(one.tokens for one in sentences))
    return sentences[0]._replace(text=whole, tokens=tokens, weight=max(one.weight for one in sentences))


def language_of(messages: Iterable[Mapping[str, Any]]) -> str:
    """ "ko" where a fifth of what the user wrote is Hangul, else "en"."""
    said = list(messages)
    texts = [one["text"] for one in said if one["role"] == Role.USER] or [one["text"] for one in said]
    letters = sum(sum(map(str.isalpha, text)) for text in texts)
    return "ko" if letters and sum(len(_HANGUL.findall(text)) for text in texts) * 5 >= letters else "en"


def digest_of(messages: Sequence[Mapping[str, Any]], max_tokens: int) -> list[dict[str, Any]]:
    """The same messages, each by its significant sentences, all of them within the budget: the shares are equal."""
    told = [message for message in messages if message["text"].strip()]
    share = max(12, max_tokens // max(1, len(told)))
    short = [{**message, "text": within(_significant(message["text"], share), share)} for message in told]
    while len(short) > 1 and sum(tokens_in(message["text"]) for message in short) > max_tokens:
        del short[
            len(short) // 2 if len(short) > 2 else 0
        ]  # the beginning says what it is about, the end what came of it
    return short


def sentences_in(text: str) -> Iterator[str]:
    """The sentences of a message without code, markup and words that say nothing."""
    for piece in _SENTENCE_END.split(_NO_SENTENCES.sub("", _CODE.sub("\n", text))):
        sentence = _MARKUP.sub("", piece.strip()).strip()
        if len(sentence) > 3 and any(map(str.isalpha, sentence)) and not cues.SAYS_NOTHING.fullmatch(sentence):
            yield sentence


def _significant(text: str, share: int) -> str:
    kept: list[str] = []
    for sentence in sentences_in(text):
        if kept and tokens_in(" ".join([*kept, sentence])) > share:
            break
        kept.append(sentence)
    return " ".join(kept) or preview_of(text, SHOWN)


def _weighed(messages: Sequence[Mapping[str, Any]]) -> list[_Sentence]:
    """All sentences, each with how much of what the conversation speaks of it holds."""
    cut = [
        (sentence, message["role"], place, _tokens(sentence), _share(sentence, message["role"]))
        for place, message in enumerate(messages)
        for sentence in sentences_in(message["text"])
        if not (cues.OFFERS.search(sentence) or _only_cheers(sentence))
    ]
    often = Counter(token for *_, tokens, _ in cut for token in tokens)
    return [
        _Sentence(text, role, place, tokens, share * sum(often[token] for token in tokens) / (len(tokens) + 4))
        for text, role, place, tokens, share in cut
    ]


def _only_cheers(text: str) -> bool:
    return bool(cues.CHEERS.fullmatch(text)) and not (cues.DECIDES.search(text) or cues.CHANGES.search(text))


def _share(text: str, role: str) -> float:
    """How much of its weight counts: what an answer only lists, or announces, tells less."""
    return 1 if role == "user" or cues.IS_WHOLE.search(text) else LISTED


def _tokens(sentence: str) -> frozenset[str]:
    """Roughly its words: of an English one the stem, of a Korean one the syllables before its particle."""
    words = (word.lower() for word in _WORD.findall(sentence) if not is_request_word(word.lower()))
    return frozenset(word[:6] if word.isascii() else word[:2] for word in words)


def _asked(said: Sequence[_Sentence], used: list[_Sentence], most: int) -> list[str]:
    """What the user wanted: of the first message, then of those that bring up most."""
    questions = [one for one in said if one.role == "user"]
    if not questions:
        return []
    first = [one for one in questions if one.place == questions[0].place]
    begin = _as_one(first)
    asking = [one for one in questions if cues.ASKS.search(one.text) and one.place != begin.place]
    return _chosen([begin, *sorted(asking, key=lambda one: -one.weight)], used, most)


def _best(said: Iterable[_Sentence], used: list[_Sentence], most: int, *, latest: bool = False) -> list[str]:
    """The sentences that say most; of decisions the later ones weigh more, for they hold."""
    fitting = [one for one in said if not one.text.endswith(("?", "？", ":"))]
    end = max((one.place for one in fitting), default=0) + 1
    by_weight = sorted(fitting, key=lambda one: -one.weight * (1 + one.place / end if latest else 1))
    return _chosen(by_weight, used, most)


def _open(said: Sequence[_Sentence], used: list[_Sentence], most: int) -> list[str]:
    """A question without an answer at the end, and what was put off in the last quarter."""
    if not said:
        return []
    last_place = max(one.place for one in said)
    last = [one for one in said if one.place == last_place]
    unanswered = [one for one in last if one.role == "user" and last_place > 0 and cues.ASKS.search(one.text)][:1]
    if last[-1].role == "assistant" and last[-1].text.endswith(("?", "？")):
        unanswered = [last[-1]]
    put_off = [one for one in said if one.place >= last_place * 3 / 4 and cues.OPEN.search(one.text)]
    return _chosen([*unanswered, *sorted(put_off, key=lambda one: -one.place)], used, most)


def _chosen(ordered: Iterable[_Sentence], used: list[_Sentence], most: int) -> list[str]:
    """The first of them that are not said already, in the order of the talk."""
    taken: list[_Sentence] = []
    for one in ordered:
        if len(taken) == most:
            break
        if not any(_is_said(one, other) for other in (*used, *taken)):
            taken.append(one)
    used += taken
    return [preview_of(one.text, SHOWN) for one in sorted(taken, key=lambda one: one.place)]


def _is_said(one: _Sentence, other: _Sentence) -> bool:
    smaller = min(len(one.tokens), len(other.tokens))
    return one.text == other.text or (smaller > 1 and len(one.tokens & other.tokens) / smaller > 0.7)


def _by_tools(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Files that were written, and the last commands with their outcome."""
    tools = [message["tool"] for message in messages if isinstance(message.get("tool"), Mapping)]
    files = [_value(tool, _PATHS) for tool in tools if _WRITES.search(str(tool.get("name") or ""))]
    named = list(dict.fromkeys(filter(None, files)))[-_FILES:]
    runs = {command: str(tool.get("status") or "") for tool in tools if (command := _value(tool, _COMMANDS))}
    told = [f"`{preview_of(command, 80)}`{f' ({status})' if status else ''}" for command, status in runs.items()]
    return [line for line in (", ".join(named), ", ".join(told[-_RUNS:])) if line]


def _value(tool: Mapping[str, Any], keys: Iterable[str]) -> str:
    params = tool.get("params")
    if not isinstance(params, Mapping):
        return ""
    value = next((params[key] for key in keys if params.get(key)), "")
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _written(points: Mapping[str, Sequence[str]], labels: Mapping[str, str]) -> str:
    return "\n".join(f"{labels[kind]}: {' · '.join(lines)}" for kind, lines in points.items())


def _drop_one(points: dict[str, list[str]]) -> None:
    """One of the kind that has most of them; where each has one, what can best be done without."""
    kind = max(points, key=lambda kind: (len(points[kind]), -FIRST_TO_GO.index(kind)))
    points[kind].pop(0 if kind in ("decided", "open") else -1)
    if not points[kind]:
        del points[kind]
