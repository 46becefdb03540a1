"""Summarise a conversation by its own sentences: asked, decided, changed, answered, open. Pure.

Every line is a sentence of a message or from the record of a tool.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.answer.conversation_state import COMMAND_KEYS, PATH_KEYS, first_param, is_courtesy
from orchestrator.answer.delivery import tokens_in, truncate
from registry.domain import Role, preview_of
from registry.text.request.request_words import is_request_word

WRITER = "extractive"  # stored as the writer of such a summary
SHORT_TOKENS = 600  # default tokens of a summary or a digest
SENTENCE_WIDTH = 220  # characters of a sentence
MAX_SENTENCES = {"asked": 4, "told": 2, "decided": 4, "answered": 2, "changed": 5, "open": 2}
"""Sentences of each kind in a short summary; twice as many in a long one."""
LABELS = {
    "en": dict(asked="Asked", told="Told", decided="Decided", answered="Answered", changed="Changed", open="Open"),
    "ko": dict(asked="질문", told="알린 것", decided="결정", answered="답", changed="변경", open="미해결"),
}
OUTCOMES: Mapping[str, Mapping[str, str]] = {
    "en": {},
    "ko": {"completed": "완료", "failed": "실패", "rejected": "거부됨", "pending": "결과 없음"},
}
"""Words for the status of a command, if they differ from the recorded one."""
ORDER = ("asked", "told", "decided", "changed", "answered", "open")
DROP_ORDER = ("told", "answered", "changed", "open", "decided", "asked")

_CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_NO_SENTENCES = re.compile(r"^[ \t]*(?:#{1,6} .*|\|.*|[-*_=]{3,}|\*\*[^*\n]*\*\*:?)[ \t]*$", re.MULTILINE)
# brackets of footnotes, boxes and images, and lines in brackets, such as clients' notes
_MARKUP = re.compile(
    r"^[\s>#*+\-•]+|^\d+[.)]\s+|\*{1,3}|`|\b_|_\b"
    r"|!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)|\[(?:[\d, ]*|[xX]|Image[^\]\n]{0,200})\]|^\[[^\]]*\]$"
)
_SENTENCE_END = re.compile(r"(?<=[.!?。？！])\s+|\n+")
_HANGUL = re.compile(r"[가-힣]")
_WORD = re.compile(r"[A-Za-z0-9_]{3,}|[가-힣]{2,}")
_WRITES = re.compile(r"edit|write|create|patch|apply|replace|rename|delete|move|notebook", re.IGNORECASE)
_IS_WHOLE = re.compile(r"[.!?…。)\"'`다요죠음함됨]$")
_OFFERS = re.compile(
    r"\bany (?:other |more |further )?questions\b|\banything else\b|\b(?:let me know|feel free|happy to help)\b"
    r"|궁금한 (?:점|것|게)|언제든|도움이 (?:필요|되)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"[?？]\s*$|^(?:how|what|why|which|where|help|fix|add|make|write|implement|explain)\b"
    r"|\b(?:can|could) you\b|\bplease\b|\bI(?:['’]m| am) trying\b|(?:까요?|나요|줘|주세요|어때|하고 싶어)[\s.!]*$",
    re.IGNORECASE,
)
_DECIDES = re.compile(
    r"\bdecided\b|\bgo(?:ing)? with\b|\bwe(?:['’]ll| will) (?:use|go|keep)\b|\bagreed on\b|\bsettled\b|\binstead of\b"
    r"|\b(?:I|we)(?:['’]d)? recommend\b|\bthe (?:fix|cause|problem) (?:is|was)\b|\broot cause\b"
    r"|하기로|(?<!수)정했|쓰기로|채택|확정|결론|원인은|로 (?:가자|하자|갑시다|합시다)"
    r"|(?:하자|가자|할게|갈게)[.!]?$",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:I(?:['’]ve)?|we(?:['’]ve)?|now) (?:\w+ )?(?:added|changed|fixed|implemented|created|updated|removed|moved"
    r"|renamed|wrote|replaced|migrated|deployed|switched)\b|\btests? (?:now )?pass\b"
    r"|추가했|수정했|변경했|고쳤|구현했|만들었|삭제했|바꿨|적용했|옮겼|교체했|배포했|줄었",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:todo|next steps?|still (?:need|have|to do)|not yet|follow[- ]up|blocked)\b"
    r"|남은|다음 ?단계|미정|보류|해야 합니다",
    re.IGNORECASE,
)


class _Sentence(NamedTuple):
    text: str
    role: str
    position: int
    tokens: frozenset[str]
    weight: float


def summary_of(messages: Sequence[Mapping[str, Any]], max_tokens: int) -> str:
    """Return the summary, a line for each kind of sentence; "" if no sentence is significant.

    Each message has `role`, `text` and, from a tool, `tool` {name, params, result, status}.
    """
    language = language_of(messages)
    points = points_of(messages, language, 2)
    labels = LABELS[language]

    def render() -> str:
        return "\n".join(f"{labels[kind]}: {' · '.join(lines)}" for kind, lines in points.items())

    while sum(map(len, points.values())) > 1 and tokens_in(render()) > max_tokens:
        kind = max(points, key=lambda kind: (len(points[kind]), -DROP_ORDER.index(kind)))
        points[kind].pop(0 if kind in ("decided", "open") else -1)
        if not points[kind]:
            del points[kind]
    return truncate(render(), max_tokens)


def points_of(messages: Sequence[Mapping[str, Any]], language: str, times: int = 1) -> dict[str, list[str]]:
    """Return the sentences of each kind in chronological order, up to `times` as many as in a short summary.

    `language`: of the words for how commands ended.
    """
    by_tools = _tool_results(messages, OUTCOMES[language])
    sentences = _weigh_sentences([message for message in messages if message["role"] in (Role.USER, Role.ASSISTANT)])
    if not sentences:
        return {"changed": by_tools} if by_tools else {}
    used: list[_Sentence] = []
    users = [one for one in sentences if one.role == Role.USER]
    answers = [one for one in sentences if one.role == Role.ASSISTANT]
    statements = [one for one in sentences if not _ASKS.search(one.text) and not one.text.endswith(":")]
    last = [one for one in sentences if one.position == sentences[-1].position]
    closing = [one for one in last[-1:] if one.text.endswith(("?", "？")) and one.position]
    postponed = [one for one in statements if one.position >= sentences[-1].position * 3 / 4 and _OPEN.search(one.text)]
    first = [one for one in users if one.position == users[0].position] if users else []
    begin = [first[0]._replace(text=" ".join(one.text for one in first))] if first else []
    asking = sorted((one for one in users if _ASKS.search(one.text) and one not in first), key=_by_weight)
    candidates = {
        "open": [*closing, *postponed],
        "asked": [*begin, *asking],
        "decided": sorted((one for one in statements if _DECIDES.search(one.text)), key=lambda one: -one.position),
        "changed": sorted((one for one in statements if _CHANGES.search(one.text)), key=_by_weight),
        "told": sorted((one for one in statements if one.role == Role.USER and len(one.tokens) > 3), key=_by_weight),
        "answered": sorted(
            (one for one in answers if one in statements and _IS_WHOLE.search(one.text)), key=_by_weight
        ),
    }
    points = {kind: _choose(some, used, times * MAX_SENTENCES[kind]) for kind, some in candidates.items()}
    points["changed"] += by_tools
    return {kind: points[kind] for kind in ORDER if points[kind]}


def _by_weight(sentence: _Sentence) -> float:
    return -sentence.weight


def language_of(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return "ko" if at least a fifth of the user's letters are Hangul, else "en"."""
    listed = list(messages)
    texts = [one["text"] for one in listed if one["role"] == Role.USER] or [one["text"] for one in listed]
    letters = sum(sum(map(str.isalpha, text)) for text in texts)
    return "ko" if letters and sum(len(_HANGUL.findall(text)) for text in texts) * 5 >= letters else "en"


