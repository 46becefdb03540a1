"""Parse a request in a user's own words: subject, time, client, project, and whether to continue. Pure.

"yesterday in Cursor" narrows and holds. A date outright may also be what was spoken *about* ("what happened on 14
October?"): such a date only speaks for messages of that time, and keeps nothing out.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from registry.text.request.phrases import GOES_ON, GOING_ON, IN_THE_END, IN_THE_PAST, LEADS_IN, OTHER_PROJECT
from registry.text.request.query import is_only_asking, parse_query
from registry.text.request.syntax import Search, read_search
from registry.text.times.spans import EVER, Span
from registry.text.times.time_words import TimeWord, find_times


@dataclass(frozen=True, slots=True)
class Understood:
    """A parsed request. `search` holds its words and filters; `sources` are the clients it names.

    `dates` only speak for messages of their time. `goes_on`: the user wants to continue a conversation.
    `week_before`: a week before the day that "last Tuesday" is, which may be meant if that day is of this week.
    `in_other_project`: in any but the one that is worked in. `in_the_end`: what was said last counts, `in_the_past`:
    what held before a change.
    """

    search: Search
    sources: tuple[str, ...] = ()
    dates: tuple[Span, ...] = ()
    goes_on: bool = False
    week_before: Span | None = None
    in_other_project: bool = False
    in_the_end: bool = False
    in_the_past: bool = False

    @property
    def has_words(self) -> bool:
        """Return True if words are left to search for."""
        return bool(parse_query(self.search.words).words)

    @property
    def is_narrowed(self) -> bool:
        """Return True if the request names a time, a client or a project."""
        return bool(self.search.when_words or self.sources or self.search.project)


class Known(NamedTuple):
    """The names in the registry that a request may contain: sources, and projects as (name, path)."""

    sources: Collection[str] = ()
    projects: Collection[tuple[str, str]] = ()


NOTHING_KNOWN = Known()


# names of clients in requests, and the sources of their conversations
CLIENTS: dict[str, tuple[str, ...]] = {
    "claude code": ("claude-code",), "claude-code": ("claude-code",), "클로드 코드": ("claude-code",),
    "클로드코드": ("claude-code",), "claude desktop": ("claude",), "claude.ai": ("claude",),
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
}  # fmt: skip

# words behind a "cursor" that is no client
_OF_A_DATABASE = "paginations?|based|positions?|types?|objects?|loops?|fetch|values?|tokens?|styles?|movement|queries"
_CLIENT = "|".join(sorted(map(re.escape, CLIENTS), key=len, reverse=True))
_TOLD = "said|suggested|recommended|told|answered|proposed|wrote|advised|explained|says|recommends|suggests"
_TALK = "chat|session|conversation|discussion|thread"
_IN_CLIENT = re.compile(
    rf"(?<![\w./@-])(?:"
    rf"(?:in|from|with|using|via|on|to|ask(?:ed|ing)?|told|tell(?:ing)?) (?:the |my )?(?P<english>{_CLIENT})"
    rf"(?: (?:app|{_TALK}))?(?![\w/-]|\.\w)(?!(?<=cursor) (?:{_OF_A_DATABASE})\b)"
    rf"|(?:my |the |that |our )?(?P<talk>{_CLIENT}) (?:{_TALK})s?\b"
    rf"|did (?P<asked>{_CLIENT})(?= (?:say|suggest|recommend|tell|answer|propose|write|advise|explain)\b)"
    rf"|(?P<told>{_CLIENT})(?= (?:{_TOLD})\b)"
    rf"|(?P<korean>{_CLIENT}) ?(?:에서는|에서|한테서|한테|에게|이랑|랑|하고|로|으로)(?![\w/])"
    rf"|(?P<korean_told>{_CLIENT})(?:가|이)(?= ?(?:추천|알려|말|설명|제안|답|짜 ?준|고쳐|써 ?준|가르쳐))"
    rf"|(?P<korean_talk>{_CLIENT})(?= (?:대화|세션|채팅)(?:에서|을|를|은|는|의)?(?!\w))"
    rf")",
    re.IGNORECASE,
)
_LONGEST_REQUEST = 200  # characters: a longer text was pasted, and nothing in it narrows the search
_SAID_THEN = re.compile(
    r"""\b(?:we|i|us|you\ and\ i)\b.{0,40}?\b(?:discuss|talk|chat|work|do|did|ask|decid|write|wrote|speak|spoke|fix)\w*
      | \b(?:conversation|chat|session|discussion)s?\b | 대화|얘기|이야기|세션|작업|하던|했던|한\s*(?:거|것|일)|물어
      | [가-힣A-Za-z](?:랑|하고|한테|에서)\s(?:한|하던|했던|고친|고치던|만든|만들던|짠|짜던|정한)\s""",
    re.VERBOSE | re.IGNORECASE,
)


def understand(text: str, now: datetime, known: Known = NOTHING_KNOWN) -> Understood:
    """Parse a request; only names that are known here narrow it. `now` carries the user's offset."""
    if "\n" in text.strip():
        return Understood(Search(words=text))
    search = _with_known_names(read_search(text, now), known)
    if len(text) > _LONGEST_REQUEST:
        times = tuple(word.span for word in find_times(search.words, now))
        return Understood(search, (search.source,) if search.source else (), times)
    words, sources = _without_clients(search.words, known.sources)
    words, project = _without_project(words, known.projects)
    words, span, named, dates = _without_times(words, text, now, is_placed=bool(sources or project))
    for aside in (LEADS_IN, GOING_ON, OTHER_PROJECT):
        words = " ".join(aside.sub(" ", words).split())
    search = replace(search, words=words, when=span, when_words=named, project=search.project or project)
    if (named or sources or project) and is_only_asking(search.words):
        search = replace(search, words="")
    goes_on = bool(GOES_ON.search(text))
    if goes_on and search.project is None and (path := _alone(search.words, known.projects)):
        search = replace(search, words="", project=path)
    sources = (search.source,) if search.source else sources
    before, is_other = _week_before(search, now), bool(OTHER_PROJECT.search(text))
    is_last, is_past = bool(IN_THE_END.search(text)), not goes_on and bool(IN_THE_PAST.search(text))
    return Understood(search, sources, dates, goes_on, before, is_other, is_last, is_past)


