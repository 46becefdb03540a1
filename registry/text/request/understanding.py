"""Parse a request in a user's own words: subject, time, client, project, and whether to continue. Pure.

"yesterday in Cursor" is a filter. An explicit date may also be the subject ("what happened on 14 October?"): it only
adds to the score of messages of that date.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from registry.text.analysis.analyzer import identifier_parts
from registry.text.request.phrases import (
    ASKS_FIRST,
    ASKS_LATEST,
    ASKS_PAST,
    ASKS_RECENT,
    BEFORE_LAST,
    CONTINUE,
    CONTINUE_PHRASE,
    LAST_SESSION,
    LOAD_PHRASE,
    NOT_THE_OTHER,
    OTHER_PROJECT,
    RECENTLY,
)
from registry.text.request.query import has_no_subject, parse_query
from registry.text.request.syntax import Search, parse_search
from registry.text.times.spans import EVER, Span
from registry.text.times.time_words import TimeExpression, find_times


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A parsed request. `search` has its words and filters, `sources` are those of the clients that it names.

    `dates` add to the scores of messages of these times. `is_continuation`: the user wants to continue a conversation.
    `week_before`: the day a week before "last Tuesday" if that is in this week; the user may mean either.
    `is_about_other_project`: about any project except the current one. `is_about_latest`: asks for the last statement;
    `is_about_past`: asks for the state before a change. `is_about_recent`: asks for what was done last.
    `is_about_first`: asks for the first conversation; `is_before_last`: for the one before the last.
    """

    search: Search
    sources: tuple[str, ...] = ()
    dates: tuple[Span, ...] = ()
    is_continuation: bool = False
    week_before: Span | None = None
    is_about_other_project: bool = False
    is_about_latest: bool = False
    is_about_past: bool = False
    is_about_recent: bool = False
    is_about_first: bool = False
    is_before_last: bool = False

    @property
    def has_words(self) -> bool:
        """Return True if the request has words to search for."""
        return bool(parse_query(self.search.words).words)

    @property
    def is_narrowed(self) -> bool:
        """Return True if the request names a time, a client, a project or a tag."""
        return bool(self.search.when_words or self.sources or self.search.project or self.search.tags)


class KnownNames(NamedTuple):
    """The names in the registry that a request may contain: sources, and projects as (name, path)."""

    sources: Collection[str] = ()
    projects: Collection[tuple[str, str]] = ()


NO_KNOWN_NAMES = KnownNames()


# names of clients in requests, and the sources of their conversations
CLIENTS: dict[str, tuple[str, ...]] = {
    "claude code": ("claude-code",), "claude-code": ("claude-code",), "클로드 코드": ("claude-code",),
    "클로드코드": ("claude-code",), "클코": ("claude-code",), "claude desktop": ("claude",), "claude.ai": ("claude",),
    "클로드 데스크톱": ("claude",), "claude": ("claude", "claude-code"), "클로드": ("claude", "claude-code"),
    "cursor agent": ("cursor-agent",), "cursor": ("cursor", "cursor-agent"), "커서": ("cursor", "cursor-agent"),
    "codex": ("codex",), "코덱스": ("codex",),
    "chatgpt": ("chatgpt",), "chat gpt": ("chatgpt",), "챗지피티": ("chatgpt",), "챗gpt": ("chatgpt",),
    "지피티": ("chatgpt",), "gpt": ("chatgpt",),
    "gemini cli": ("gemini-cli",), "gemini": ("gemini", "gemini-cli"), "제미나이": ("gemini", "gemini-cli"),
    "제미니": ("gemini", "gemini-cli"),
    "copilot": ("copilot-vscode", "copilot-cli"), "코파일럿": ("copilot-vscode", "copilot-cli"),
    "opencode": ("opencode",), "오픈코드": ("opencode",),
    "qwen code": ("qwen-code",), "cline": ("cline",), "roo code": ("roo-code",), "zed": ("zed",), "aider": ("aider",),
    "windsurf": ("windsurf",), "윈드서프": ("windsurf",), "antigravity": ("antigravity",), "kilo code": ("kilo",),
    "kimi code": ("kimi-code",), "grok cli": ("grok-cli",), "openclaw": ("openclaw",),
}  # fmt: skip

