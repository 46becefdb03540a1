"""Find values near a word for a login or a secret: the odder a value's form, the looser its tie to the word may be.

A value is assigned to a name, in code too (`password = …`, 비밀번호는 …), or it stands near a cue ("password", 비번,
"login") in a sentence, a table or the next line. Plain words are secrets only in the sentences of `rules.toml`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence

from registry.text.privacy.cues import BEFORE, NAMED, Cue, Secret, find_cues
from registry.text.privacy.likeness import (
    Form,
    form,
    is_code,
    is_made,
    is_name,
    is_password,
    is_random,
    is_typed_korean,
    is_unmistakable,
    is_word,
)
from registry.text.privacy.pins import find_pins
from registry.text.privacy.rules import SHORTEST_KEY, Name

BEHIND = 160  # characters of a line behind a cue that are searched: about a long sentence
REACH = 80  # characters between a name and a value that is made by a machine
NEXT = 30  # characters between a value behind "is" and a cue behind it
LONGEST_HEAD = 600  # characters of a table's first line
MOST_CUES = 50  # of a line; a sentence has a few, and each value is compared with each
LONGEST_SKIPPED = 1000  # characters of a value that is searched for cues once more


_ASSIGNED = re.compile(  # the rest of a name, then a sign of assignment in the usual notations, a verb or a particle
    r"(?P<more>[A-Za-z0-9_-]{0,24})(?P<note>\s?\([^()\n]{1,20}\))?\\*[\"'`\[\])*]{0,4}"
    r"(?:[ \t]{0,3}(?P<sign>:=|=>|={1,3}|\.{3,}|!==?|\?=|\|\||\?\?|:|：|→|(?<!\) )->|(?<=\s)[|│–—-](?=\s)"
    r"|:\s?[A-Z]\w{2,11}\s?=)"
    r"[ \t]{0,3}|(?P<listed>[ \t]{0,3}[,(]\s?(?=[\"'])|[ \t]{1,4}(?=[\"'`]))"
    r"|(?P<plain>[ \t]{1,12})"
    r"|(?P<told>[ \t]{1,2}(?:is|are|was|should be|must be)[ \t]{1,2}:?[ \t]?|['’]s[ \t]|,?[ \t]it(?:'s|’s| is)[ \t]"
    r"|\s?(?:값\s?)?(?:는|은|가|이|를|을|만|란)(?:[ \t]{1,2}:?[ \t]?|:[ \t]?)|[はが是为][ \t]?))[*]{0,2}[ \t]{0,2}"
    r"[brfu]?(?:\\*(?P<quote>[\"'`])(?P<quoted>[^\s\"'`\\]{6,})\\*(?P=quote)"
    r"|(?P<bare>[^\s\"'`,;(){}<>\[\]\\\u3000-\u9fff\uac00-\ud7a3]{6,}+)(?![(\[]))"
)
_ABOUT = re.compile(  # ends a name that does not hold the secret but tells of it
    r"(?:_|-)?(?:hash(?:er|ed)?|i[sz](?:er|ed|ation)|type|name|field|file|path|url|uri|id|length|len|policy|format|algorithm|label|hint"
    r"|regex|pattern|column|endpoint|expir\w*|count|size|version|env|var|header|prefix|age|limit|reset|dir"
    r"|class|arn|ring|accessor|manager)s?$",
    re.IGNORECASE,
)
_GENERAL = re.compile(  # "password manager": the sentence is about something else
    r"[ _-]?(?:manager|polic|field|hash|hint|reset(?! to)|prompt|protect|stor|strateg|rule|requirement|length"
    r"|strength|check|valid|input|box|column|change(?!d)|rotat(?!ed)|auth|encod|encrypt|scheme|algorithm|format"
    r"|type|variable|param|rate|entry|form|page|screen|dialog|confirm|recover|less|i[sz](?:er|ed|ation)|화|학)|[-_]",
    re.IGNORECASE,
)
_CODE = re.compile(  # a line of code, a setting, a command or a log: only what is assigned is a value there
    r"[{}\\]|<(?!!--)|(?<!--)(?<![-=])(?<!^)>|;\s*$|[A-Za-z_]\w*\((?![가-힣])|[=!]=|\w = [\"'(\[]|::|:=|\]\(|^\S+:\d+:"
    r"|^\s*[\w.]+ = [A-Za-z]"
    r"|^\s*(?:[@+$%|]|#(?!\s?[\w가-힣]+\s)|/?\*(?!\*)|--|[\"'][\w.-]*[\"']\s?[:,]|(?:import|from|def|class|return|if|elif)\s)",
    re.MULTILINE,
)
_TOKEN = re.compile(
    r"(?<![\w가-힣])(?:[A-Za-z0-9]+[!@#$^&*][가-힣]{2,}|[가-힣]{2,}[!@#$%^&*][A-Za-z0-9]+|[A-Za-z]{3,}[가-힣]{2,}\d+|\d{1,3}[가-힣]\d{4})[!@#$%^&*]*"
    r"|(?![~*])[^\s\"'`“”‘’()<>\[\]{},;\u3000-\u9fff\uac00-\ud7a3]{4,}|(?<![가-힣])[가-힣]{2,12}\d{1,8}[!@#$%^&*?]{0,3}"
)
_LEAD = re.compile(  # says that a value follows
    r"(?:(?:^|[\s,.(])(?:is|are|was|were|be|been|es|ist|lautet|je|est|it['’]?s|as|to|says?|said|use[ds]?|using"
    r"|typ(?:ed?|ing)|enter(?:ed)?|tr(?:y|ied)|with|then|still|now|just|literally|always|actually|really|again|here|mine"
    r"|reads?|equals|picked|chose|got|like|gave (?:me|us)|sent (?:me|us)"
    r"|(?:changed|switched|reset)(?: it)? from)[:,]?|[:=→]|[-=]>|\s[-–—/|])"
    r"[ \t]{1,2}[\"'`“‘(*]{0,3}\Z|[\"'`“‘(]\Z",
    re.IGNORECASE,
)
_TOLD = re.compile(  # said behind a value in Korean
    r"[\"'`”’)]?\s?(?:\(?으\)?로|로|이?야|이에요|예요|에요|입니다|이?고(?=\s)|인데|이?라|임|이?래|엔터|써(?=주|놓|야)|적(?=어|고|으)|일걸|이?었|였|넣|치|쳐|입력|누르|맞|[을를]|이거|같)"
)
_CELL = r"[ *\"'-]*[\w.-]+(?: [\w.-]+){0,2}[ *\"'-]*"
_HEAD = re.compile(rf"\|?{_CELL}(?:[|\t]{_CELL})+\|?\s*|[\w.\"'-]+(?:,[\w.\"'-]+)+\r?")  # of a table, or CSV
_ATTACHED = re.compile(r"[,;(){}\[\]]+[^\s\"'`,;=/(){}\[\]\u3000-\u9fff\uac00-\ud7a3]+(?<![.:?!])(?=[.:?!]?(?:\s|\Z))")
_PAIR = re.compile(r"(?:\S[ \t]{1,2}[-–—/|]|@[\w.-]+(?:,| and| with)|\blogin:)[ \t]{1,2}\Z")  # kim / …
_ENTERED = re.compile(
    r"\b(?:typ(?:ed?|ing)|enter(?:ed|ing)?|opens? with|unlocks? with|in as \S+ with"
    r"|(?:encrypt|protect|secur|unlock|lock)ed with|tr(?:y|ied)|punch(?:ed)? in|key(?:ed)? in)[ \t][\"'“‘]?\Z",
    re.IGNORECASE,
)
_OPTION = re.compile(r"(?:^|\s)(?:--?|(?:ENV|ARG|setx|setenv)\s+)[\w.-]{0,24}\Z")  # of a command
_LISTED = re.compile(r"\b(?:user(?:name)?|login|id|e-?mail)/\Z", re.IGNORECASE)  # user/pass
_SPLIT = re.compile(r"[\w.-]+[/:](?=[^/:]+\Z)")
_MADE = re.compile(r"(?<![\w./+@&#-])(?!AAAA[BC]3Nz)(?:0x)?[A-Za-z0-9+/_-]{20,}+={0,2}(?![\w./#])")
_LABEL = re.compile(  # of a value; these say nothing about it: value, default, data, …
    r"(?<![\w.-])(?!(?:value|val|default|data|content|body|string|text|result)\b)([\w.-]+)[\"'\])]{0,3}\s?[:=]\s?[\"'`(\[]{0,2}\Z"
)
_RUN = re.compile("[A-Za-z0-9]{16}")
_HASHED = re.compile(r"sha|md5|hash|digest|commit|checksum|\bref|fingerprint|\b(?:rsa|dsa|[gp]gp)\b", re.IGNORECASE)
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile("[0-9a-f-]+")
_ENDS = re.compile(r"\s*(?:\n|\Z|[A-Z])")
_LINE = re.compile(r"[^\n]+")
_ALONE = re.compile(r"[\s>*-]*(?:\[[^\]\n]{1,20}\]\s?)?(?:[\w가-힣 ]{1,20}[:>]\s)?")  # what may stand ahead of a value


def find_near(text: str, names: Sequence[Name], *, has_odd: bool) -> Iterator[Secret]:
    """Yield the likely secrets near the names, the surest first, and those that no name has to tell of."""
    cues = find_cues(text, names)
    behind = 0
    for cue in cues:
        if cue.start >= behind and not cue.name.is_cue and (found := _ASSIGNED.match(text, cue.end)):
            behind = found.end() if len(found[0]) > LONGEST_SKIPPED else 0
            if group := _assigned(text, found, cue):
                yield Secret(cue.name.kind, *found.span(group))
    yield from _find_made(text, cues)
    lines: dict[int, list[Cue]] = {}
    for cue in cues:
        lines.setdefault(text.rfind("\n", 0, cue.start) + 1, []).append(cue)
    told = {start for start, held in lines.items() if any(cue.is_strong for cue in held)}
    for start, held in lines.items():
        yield from _find_in_line(text, start, held[:MOST_CUES], told)
    for line in _LINE.finditer(text) if has_odd else ():
        if not _CODE.search(line[0]):
            for token in _TOKEN.finditer(text, line.start(), line.end()):
                end = _trimmed(text, *token.span())
                value = text[token.start() : end]
                if is_unmistakable(value) and form(value) is Form.STRANGE:
                    yield Secret("password", token.start(), end)


def _find_made(text: str, cues: Sequence[Cue]) -> Iterator[Secret]:
    """Yield values made by a machine near a name of a secret, in code too, unless their own label tells otherwise."""
    near = [cue for cue in cues if cue.name.kind != "pin"]
    starts = [cue.start for cue in near]
    for token in _MADE.finditer(text) if near else ():
        start, stop = token.span()
        if not _RUN.search(token[0]) or not is_made(token[0]) or NAMED.search(text, max(0, start - 60), start):
            continue
        line = text[max(text.rfind("\n", 0, start) + 1, start - BEHIND) : start]
        is_hex = _HEX.fullmatch(token[0].lower()) is not None
        if is_hex and (len(token[0]) < 32 or _HASHED.search(line)):
            continue
        label = _LABEL.search(text, max(0, start - 60), start)
        reach = 3 if is_hex and line[-1:] in "\n " and not _LEAD.search(line) else REACH  # most are digests
        for cue in near[bisect_left(starts, start - BEFORE) : bisect_left(starts, stop + min(reach, NEXT))]:
            if label and (cue.end <= label.start() or cue.start >= stop):
                continue  # the label decides
            is_behind = 0 <= start - cue.end <= reach and text.count("\n", cue.end, start) < 2
            if is_behind or (stop <= cue.start and "\n" not in text[stop : cue.start]):
                yield Secret("secret", start, stop)
                break


def _assigned(text: str, found: re.Match[str], cue: Cue) -> str | None:
    """Return the group of the match that holds the secret, if it looks like one."""
    name = cue.name
    if _ABOUT.search(found["more"]) or ((found["note"] or " ")[0] == "(" and name.words.isascii()):  # a call
        return None
    group = "quoted" if found["quoted"] else "bare"
    value, is_listed = found[group], found["listed"] is not None
    is_spaced = is_listed and found["listed"].isspace()
    if name.is_whole_word and (found["more"] or found["plain"] or (is_listed and not is_spaced)):
        return None
    if found["plain"] is not None:
        if found["plain"] != " " or _OPTION.search(text, max(0, cue.start - 30), cue.start):
            return group if form(value) >= Form.NUMBERED else None
        return group if form(value) >= (Form.STRANGE if name.kind == "password" else Form.MADE) else None
    if is_listed and (
        is_code(value) or re.match("-|.*=$", value) or (is_name(value) and not is_spaced and ":" not in value)
    ):
        return None
    if group == "quoted" and name.kind == "password" and "=" in (found["sign"] or "") and is_word(value):
        return group  # password == "sesame"
    if group == "bare" and found["told"] is not None and name.kind == "password" and form(value) < Form.NUMBERED:
        return None
    return group if is_secret(name, value, is_quoted=group == "quoted") else None


def tells_of_secret(name: str) -> bool:
    """Return whether a name does not hold a secret but tells of it: `token_type`."""
    return _ABOUT.search(name) is not None


def is_secret(name: Name, value: str, *, is_quoted: bool) -> bool:
    """Return whether a value that is assigned to a name looks like its secret."""
    if name.kind == "password":
        return (is_password(value) or form(value) >= Form.NUMBERED) and (is_quoted or not is_code(value))
    if name.needs_long:
        return len(value) >= SHORTEST_KEY and is_made(value)
    if _UUID.fullmatch(value):
        return name.words != "session id"
    looks = form(value)
    is_chosen = looks >= Form.ODD or (is_quoted and looks is Form.NUMBERED and name.words.startswith("secret"))
    is_likely = (is_random(value) and not is_name(value)) or (is_chosen and not value.isupper())
    return len(value) >= (8 if looks >= Form.ODD else 10) and is_likely and (is_quoted or not is_code(value))


def _find_in_line(text: str, start: int, cues: Sequence[Cue], told: Container[int]) -> Iterator[Secret]:
    """Yield what is said in a line with cues, in the lines below it, and in the column of a table."""
    stop = text.find("\n", cues[-1].end)
    stop = len(text) if stop < 0 else stop
    first, last = max(start, cues[0].start - BEFORE), min(stop, cues[-1].end + BEHIND)
    passwords = [cue for cue in cues if cue.name.kind == "password" and not cue.name.is_cue]
    for cue in passwords[:1]:
        yield from _find_in_column(text, cue, start, stop)
    for cue in cues:
        if cue in passwords or cue.name.kind == "pin":
            yield from find_pins(text, cue)
    if _CODE.search(text, first, last):
        return
    cues = [cue for cue in cues if cue.name.kind != "pin" and not _is_general(text, cue)]
    if cues:
        yield from _find_in_sentence(text, first, last, cues)
    if strong := {cue.is_strong for cue in cues if cue.name.kind == "password"}:
        yield from _find_below(text, stop, told, is_strong=max(strong))


def _is_general(text: str, cue: Cue) -> bool:
    """Return whether a name is a part of another, or of a sentence about something else."""
    is_joined = text[cue.start - 1 : cue.start] in ("_", "-", ".", "$", "/") and cue.name.words.isascii()
    is_joined = is_joined and text[cue.start - 1 : cue.start + 1] != "-P"  # WLAN-Passwort
    is_listed = _LISTED.search(text, max(0, cue.start - 10), cue.start) is not None
    return (is_joined and cue.name.kind == "password" and not is_listed) or _GENERAL.match(text, cue.end) is not None


def _find_in_sentence(text: str, first: int, last: int, cues: Sequence[Cue]) -> Iterator[Secret]:
    surest = sorted(cues, key=lambda cue: cue.name.is_cue)
    found, others = list[Secret](), list[Secret]()
    for start, stop in _values(text, first, last, is_paired=cues[0].name.kind == "password"):
        is_cue = any((cue.start <= start and stop <= cue.end) or cue.end == stop for cue in cues)
        if is_cue or NAMED.search(text[max(first, start - 48) : start]):
            continue
        place = next((place for cue in surest if (place := _by_cue(text, first, start, stop, cue))), None)
        (found if place else others).append(place or Secret("password", start, stop))
    yield from found
    known = {text[place.start : place.start + 4] for place in found if place.kind == "password"}
    yield from (place for place in others if text[place.start : place.start + 4] in known)  # not kettle22 but kettle23


def _values(text: str, first: int, last: int, *, is_paired: bool) -> Iterator[tuple[int, int]]:
    """Yield the places of values that begin within a sentence and are odd enough."""
    for token in _TOKEN.finditer(text, first):
        start, stop = token.span()
        if start >= last:
            return
        stop = _trimmed(text, start, stop)
        looks = form(text[start:stop])
        pair = _SPLIT.match(text, start, stop) if is_paired and looks < Form.MADE else None
        if pair and form(text[pair.end() : stop]) >= max(looks, Form.NUMBERED):  # user/password
            start = pair.end()
            looks = form(text[start:stop])
        if looks >= Form.NUMBERED or is_typed_korean(text[start:stop]):
            yield start, stop


def _by_cue(text: str, first: int, start: int, stop: int, cue: Cue) -> Secret | None:
    """Return the place of a value if it is odd enough to be a secret by a cue."""
    before = NEXT if cue.name.kind == "secret" else BEFORE
    if not (cue.end <= start <= cue.end + BEHIND or stop <= cue.start <= stop + before):
        return None
    is_told = _TOLD.match(text, stop) is not None
    is_far = stop < cue.start - NEXT and not cue.name.is_cue
    is_led = not is_far and _LEAD.search(text[max(first, start - 48) : start]) is not None
    is_led = is_led or is_told or 0 <= start - cue.end < 3
    needed = _needed(text, cue, start, text[start:stop], is_led=is_led, is_told=is_told)
    return Secret(cue.name.kind, start, stop) if form(text[start:stop]) >= needed else None


def _needed(text: str, cue: Cue, start: int, value: str, *, is_led: bool, is_told: bool) -> Form:
    """Return the form that a value must have to be a secret by a cue."""
    is_behind, digits = start >= cue.end, sum(map(str.isdigit, value))
    if cue.name.kind == "secret":
        if cue.is_strong and is_led:
            return Form.NUMBERED if len(value) > 11 and digits > 1 else Form.ODD if len(value) > 9 else Form.MADE
        is_hash = value in (value.lower(), value.upper()) or (not is_led and "=" in value[:-2])
        return (
            Form.NEVER
            if is_hash and (not cue.is_strong or _HEX.fullmatch(value.lower()) or "=" in value)
            else Form.MADE
        )
    is_pair = is_behind and (text[start - 1] in ":/" or _PAIR.search(text, max(0, start - 30), start) is not None)
    if is_typed_korean(value) and (is_told or is_pair or (cue.is_strong and not cue.name.words.isascii())):
        return Form.WORD
    if cue.is_strong:
        return Form.NUMBERED if is_led or (digits > 1 and is_behind and not value.isupper()) else Form.ODD
    before = text[max(0, start - 48) : start]
    if is_pair or _ENTERED.search(before):
        return Form.NUMBERED
    is_meant = is_led and len(value) > 5 and before[-1:] not in ("`", "(") and not _HEX.fullmatch(value)
    return Form.ODD if is_meant else Form.STRANGE


def _trimmed(text: str, start: int, stop: int) -> int:
    """Return the end of a value without the sentence's punctuation."""
    value = re.sub(r"[.:]+$", "", text[start:stop])
    if _ENDS.match(text, start + len(value)):
        value = re.sub(r"[?!]+$", "", value)
    value = re.sub(r"\?{2,}$", "", value)
    if rest := _ATTACHED.match(text, start + len(value)):
        value += rest[0]
    if value.endswith(("*", "_")) and text[start - 1 : start] in ("*", "_"):
        value = value.rstrip("*_")
    return start + len(value)