def _with_known_names(search: Search, known: Known) -> Search:
    """Replace source:gemini and project:"shop api" by the names in the registry."""
    if search.source and search.source not in known.sources:
        search = replace(search, source=source_called(search.source, known.sources) or search.source)
    if search.project:
        search = replace(search, project=project_called(search.project, known.projects))
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


def _without_clients(words: str, known: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """Cut out the client; one without conversations here is none: "in cursor" may speak of a database's."""
    for match in _IN_CLIENT.finditer(words):
        called = next(filter(None, match.groups())).lower()
        sources = tuple(source for source in CLIENTS[called] if source in known)
        if sources:
            return _cut(words, match.start(), match.end()), sources
    return words, ()


def _without_project(words: str, projects: Collection[tuple[str, str]]) -> tuple[str, str | None]:
    named = sorted(projects, key=lambda project: -len(project[0]))
    for name, path in named:
        if match := _in_project(name).search(words):
            return _cut(words, match.start(), match.end()), path
    return words, None


def _alone(words: str, projects: Collection[tuple[str, str]]) -> str | None:
    """Return the path of the project whose name is the whole request."""
    said = [word.text.casefold() for word in parse_query(words).words]
    names = ((path, [word.text.casefold() for word in parse_query(name).words]) for name, path in projects)
    return next((path for path, name in names if said and said == name), None)


def source_called(name: str, sources: Collection[str]) -> str | None:
    """Return the source that a client's name means here: `gemini-cli` for gemini."""
    here = [source for source in CLIENTS.get(name.lower(), ()) if source in sources]
    return here[0] if len(here) == 1 else None


def project_called(name: str, projects: Collection[tuple[str, str]]) -> str:
    """Return a project's name as spelled here ("shop api" is shop-api); itself if none or several match."""
    names = {known for known, _ in projects}
    called = [known for known in names if _joined(known) == _joined(name)]
    return called[0] if name not in names and len(called) == 1 else name


def _joined(name: str) -> str:
    return re.sub("[-_ ]", "", name).casefold()


def _spaced(name: str) -> str:
    """Return the pattern of a name: payment-api is also called "the payment api"."""
    return re.sub(r"(?:\\[-_ ]|_)+", "[-_ ]", re.escape(name))


def _in_project(name: str) -> re.Pattern[str]:
    one = _spaced(name)
    return re.compile(
        rf"(?<![\w./@-])(?:(?:(?:in|on)(?: the)?|for|of|from) (?:my |our )?{one}"
        rf"(?: (?:project|repo|repository|workspace))?(?![\w/-])"
        rf"|(?:for|of|from) the {one} (?:project|repo|repository|workspace)(?![\w/-])"
        rf"|(?:the )?{one} (?:project|repo|repository|workspace)(?![\w/-])"
        rf"|{one} ?(?:프로젝트|레포|저장소)(?:에서|의|에|는|은)?(?![\w/])"
        rf"|{one} ?(?:에서|쪽에서|(?:으로|로)(?= (?:한|했|하던|하는|뭐|작업)))(?![\w/]))",
        re.IGNORECASE,
    )


def _without_times(words: str, text: str, now: datetime, *, is_placed: bool) -> tuple[str, Span, str, tuple[Span, ...]]:
    """Return the words without the time that narrows, that time, its words, and the dates that narrow nothing.

    Where a client or a project is named (`is_placed`) "what happened in May" asks for what was said then.

    Two times narrow together where they share some of it ("last month, on a Tuesday" does not), else the first.
    """
    found = find_times(words, now)
    narrowing = [
        word for word in found if not word.is_date or _is_when_said(words, word, text, now, is_placed=is_placed)
    ]
    dates = tuple(word.span for word in found if word not in narrowing and None not in word.span)
    if not narrowing:
        return words, EVER, "", dates
    first = narrowing[0]
    named = words[first.begin : first.end].strip()
    return _cut(words, first.begin, first.end), first.span, named, dates


def _is_when_said(words: str, date: TimeWord, text: str, now: datetime, *, is_placed: bool) -> bool:
    """Return True if a date says when something was said: nothing else is asked for, or the request speaks of a talk;
    never one to come."""
    rest = _cut(words, date.begin, date.end)
    is_to_come = date.span.start is not None and date.span.start > now
    is_all = not parse_query(rest).words or (is_placed and is_only_asking(rest))
    return is_all or (not is_to_come and bool(_SAID_THEN.search(text)))


def _cut(text: str, begin: int, end: int) -> str:
    return " ".join(f"{text[:begin]} {text[end:]}".split())