# words after a "cursor" that is not the client
_CURSOR_TERMS = "paginations?|based|positions?|types?|objects?|loops?|fetch|values?|tokens?|styles?|movement|queries"
_CLIENT = "|".join(sorted(map(re.escape, CLIENTS), key=len, reverse=True))
_SAID_VERBS = "said|suggested|recommended|told|answered|proposed|wrote|advised|explained|says|recommends|suggests"
_CONVERSATION_NOUNS = "chat|session|conversation|discussion|thread"
_IN_CLIENT = re.compile(
    rf"(?<![\w./@-])(?:"
    rf"(?:in|from|with|using|via|on|to|ask(?:ed|ing)?|told|tell(?:ing)?) (?:the |my )?(?P<english>{_CLIENT})"
    rf"(?: (?:app|{_CONVERSATION_NOUNS}))?(?![\w/-]|\.\w)(?!(?<=cursor) (?:{_CURSOR_TERMS})\b)"
    rf"|(?:my |the |that |our )?(?P<talk>{_CLIENT}) (?:{_CONVERSATION_NOUNS})s?\b"
    rf"|did (?P<asked>{_CLIENT})(?= (?:say|suggest|recommend|tell|answer|propose|write|advise|explain)\b)"
    rf"|(?P<told>{_CLIENT})(?= (?:{_SAID_VERBS})\b)"
    rf"|(?P<korean>{_CLIENT}) ?(?:에서는|에서|한테서|한테|에게|이랑|랑|하고|로|으로)(?![\w/])"
    rf"|(?P<korean_told>{_CLIENT})(?:가|이)(?= ?(?:추천|알려|말|설명|제안|답|짜 ?준|고쳐|써 ?준|가르쳐))"
    rf"|(?P<korean_talk>{_CLIENT})(?= (?:대화|세션|채팅)(?:에서|을|를|은|는|의)?(?!\w))"
    rf")",
    re.IGNORECASE,
)
_MAX_REQUEST = 200  # characters; a longer text was pasted, and does not filter the search
_MENTIONS_CONVERSATION = re.compile(
    r"""\b(?:we|i|us|you\ and\ i)\b.{0,40}?\b(?:discuss|talk|chat|work|do|did|ask|decid|write|wrote|speak|spoke|fix)\w*
      | \b(?:conversation|chat|session|discussion)s?\b | 대화|얘기|이야기|세션|작업|하던|했던|한\s*(?:거|것|일)|물어
      | [가-힣A-Za-z](?:랑|하고|한테|에서)\s(?:한|하던|했던|고친|고치던|만든|만들던|짠|짜던|정한)\s""",
    re.VERBOSE | re.IGNORECASE,
)


def parse_request(text: str, now: datetime, known: KnownNames = NO_KNOWN_NAMES) -> ParsedRequest:
    """Parse a request. Only known names filter the search. `now` has the user's UTC offset."""
    if "\n" in text.strip():
        return ParsedRequest(Search(words=text))
    search = _resolve_names(parse_search(text, now), known)
    if len(text) > _MAX_REQUEST:
        times = tuple(word.span for word in find_times(search.words, now))
        return ParsedRequest(search, (search.source,) if search.source else (), times)
    words, sources = _remove_clients(search.words, known.sources)
    words, project = _remove_project(words, known.projects)
    words, span, when_words, dates = _remove_times(words, text, now, is_placed=bool(sources or project))
    for phrase in (LOAD_PHRASE, CONTINUE_PHRASE, RECENTLY, OTHER_PROJECT, NOT_THE_OTHER, ASKS_FIRST, BEFORE_LAST):
        words = " ".join(phrase.sub(" ", words).split())
    search = replace(search, words=words, when=span, when_words=when_words, project=search.project or project)
    is_continuation, is_last_session = bool(CONTINUE.search(text)), bool(LAST_SESSION.search(text))
    if search.project is None and (path := _project_alone(search.words, known.projects, may_be_word=is_continuation)):
        search = replace(search, words="", project=path)
    is_placed = bool(when_words or sources or project)
    if (is_placed or is_continuation or is_last_session) and has_no_subject(
        search.words, is_last_session=is_last_session
    ):
        search = replace(search, words="")
    asks_recent = is_continuation or is_last_session or bool(ASKS_RECENT.search(text))
    return ParsedRequest(
        search,
        (search.source,) if search.source else sources,
        dates,
        is_continuation=is_continuation,
        week_before=_week_before(search, now),
        is_about_other_project=bool(OTHER_PROJECT.search(text)),
        is_about_latest=bool(ASKS_LATEST.search(text)),
        is_about_past=not is_continuation and bool(ASKS_PAST.search(text)),
        is_about_recent=asks_recent and not parse_query(search.words).words,
        is_about_first=bool(ASKS_FIRST.search(text)),
        is_before_last=bool(BEFORE_LAST.search(text)),
    )


def _resolve_names(search: Search, known: KnownNames) -> Search:
    """Replace the source and project of a search (source:gemini, project:"shop api") by the names in the registry."""
    if search.source and search.source not in known.sources:
        search = replace(search, source=resolve_source(search.source, known.sources) or search.source)
    if search.project:
        search = replace(search, project=resolve_project(search.project, known.projects))
    return search


_LAST_DAY = re.compile(
    r"(?:on )?last (?!week|month|year|night|time)\w+day\b|(?:지난|저번) ?[월화수목금토일]요일", re.IGNORECASE
)


def _week_before(search: Search, now: datetime) -> Span | None:
    start, end = search.when
    is_of_this_week = start and end and start.isocalendar()[:2] == now.isocalendar()[:2]
    if not (is_of_this_week and start and end and _LAST_DAY.match(search.when_words)):
        return None
    week = timedelta(days=7)
    return Span(start - week, end - week)


