"""Find secrets that people mention in their own words: a cue ("pw", "login", 비번) and a likely value near it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from registry.text.privacy.likeness import (
    is_chosen,
    is_mentioned,
    is_phrase,
    is_pin,
    is_strong,
    is_thrown,
    is_typed_korean,
    is_word,
)

BEFORE = 100
BEHIND = 160
"""Characters before and behind a cue that are searched for its value: about a long sentence."""
LONGEST_HEAD = 300
"""Characters of a table's first line before or behind a cue."""
_CODE = re.compile(  # a line of code, a setting, a command or a log: other rules are for these
    r"[{}<>\\]|;\s*$|\w\(|[=!]=|::|:=|\]\(|\w=\S|^\s*(?:[#@+$%|]|//|/?\*|--|\d+[:.-]\S)|^\S+:\d+:|\d\d:\d\d:\d\d",
    re.MULTILINE,
)
_TOKEN = re.compile(r"(?![~*])[^\s\"'`“”‘’()<>\[\]{},;\u3000-\u9fff\uac00-\ud7a3]{5,}")
_LONG_TOKEN = re.compile(r"(?![~*])[^\s\"'`“”‘’()<>\[\]{},;\u3000-\u9fff\uac00-\ud7a3]{12,}")
_QUOTED = re.compile(r"[\"“‘](?P<said>[A-Za-z][A-Za-z0-9'’!._-]*(?: [A-Za-z0-9'’!._-]+){0,7})[\"”’]")
_LEAD = re.compile(  # says that a value follows
    r"(?:(?:^|[\s,.(])(?:is|are|was|were|be|it['’]?s|as|to|says?|said|use[ds]?|using|typ(?:ed?|ing)|enter(?:ed)?"
    r"|tr(?:y|ied)|with|then|still|now|just|literally|always|actually|really|again|here"
    r"|reads?|equals|picked|chose|got|like|gave (?:me|us)|sent (?:me|us))[:,]?|[:=→]|[-=]>|\s[-–—/|])"
    r"[ \t]{1,2}[\"'`“‘(*]{0,3}\Z",
    re.IGNORECASE,
)
_IS = re.compile(  # a word may be the password
    r"(?:\b(?:is|was|still|literally|says?)|->|→|\b(?:set|chang|switch|reset|updat)[^.\n]{1,40} to|(?P<colon>:))"
    r"[ \t][\"'“‘*]{0,2}\Z"
)
_CLAUSE = re.compile(r"[\"'”’]?[ \t]*(?:[.,;!?)]|[-–—][ \t]|\n|\Z|(?:and|but|lol|haha|btw)\b)")
_REVERSED = re.compile(  # said behind a value
    r"[\"'`”’)*]{0,3}(?:\s?[,—–-]+)?\s(?:that['’]?s|this is|it['’]?s|is|was|as|for)\s(?:still\s)?"
    r"(?:the|my|our|your|his|her|their|an?|its)\s(?:[\w'’-]+\s){0,3}",
    re.IGNORECASE,
)
_ENDS = re.compile(r"\s*(?:\n|\Z|[A-Z])")
_PAIR = re.compile(r"\S[ \t]{1,2}[-–—/|][ \t]{1,2}\Z")
_NAMED = re.compile(  # says that another value follows
    r"(?:ssid|name|user(?:name)?|host|server|version|id|model|branch|class|이름|아이디|버전|모델)(?:은|는|이|가)?"
    r"(?:[ \t]?[:=]|[ \t]is)?[ \t]{1,2}[\"'`“‘(]?\Z",
    re.IGNORECASE,
)
_COPULA = re.compile(r"[\"'”’]?\s?(?:이?야|이에요|예요|입니다|이?고|임)(?![가-힣])")
_DIGEST = re.compile(
    r"(?:commit|sha\d*|md5|hash|digest|id|rev\w*|version|fingerprint|etag|checksum)\W{1,4}\Z", re.IGNORECASE
)
_BEHIND_IT = re.compile(  # what a Korean sentence says behind a password
    r"[\"'`”’)]?\s?(?:로|이고|고(?=\s)|이?야|이에요|예요|에요|입니다|이?요|임|이?라고|이?라|인데|이니까|일걸|이?었|였|넣|치고"
    r"|치면|치니|썼|쓰|설정|그대로|이거|맞|을|를|으로|이다|이래|래|던데|같|쳐|누르|입력|써|바꾸|변경|했|해[뒀놨]"
    r"|적혀|나[와오]|틀|안 ?[되돼먹맞])"
)
_PIN = re.compile(
    r"(?P<between>(?:[^\n\d;=(){}<>]|(?<=[가-힣])\(|\d(?=\s|FA|자리|-digit)){0,40}?)(?<![\w.,:/+#-])(?P<secret>\d{4,8}[#*]?|#\d{4,8}[#*]|\d{1,2}(?:-\d{1,2}){2,3})"
    r"(?![\w%/]|[.,:-]\d|-(?!\s)|\s?(?:digit|char|min|sec|hour|day|time|ms|px|bit|byte|line|row|word|user|file|record|request|item|page|point"
    r"|[자년월일분초시회번개원명건호층만~]|비트|글자|단계))"
)
_PIN_BEFORE = re.compile(r"(?<![\w.,])(?:G-)?(?P<secret>\d{4,8})\s(?:is|as|for)\s(?:[\w']+\s){0,4}\Z")
_GLUED = re.compile(r"[_=-]|\.\w|화|학")
_CELL = r"[ *\"'-]*[\w.-]+(?: [\w.-]+){0,2}[ *\"'-]*"
_HEAD = re.compile(rf"\|?{_CELL}(?:[|\t]{_CELL})+\|?\s*|[\w.\"'-]+(?:,[\w.\"'-]+)+\r?")  # of a table, or CSV
_LINE = re.compile(r"[^\n]+")
_OTHER_CODE = re.compile(
    r"(?:error|exit|status|zip|postal|post|area|country|response|return|http|source|promo)[ -]\Z", re.I
)
_OTHER_NUMBER = re.compile(r"\b(?:ISO|RFC|PR|issue|line|port|error|version|room|gpio|pins)\s?\Z", re.IGNORECASE)
_TOLD = re.compile(r"\s?(?:is|was|:|=)\s{1,2}\Z")


