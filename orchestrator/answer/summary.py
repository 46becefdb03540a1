"""What a conversation was about, in its own sentences: what was asked, decided and changed, and what is open. Pure.

Nothing is made up: every line is a sentence that was said, or what the record of a tool tells.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from orchestrator.answer.size import tokens_in, within
from orchestrator.requests import ExtractRequest
from registry.domain import preview_of

WRITER = "extractive"
"""Who made such a summary, wherever one is kept or shown."""
SHOWN = 220
"""Characters of a sentence."""
MOST = {"asked": 4, "decided": 4, "answered": 3, "changed": 5, "open": 2}
"""Sentences of each kind."""
SHORT_TOKENS = 600
"""How long a summary or a digest is unless the caller asks for another size."""
READ_TOKENS, READ_MESSAGES = 30_000, 400
"""So much of a conversation is read for one; with a limit of its own only that."""
LABELS = {
    "en": {"asked": "Asked", "decided": "Decided", "answered": "Answered", "changed": "Changed", "open": "Open"},
    "ko": {"asked": "질문", "decided": "결정", "answered": "답", "changed": "변경", "open": "미해결"},
}
FIRST_TO_GO = ("answered", "asked", "changed", "decided", "open")
"""What is left out first where there is little room: of each kind its least telling sentence."""

_CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_MARKUP = re.compile(r"^[\s>#*+\-•]+|^\d+[.)]\s+|\*{1,3}|`|\b_|_\b")
_SENTENCE_END = re.compile(r"(?<=[.!?。？！])\s+|\n+")
_HANGUL = re.compile(r"[가-힣]")
_WORD = re.compile(r"[A-Za-z0-9_]{3,}|[가-힣]{2,}")
_SAYS_NOTHING = re.compile(
    r"(?:ok(?:ay)?|k|yes|yep|sure|no|nope|thanks?(?: you)?(?: so much)?|great|nice|perfect|cool|good|go(?: on| ahead)?|"
    r"continue|done|please|sounds good|looks good|lgtm|got it|hi|hello|hey|why\??|"
    r"네|넵|예|응|ㅇㅇ|ㅇㅋ|오케이|좋아요?|좋습니다|고마워요?|감사합니다|감사해요|계속(?:해줘|해|하자)?|그래|아니(?:요|야)?|"
    r"알겠습니다|알겠어요?|확인|진행해(?:줘)?|안녕(?:하세요)?|왜\??)[\s.,!~ㅎㅋ]*",
    re.IGNORECASE,
)
_DECIDES = re.compile(
    r"\b(?:decid(?:ed?|ing)|decision|let'?s (?:go|use|keep|do|drop|switch|make)"
    r"|we(?:'ll| will| should) (?:use|go|keep|do)"
    r"|go(?:ing)? with|agreed?|settled|(?:we|I) chose|root cause|recommend(?:ed)?|the fix (?:is|was)|"
    r"the (?:problem|cause) (?:is|was)|turned out)\b"
    r"|\b(?:use|using|go|going|with|take|switch\w*|keep\w*)\b.{0,60}\binstead of\b"
    r"|결정|하기로|(?:^|\s)정했|쓰기로|채택|선택(?:했|하)|합의|결론"
    r"|로 (?:가자|하자|갑시다|합시다|가죠|하죠|할게|갈게|바꾸자)"
    r"|권장|추천|원인은|대신|하자[.!]?$|가자[.!]?$",
    re.IGNORECASE,
)
_SETTLES = re.compile(
    r"\b(?:I['’]ll|I will|we['’]ll|let['’]?s|keeping|you['’]?re right|going for)\b"
    r"|^(?:ok(?:ay)?|then|so)\b[,. ]+\S+ \S+"
    r"|^(?:go|take|keep|drop|skip|use|stick with) \S+(?: \S+){0,6}[.!]?$"
    r"|(?:할게|할래|갈게|살게|쓸게|[루기꾸리치우추들내하가쓰두보르누빼넣놓받찾먹사주드끄켜]자)(?:요)?[\s.!~ㅎㅋ]*$|^그럼\s.+(?:로|고|먼저|게)\b",
    re.IGNORECASE,
)
"""How a user settles something; an assistant who says so only offers it."""
_CHANGES = re.compile(
    r"\b(?:I(?:'ve| have)?|we(?:'ve| have)?|now) (?:\w+ )?(?:added|changed|fixed|implemented|created|updated|removed|"
    r"refactored|moved|renamed|wrote|replaced|migrated|deployed|switched|patched|bumped|uploaded)\b"
    r"|\b(?:tests? (?:now )?pass|all green)\b|^done\b[:,]|\bworks\b|^no (?:more )?(?:crash|error)"
    r"|추가했|추가해 두었|수정했|변경했|고쳤|구현했|만들었|만들어 두었|삭제했|바꿨|적용했|옮겼|교체했|배포했"
    r"|패치했|넣었|맞췄|통과|줄었|완료|안정적",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:todo|next steps?|still (?:need|have) to|remaining|not yet|left to do|open question|follow[- ]up"
    r"|tomorrow|blocked)\b|남은|다음 ?(?:단계|주|번에)|미정|추후|내일|보류|해야 (?:함|해|합니다|돼|됩니다)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"[?？]\s*$|\b(?:how|what|why|which|where|can you|could you|please|help|fix|add|make|write|implement|explain)\b"
    r"|(?:까(?!지)요?|나요|은지|는지|가요|줘|주세요|어때|하고 싶|싶어|해야|방법|왜|어떻게)",
    re.IGNORECASE,
)
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


def read_for(request: ExtractRequest) -> ExtractRequest:
    """The request as it selects messages: what is made shorter afterwards may be long; the size is that of the end."""
    if not request.is_shortened:
        return request
    wanted: dict[str, Any] = {"max_tokens": READ_TOKENS}
    if "limit" not in request.query.model_fields_set:
        wanted["limit"] = READ_MESSAGES
    return request.model_copy(update={"query": request.query.model_copy(update=wanted)})


def summary_of(messages: Sequence[Mapping[str, Any]], max_tokens: int, language: str = "") -> str:
    """The summary, a line for each kind of thing; "" where nothing was said that says anything.

    Each message has `role`, `text` and, from a tool, `tool` {name, params, result, status}. `language`: "en" or "ko";
    by default the one that most of it is in.
    """
    points = points_of(messages)
    labels = LABELS[language or language_of(messages)]
    while points and tokens_in(_written(points, labels)) > max_tokens:
        if sum(map(len, points.values())) == 1:
            break
        _drop_one(points)
    return within(_written(points, labels), max_tokens)


def points_of(messages: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """What was asked, decided, answered and changed, and what is open, each in the order of the talk."""
    said = _weighed([message for message in messages if message["role"] in ("user", "assistant")])
    used: list[_Sentence] = []
    opened = _open(messages, said, used)
    found = {
        "asked": _asked(said, used),
        "decided": _best(_decisions(said), used, "decided", latest=True),
        "changed": [*_best(_telling_of(said), used, "changed", _CHANGES), *_by_tools(messages)],
    }
    found["answered"] = _best([one for one in said if one.role == "assistant"], used, "answered")
    found["open"] = opened
    return {kind: lines for kind, lines in found.items() if lines}


def _telling_of(said: Sequence[_Sentence]) -> list[_Sentence]:
    """Those that name something: "ok, passed" alone tells of nothing."""
    return [one for one in said if len(one.tokens) > 1]


def _decisions(said: Sequence[_Sentence]) -> list[_Sentence]:
    """What sounds decided; of a user who settles something all that the message says, for it is short."""
    found = [one for one in said if _DECIDES.search(one.text)]
    for place, group in groupby((one for one in said if one.role == "user" and one.place), key=lambda one: one.place):
        told = [one for one in group if not one.text.endswith(("?", "？"))]
        if any(_SETTLES.search(one.text) or _DECIDES.search(one.text) for one in told):
            found = [one for one in found if one.place != place] + [_as_one(told)]
    return found


def _as_one(sentences: Sequence[_Sentence]) -> _Sentence:
    whole = " ".join(dict.fromkeys(one.text for one in sentences))
    tokens = frozenset[str]().union(*(one.tokens for one in sentences))
    return sentences[0]._replace(text=whole, tokens=tokens, weight=max(one.weight for one in sentences))


def language_of(messages: Iterable[Mapping[str, Any]]) -> str:
    """ "ko" where a fifth of what the user wrote is Hangul, else "en"."""
    texts = [message["text"] for message in messages]
    letters = sum(sum(map(str.isalpha, text)) for text in texts)
    return "ko" if letters and sum(len(_HANGUL.findall(text)) for text in texts) * 5 >= letters else "en"


def digest_of(messages: Sequence[Mapping[str, Any]], max_tokens: int) -> list[dict[str, Any]]:
    """The same messages, each by its telling sentences, all of them within the budget: the shares are equal."""
    told = [message for message in messages if message["text"].strip()]
    share = max(12, max_tokens // max(1, len(told)))
    short = [{**message, "text": within(_telling(message["text"], share), share)} for message in told]
    while len(short) > 1 and sum(tokens_in(message["text"]) for message in short) > max_tokens:
        del short[
            len(short) // 2 if len(short) > 2 else 0
        ]  # the beginning says what it is about, the end what came of it
    return short


def sentences_in(text: str) -> Iterator[str]:
    """The sentences of a message without code, markup and words that say nothing."""
    for piece in _SENTENCE_END.split(_CODE.sub("\n", text)):
        sentence = _MARKUP.sub("", piece.strip()).strip()
        if len(sentence) > 3 and any(map(str.isalpha, sentence)) and not _SAYS_NOTHING.fullmatch(sentence):
            yield sentence


def _telling(text: str, share: int) -> str:
    kept: list[str] = []
    for sentence in sentences_in(text):
        if kept and tokens_in(" ".join([*kept, sentence])) > share:
            break
        kept.append(sentence)
    return " ".join(kept) or preview_of(text, SHOWN)


def _weighed(messages: Sequence[Mapping[str, Any]]) -> list[_Sentence]:
    """All sentences, each with how much of what the conversation speaks of it holds."""
    cut = [
        (sentence, message["role"], place, _tokens(sentence))
        for place, message in enumerate(messages)
        for sentence in sentences_in(message["text"])
    ]
    often = Counter(token for *_, tokens in cut for token in tokens)
    return [
        _Sentence(text, role, place, tokens, sum(often[token] for token in tokens) / (len(tokens) + 4))
        for text, role, place, tokens in cut
    ]


def _tokens(sentence: str) -> frozenset[str]:
    """Roughly its words: of an English one the stem, of a Korean one the syllables before its particle."""
    return frozenset(word.lower()[:6] if word.isascii() else word[:2] for word in _WORD.findall(sentence))


def _asked(said: Sequence[_Sentence], used: list[_Sentence]) -> list[str]:
    """What the user wanted: of the first message, then of those that bring up most."""
    questions = [one for one in said if one.role == "user"]
    if not questions:
        return []
    first = [one for one in questions if one.place == questions[0].place]
    begin = _as_one(first)
    asking = [one for one in questions if _ASKS.search(one.text) and one.place != begin.place]
    return _chosen([begin, *sorted(asking, key=lambda one: -one.weight)], used, MOST["asked"])


def _best(
    said: Sequence[_Sentence],
    used: list[_Sentence],
    kind: str,
    cue: re.Pattern[str] | None = None,
    *,
    latest: bool = False,
) -> list[str]:
    """The sentences with the cue that say most; of decisions the later ones weigh more, for they hold."""
    fitting = [one for one in said if (cue is None or cue.search(one.text)) and not one.text.endswith(("?", "？"))]
    end = max((one.place for one in said), default=0) + 1
    by_weight = sorted(fitting, key=lambda one: -one.weight * (1 + one.place / end if latest else 1))
    return _chosen(by_weight, used, MOST[kind])


def _open(messages: Sequence[Mapping[str, Any]], said: Sequence[_Sentence], used: list[_Sentence]) -> list[str]:
    """A question without an answer at the end, and what was put off in the last quarter."""
    if not said:
        return []
    last_place = max(one.place for one in said)
    last = [one for one in said if one.place == last_place]
    unanswered = [one for one in last if one.role == "user" and last_place > 0 and _ASKS.search(one.text)][:1]
    if last[-1].role == "assistant" and last[-1].text.endswith(("?", "？")):
        unanswered = [last[-1]]
    put_off = [one for one in said if one.place >= last_place * 3 / 4 and _OPEN.search(one.text)]
    return _chosen([*unanswered, *sorted(put_off, key=lambda one: -one.place)], used, MOST["open"])


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
    longest = max(points, key=lambda kind: (len(points[kind]) > 1, -FIRST_TO_GO.index(kind)))
    points[longest].pop(0 if longest in ("decided", "open") and len(points[longest]) > 1 else -1)
    if not points[longest]:
        del points[longest]