def _remove_clients(words: str, known: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Remove the client's name and return its sources. Ignore a client without conversations here."""
    for match in _IN_CLIENT.finditer(words):
        name = next(filter(None, match.groups())).lower()
        sources = tuple(source for source in CLIENTS[name] if source in known)
        if sources:
            return _cut(words, match.start(), match.end()), sources
    return words, ()


def _remove_project(words: str, projects: Collection[tuple[str, str]]) -> tuple[str, str | None]:
    for name, path in sorted(_mentioned(words, projects), key=lambda project: -len(project[0])):
        if match := _project_pattern(name).search(words):
            return _cut(words, match.start(), match.end()), path
    return words, None


def _project_alone(words: str, projects: Collection[tuple[str, str]], *, may_be_word: bool) -> str | None:
    """Return the path of the project whose name is the only subject of a request, if any: "slow-diary status".

    `may_be_word`: the name may be a single word.
    """
    for name, path in _mentioned(words, projects):
        without_name = re.sub(rf"(?<![\w-]){_name_pattern(name)}(?![\w-])", " ", words, flags=re.IGNORECASE)
        is_named = without_name != words and (may_be_word or len(identifier_parts(name)) > 1)
        if is_named and has_no_subject(without_name):
            return path
    return None


def resolve_source(name: str, sources: Collection[str]) -> str | None:
    """Return the source of a client's name in this registry (`gemini-cli` for gemini); None if it is ambiguous."""
    here = [source for source in CLIENTS.get(name.lower(), ()) if source in sources]
    return here[0] if len(here) == 1 else None


def resolve_project(name: str, projects: Collection[tuple[str, str]]) -> str:
    """Return a project's name as the registry spells it (shop-api for "shop api"); unchanged without a single match."""
    names = {known for known, _ in projects}
    called = [known for known in names if _normalised_name(known) == _normalised_name(name)]
    return called[0] if name not in names and len(called) == 1 else name


def _mentioned(words: str, projects: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the projects whose names the words may contain. Compiling the patterns of hundreds takes long."""
    squeezed = _normalised_name(words)
    return [(name, path) for name, path in projects if _normalised_name(name) in squeezed]


def _normalised_name(name: str) -> str:
    return re.sub("[-_ ]", "", name).casefold()


def _name_pattern(name: str) -> str:
    """Return a pattern of a name that accepts other separators: "payment api" for payment-api."""
    return re.sub(r"(?:\\[-_ ]|_)+", "[-_ ]", re.escape(name))


def _project_pattern(name: str) -> re.Pattern[str]:
    one = _name_pattern(name)
    return re.compile(
        rf"(?<![\w./@-])(?:(?:(?:in|on)(?: the)?|for|of|from) (?:my |our )?{one}"
        rf"(?: (?:project|repo|repository|workspace))?(?![\w/-])"
        rf"|(?:for|of|from) the {one} (?:project|repo|repository|workspace)(?![\w/-])"
        rf"|(?:the )?{one} (?:project|repo|repository|workspace)(?![\w/-])"
        rf"|{one} ?(?:프로젝트|레포|저장소)(?:에서|의|에|는|은)?(?![\w/])"
        rf"|{one} ?(?:에서|쪽에서|(?:으로|로)(?= (?:한|했|하던|하는|뭐|작업)))(?![\w/]))",
        re.IGNORECASE,
    )


def _remove_times(words: str, text: str, now: datetime, *, is_placed: bool) -> tuple[str, Span, str, tuple[Span, ...]]:
    """Return the words without the time filter, that time, its words, and the dates that are no filter.

    The first time that can be a filter is the filter. `is_placed`: the request names a client or a project, so "what
    happened in May" asks for conversations of May.
    """
    found = find_times(words, now)
    narrowing = [
        word
        for word in found
        if not word.is_date or _is_time_of_conversation(words, word, text, now, is_placed=is_placed)
    ]
    dates = tuple(word.span for word in found if word not in narrowing and None not in word.span)
    if not narrowing:
        return words, EVER, "", dates
    first = narrowing[0]
    when_words = words[first.begin : first.end].strip()
    return _cut(words, first.begin, first.end), first.span, when_words, dates


def _is_time_of_conversation(words: str, date: TimeExpression, text: str, now: datetime, *, is_placed: bool) -> bool:
    """Return True if a date is the time of the conversation: the request has no other subject, or mentions a
    conversation and the date is not in the future."""
    rest = _cut(words, date.begin, date.end)
    is_to_come = date.span.start is not None and date.span.start > now
    is_all = not parse_query(rest).words or (is_placed and has_no_subject(rest))
    return is_all or (not is_to_come and bool(_MENTIONS_CONVERSATION.search(text)))


def _cut(text: str, begin: int, end: int) -> str:
    return " ".join(f"{text[:begin]} {text[end:]}".split())