def find_pin(text: str, at: int, end: int, *, is_told: bool) -> tuple[int, int] | None:
    """Return the place of a number behind the end of a cue ("pin", "door code"), directly behind it if `is_told`."""
    found = _PIN.match(text, end) if not _OTHER_CODE.search(text, max(0, at - 12), at) else None
    if (
        found
        and is_pin(found["secret"])
        and not _OTHER_NUMBER.search(found["between"])
        and (not is_told or _TOLD.fullmatch(found["between"]))
    ):
        return found.span("secret")
    found = _PIN_BEFORE.search(text, max(0, at - 50), at)
    return found.span("secret") if found else None


def find_in_column(text: str, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the places of likely passwords in a table's column with a cue as its head."""
    first, last = text.rfind("\n", max(0, at - LONGEST_HEAD), at) + 1, text.find("\n", end, end + LONGEST_HEAD)
    head = text[first:last] if last > 0 and at - first < LONGEST_HEAD else ""
    sign = next((sign for sign in "|\t," if sign in head), None)
    if sign is None or not _HEAD.fullmatch(head) or sign in text[text.rfind("\n", 0, max(0, first - 1)) + 1 : first]:
        return
    column, columns = text[first:at].count(sign), head.count(sign)
    for row in _LINE.finditer(text, last + 1):
        if re.fullmatch(r"[-+=|:\s]*", row[0]):
            continue
        if row[0].count(sign) != columns:
            return
        start = row.start() + sum(len(cell) + 1 for cell in row[0].split(sign)[:column])
        cell = row[0].split(sign)[column]
        value = cell.strip(" \t\r\"'`*")
        if value and not re.search(r"\s", value) and is_chosen(value):
            start += cell.index(value)
            yield start, start + len(value)


def _is_key(value: str, before: str, *, is_near: bool, is_weak: bool) -> bool:
    if (
        _DIGEST.search(before)
        or ("/" in value and "." in value)
        or (is_weak and value in (value.lower(), value.upper()))
    ):
        return False
    is_led = is_near or _LEAD.search(before) is not None
    if len(value) >= 20 and is_thrown(value):
        return is_led or not is_weak
    is_said = not is_weak and _IS.search(before) is not None
    return is_said and len(value) > 11 and is_mentioned(value) and sum(map(str.isdigit, value)) > 1


def _is_led(text: str, end: int, start: int, stop: int, value: str, before: str, *, is_weak: bool) -> bool:
    is_told = _BEHIND_IT.match(text, stop) is not None
    if is_told and is_typed_korean(value.rstrip("0123456789!")):
        return True
    if is_weak:
        is_pair = start >= end and _PAIR.search(before) is not None
        return is_pair and (is_mentioned(value) or is_typed_korean(value))
    is_led = start >= end and (_LEAD.search(before) is not None or start - end < 3)
    if is_mentioned(value) and (is_led or is_told or (start >= end and sum(map(str.isdigit, value)) > 1)):
        return True
    said = _IS.search(before) if start > end and _CLAUSE.match(text, stop) else None
    if said and said["colon"] and value[0].isupper():  # as in a translation
        return False
    return (said is not None or _COPULA.match(text, stop) is not None) and is_word(value.rstrip("0123456789!").lower())


def find_mentioned(text: str, at: int, end: int, is_password: bool, is_weak: bool) -> Iterator[tuple[int, int]]:
    """Yield the places of values that are likely secrets near a cue from `at` to `end`.

    A weak cue ("login", "wifi") takes only values that look like nothing but a password.
    """
    if text[at - 1 : at] in ("_", "-", ".") or _GLUED.match(text, end):  # a part of a name
        return
    first = max(text.rfind("\n", 0, at) + 1, at - BEFORE)
    last = text.find("\n\n", end, end + BEHIND)
    last = min(len(text), end + BEHIND) if last < 0 else last
    if code := _CODE.search(text, first, last):
        last = text.rfind("\n", end, code.end())
    for quoted in _QUOTED.finditer(text, end, max(last, end)) if is_password and not is_weak else ():
        said = _IS.search(text[end : quoted.start()])
        if said and not said["colon"] and "\n" not in text[end : quoted.end()] and is_phrase(quoted["said"]):
            yield quoted.span("said")
    for token in (_TOKEN if is_password else _LONG_TOKEN).finditer(text, first):
        start, stop = token.span()
        if start >= last:  # a value that begins within the sentence is taken whole
            break
        while stop > start and (
            text[stop - 1] in ".:"
            or (text[stop - 1] in "*_" and text[start - 1] in "*_")
            or (text[stop - 1] in "?!" and _ENDS.match(text, stop))
        ):
            stop -= 1
        value = text[start:stop]
        if start < end <= stop or at <= start < end or len(value) < 5:
            continue
        before = text[max(first, start - 48) : start]
        if _NAMED.search(before):
            continue
        is_before = start < at and _REVERSED.fullmatch(text, stop, at) is not None
        if "\n" in text[end:start]:
            is_likely = (
                is_password and not is_weak and is_strong(value) and re.search(r"\w[!#$%^&*?]", value) is not None
            )
        elif not is_password:
            is_near = start - end < 3
            is_likely = (
                _is_key(value, before, is_near=is_near, is_weak=is_weak)
                if start >= end
                else (is_before and is_thrown(value))
            )
        else:
            is_sure = not is_weak or (
                len(value) < 25 and (re.search(r"\w[!#$^*?@]", value) or _PAIR.search(before) or before.endswith(", "))
            )
            is_likely = bool(is_strong(value) and is_sure) or (
                _is_led(text, end, start, stop, value, before, is_weak=is_weak) or (is_before and is_mentioned(value))
            )
        if is_likely:
            yield start, stop
