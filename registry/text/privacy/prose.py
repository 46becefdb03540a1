"""Find passwords that people mention in their own words: a cue ("pw", "login", 비번) and a likely value near it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from registry.text.privacy.likeness import is_mentioned, is_strong, is_thrown

BEFORE = 100
BEHIND = 160
"""Characters before and behind a cue that are searched for its value: about a long sentence."""
_CODE = re.compile(  # a line of code, a setting, a command or a log: other rules are for these
    r"[{}<>\\]|;\s*$|\w\(|[=!]=|::|:=|\]\(|\w=\S|^\s*(?:[#@+$%|]|//|/?\*|--|\d+[:.-]\S)|^\S+:\d+:|\d\d:\d\d:\d\d",
    re.MULTILINE,
)
_TOKEN = re.compile(r"(?!~)[^\s\"'`“”‘’()<>\[\]{},;\u3000-\u9fff\uac00-\ud7a3]{6,}")
_LEAD = re.compile(  # says that a value follows
    r"(?:(?:^|[\s,.(])(?:is|are|was|were|be|it['’]?s|as|to|says?|said|use[ds]?|using|typ(?:ed?|ing)|enter(?:ed)?"
    r"|tr(?:y|ied)|with|then|still|now|just|literally|always|actually|really|again|here)[:,]?|[:=→]|[-=]>|\s[-–—/|])"
    r"[ \t]{1,2}[\"'`“‘(]?\Z",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\S[ \t]{1,2}[-–—/|][ \t]{1,2}\Z")
_NAMED = re.compile(  # says that another value follows
    r"(?:ssid|name|user(?:name)?|host|server|version|id|model|branch|class|이름|아이디|버전|모델)(?:은|는|이|가)?"
    r"(?:[ \t]?[:=]|[ \t]is)?[ \t]{1,2}[\"'`“‘(]?\Z",
    re.IGNORECASE,
)
_BEHIND_IT = re.compile(  # what a Korean sentence says behind a password
    r"[\"'`”’)]?\s?(?:로|이고|고(?=\s)|이?야|이에요|예요|에요|입니다|이?요|임|이?라고|이?라|인데|이니까|일걸|이?었|였|넣|치고"
    r"|치면|치니|썼|쓰|설정|그대로|이거|맞|을|를|으로|이다)"
)


def find_mentioned(text: str, at: int, end: int, *, is_password: bool, is_weak: bool) -> Iterator[tuple[int, int]]:
    """Yield the places of values that are likely secrets near a cue from `at` to `end`.

    A weak cue ("login", "wifi") takes only values that look like nothing but a password.
    """
    first = max(text.rfind("\n", 0, at) + 1, at - BEFORE)
    last = text.find("\n", end, end + BEHIND)
    last = min(len(text), end + BEHIND) if last < 0 else last
    if _CODE.search(text, max(first, at - BEFORE), last):
        return
    for token in _TOKEN.finditer(text, first, last):
        start, stop = token.start(), token.end()
        while text[stop - 1] in ".:" or (text[stop - 1] in "?!" and not text[stop : stop + 2].strip().islower()):
            stop -= 1
        value = text[start:stop]
        if start < end <= stop or at <= start < end or len(value) < 6:
            continue
        before = text[max(first, start - 24) : start]
        if _NAMED.search(before):
            continue
        if not is_password:
            is_likely = is_thrown(value) and len(value) >= 20 and not value.islower() and "/" not in value
        elif is_strong(value):
            is_likely = True
        else:
            is_led = start >= end and (_PAIR.search(before) if is_weak else _LEAD.search(before))
            is_likely = bool(is_led or (not is_weak and _BEHIND_IT.match(text, stop))) and is_mentioned(value)
        if is_likely:
            yield start, stop