def _find_below(text: str, stop: int, told: Container[int], *, is_strong: bool) -> Iterator[Secret]:
    """Yield a value in the next lines that have no cue: alone, announced, or one that can be nothing but a password."""
    last = text.find("\n\n", stop + 2, stop + BEHIND)
    for line in _LINE.finditer(text, stop, last if last > 0 else min(len(text), stop + BEHIND)):
        if line.start() in told or _CODE.search(line[0]):
            return
        ahead = _ALONE.match(text, line.start(), line.end())
        begin = ahead.end() if ahead else line.start()
        for token in _TOKEN.finditer(text, begin, line.end()):
            end, before = _trimmed(text, *token.span()), text[max(begin, token.start() - 48) : token.start()]
            looks = form(text[token.start() : end])
            if looks < Form.NUMBERED:
                continue
            is_alone = (not before or before.endswith((". ", "! "))) and not text[end : line.end()].strip(" .!?")
            is_told = is_alone or _LEAD.search(before) or _TOLD.match(text, end)
            least = Form.NUMBERED if is_strong and is_told else Form.STRANGE if is_strong or is_alone else Form.MADE
            if looks >= least:
                yield Secret("password", token.start(), end)


def _find_in_column(text: str, cue: Cue, first: int, last: int) -> Iterator[Secret]:
    """Yield the likely passwords in a table's column with a cue as its head."""
    head = text[first:last] if last - first < LONGEST_HEAD else ""
    sign = next((sign for sign in "|\t," if sign in head), None)
    if sign is None or not _HEAD.fullmatch(head) or sign in text[text.rfind("\n", 0, max(0, first - 1)) + 1 : first]:
        return
    column, columns = text[first : cue.start].count(sign), head.count(sign)
    for row in _LINE.finditer(text, last + 1):
        if re.fullmatch(r"[-+=|:\s]*", row[0]):
            continue
        if row[0].count(sign) != columns:
            return
        start = row.start() + sum(len(cell) + 1 for cell in row[0].split(sign)[:column])
        cell = row[0].split(sign)[column]
        value = cell.strip(" \t\r\"'`*")
        if value and not re.search(r"\s", value) and form(value):
            start += cell.index(value)
            yield Secret(cue.name.kind, start, start + len(value))