def digest_of(messages: Sequence[Mapping[str, Any]], max_tokens: int) -> list[dict[str, Any]]:
    """Shorten each message to its first sentences, in equal shares of the budget."""
    with_text = [message for message in messages if message["text"].strip()]
    share = max(12, max_tokens // max(1, len(with_text)))
    short = [{**message, "text": truncate(" ".join(sentences_in(message["text"])), share)} for message in with_text]
    while len(short) > 1 and sum(tokens_in(message["text"]) for message in short) > max_tokens:
        del short[len(short) // 2 if len(short) > 2 else 0]  # beginning and end are the most useful
    return short


def sentences_in(text: str) -> Iterator[str]:
    """Yield the sentences of a message without code, markup and courtesies."""
    for piece in _SENTENCE_END.split(_NO_SENTENCES.sub("", _CODE.sub("\n", text))):
        sentence = _MARKUP.sub("", piece.strip()).strip()
        if len(sentence) > 3 and any(map(str.isalpha, sentence)) and not is_courtesy(sentence):
            yield sentence


def _weigh_sentences(messages: Sequence[Mapping[str, Any]]) -> list[_Sentence]:
    """Return all sentences, weighed by how often their words occur in the conversation."""
    cut = [
        (sentence, message["role"], position, _tokens(sentence))
        for position, message in enumerate(messages)
        for sentence in sentences_in(message["text"])
        if not _OFFERS.search(sentence)
    ]
    often = Counter(token for *_, tokens in cut for token in tokens)
    return [
        _Sentence(text, role, position, tokens, sum(often[token] for token in tokens) / (len(tokens) + 4))
        for text, role, position, tokens in cut
    ]


def _tokens(sentence: str) -> frozenset[str]:
    """Return approximate stems: six letters of each English word, two syllables of each Korean one."""
    words = (word.lower() for word in _WORD.findall(sentence) if not is_request_word(word.lower()))
    return frozenset(word[:6] if word.isascii() else word[:2] for word in words)


def _choose(ordered: Iterable[_Sentence], used: list[_Sentence], most: int) -> list[str]:
    """Return the first sentences that repeat no used one, in chronological order."""
    taken: list[_Sentence] = []
    for one in ordered:
        if len(taken) < most and not any(_repeats(one, other) for other in (*used, *taken)):
            taken.append(one)
    used += taken
    return [preview_of(one.text, SENTENCE_WIDTH) for one in sorted(taken, key=lambda one: one.position)]


def _repeats(one: _Sentence, other: _Sentence) -> bool:
    return one.text == other.text or _share_most(one.tokens, other.tokens)


def _share_most(some: frozenset[str], others: frozenset[str]) -> bool:
    smaller = min(len(some), len(others))
    return smaller > 1 and len(some & others) / smaller > 0.7


def are_about_the_same(one: str, other: str) -> bool:
    """Return True if two decisions are about the same subject, so that the later one replaces the other."""
    return _share_most(_tokens(one), _tokens(other))


def _tool_results(messages: Sequence[Mapping[str, Any]], outcomes: Mapping[str, str]) -> list[str]:
    """Return the files that were written, and the last commands with their status."""
    tools = [message["tool"] for message in messages if isinstance(message.get("tool"), Mapping)]
    writing = [tool for tool in tools if _WRITES.search(str(tool.get("name") or ""))]
    files = list(dict.fromkeys(filter(None, (first_param(tool.get("params"), PATH_KEYS) for tool in writing))))
    runs = {first_param(tool.get("params"), COMMAND_KEYS): str(tool.get("status") or "") for tool in tools}
    ended = {run: f" ({outcomes.get(status, status)})" if status else "" for run, status in runs.items() if run}
    ran = [f"`{preview_of(run, 80)}`{how}" for run, how in ended.items()]
    return [line for line in (", ".join(files[-8:]), ", ".join(ran[-3:])) if line]
