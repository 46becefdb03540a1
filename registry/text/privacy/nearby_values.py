"""Find values near the name of a secret or a word for a login: an odder value needs less evidence of a relation.

A value is assigned to a name, in code too (`password = …`, 비밀번호는 …), or it is near a cue ("password", 비번,
"login") in a sentence, a table or the next line. Plain words are secrets only in the sentences of `rules.toml`.
"""

import re
from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from registry.text.privacy.cues import BEFORE, NO_SECRET, Cue, Secret, find_cues
from registry.text.privacy.pins import PIN, find_pins
from registry.text.privacy.rules import Name
from registry.text.privacy.values import (
    Form,
    form,
    is_code,
    is_generated,
    is_name,
    is_password,
    is_pin,
    is_random,
    is_short_hex,
    is_typed_korean,
    is_unmistakable,
    is_word,
)

BEHIND = 160  # characters of a line after a cue that are searched: about a long sentence
REACH = 80  # characters between a name and a generated value after it
NEXT = 30  # characters between a generated value and a name after it
MOST_CUES = 50  # cues compared with the values of a line; a sentence has a few
LONGEST_LIST = 4000  # characters of a list of digests that are searched for its head: about 60 lines
LONGEST_SKIPPED = 1000  # characters of a value that is searched for cues once more

_ASSIGNED = re.compile(  # the rest of a name, then a sign of assignment in the usual notations, a verb or a particle
    r"(?P<more>[A-Za-z0-9_-]{0,24})(?P<call>\s?\([^()\n]{1,20}\))?\\*[\"'`\[\])*]{0,4}"
    r"(?:[ \t]{0,16}(?::\s?[&A-Za-z][\w&'.|?<> ]{2,20}=(?=\s?[brfuN@]?[\"'`])|:=|=>|={1,3}|\.{3,}|!==?|\?=|\|\||\?\?"
    r"|:(?:\*\*(?=\s))?|[：＝]|→|(?<!\) )->|(?<=\s)[|│–—-](?=\s))[ \t]{0,3}"
    r"|(?P<listed>(?:[ \t]{0,3},|\.\w{1,20}\(|\()\s?(?=[brfuN@]?[\"']))|(?P<plain>[ \t]{1,12})"
    r"|[ \t]{1,2}(?:is|are|was)[ \t]{1,2}:?[ \t]?"
    r"|\s?(?:값\s?)?(?:는|은|가|이|를|을|만|란)(?:[ \t]{1,2}:?[ \t]?|:[ \t]?))"
    r"(?:\([a-z ]{1,24}\) -> |string\(\d+\) "
    r"|(?:Encoding\.\w+\.GetBytes|(?:new )?TextEncoder\(\)\.encode|Buffer\.from|bytes|Some)\()?"
    r"(?:[brfuN@]?\\*(?P<quote>[\"'`]|\*\*)(?P<quoted>[^\s\"'`\\]{5,})\\*(?P=quote)"
    r"(?! (?:폴더|파일|시트|메뉴|버튼|화면))"
    r"|(?P<bare>(?:\\,|[^\s\"'`,;(){}<>\[\]\\\u3000-\u9fff\uac00-\ud7a3]){6,}+)(?![(\[]))"
)
_DESCRIBES = re.compile(  # the end of a name whose value only describes the secret
    r"(?:hash(?:ed)?|type|name|field|file|path|ur[il]|id|length|count|size|version|expir\w*|limit|policy|format|class"
    r"|digest|alias|endpoint|i[sz](?:er?|ed|ation)|variable|env|label|hint|placeholder|prompt|column|header|param|regex|pattern|message)s?$",
    re.IGNORECASE,
)
_CODE = re.compile(  # a line of code, a setting, a command or a log: only assigned values count there
    r"[{}\\]|<set to|;\s*$|[A-Za-z_]\w{0,40}\((?![가-힣])|[=!]="
    r"|^\s*(?:[@+$%|]|[\"'][\w.-]*[\"']\s?[:,]|\S+ = [A-Za-z(])",
    re.MULTILINE,
)
_TOKEN = re.compile(
    r"(?<![\w가-힣])(?:[A-Za-z0-9]+[!@#$^&*][가-힣]{2,}|\d+[가-힣]{2,}[!@#$%^&*]+[가-힣]{2,}"
    r"|[가-힣]{2,}[!@#$%^&*][A-Za-z0-9]+|[A-Za-z]{3,}[가-힣]{2,}\d+|\d{1,3}[가-힣]\d{4})[!@#$%^&*]*"
    r"|(?![~*]|(?:admin|root|guest|sa|pi)/)(?<![A-Za-z])[^\s\"'`“”‘’()<>\[\]{},;\u3000-\u9fff\uac00-\ud7a3]{4,}"
    r"|(?<![가-힣])[가-힣]{2,12}\d{1,8}+[!@#$%^&*?]{0,3}+(?!\.\d|에서|의|자리|글자)"  # no place, no length
)
_ANNOUNCEMENT = re.compile(  # says that a value follows
    r"(?:\b(?:is|are|was|were|be|it['’]?s|as|to|says?|use[ds]?|try|with|then|now|still|just|always|[a-z]{4,}ly|mine)"
    r"[:,]?|[:=→]|[-=]>|\s[-–—/|])[ \t]{1,2}[\"'`“‘(*]{0,3}\Z|[\"'`“‘(]\Z",
    re.IGNORECASE,
)
_PLACE = re.compile(  # precedes a product, a place or a thing
    r"\b(?:for|on|in|at|from|by|of|via|vs\.?|than|since|until|into|per|an?|the|this|that)\s[\"'`“‘(]?\Z"
)
_ANOTHER = re.compile(  # between two secrets
    r"(?:\b(?:or|one|then|and|not|of|than|to)|아니면|또는|혹은|아니라|말고|에서)\s[\"'`“‘(]?\Z"
)
_PRONOUN = re.compile(
    r"\b(?:it['’]?s|it (?:is|was)|(?:new |old )?one is|(?:set|changed|reset) (?:it|mine|that)(?: back)? to)"
    r"(?: [a-z]{3,12}ly| now| just| still)?:? [\"'`“‘]?\Z",
    re.IGNORECASE,
)
_PARTICLE = re.compile(  # a Korean particle or verb after a value, except those of place, time or company
    r"[\"'`”’)]?\s?(?![랑와과도의용]|에[서는도게]?(?![가-힣])|에서|부터|까지|처럼|버전)[가-힣]"
)
_PAIR = re.compile(r"(?:\S[ \t]{1,2}[-–—/|]|@[\w.-]+(?:,| and| with)|\blogin:)[ \t]{1,2}\Z|[:/]\Z")  # kim / …
_GENERATED = re.compile(  # a Korean particle may follow it at once
    r"(?<![\w./+@&#-])(?!AAAA[BC]3Nz)(?:0x)?[A-Za-z0-9+/_-]{20,}+={0,2}(?![./#]|(?![가-힣])\w)"
)
_LABEL = re.compile(  # of a value, except those that say nothing about it: value, default, data, …
    r"(?<![\w.-])(?:(?<![a-z가-힣] )|(?=[\w.-]+\s?=))"
    r"(?!(?:value|val|default|data|content|body|string|text|result)\b)([\w.-]+)[\"'\])]{0,3}\s?[:=]\s?[\"'`(\[]{0,2}\Z"
)
_RUN = re.compile("[A-Za-z0-9]{16}")
_IMAGE = re.compile(r"\w/[\w.-]+:\Z")  # registry.example/auth-api:, ahead of a commit
_LOGGED = re.compile(r"(?:Failed|Accepted) \Z")  # ahead of "password for … from …" in a log
_HASHED = re.compile(
    r"sha|md5|hash|digest|etag|fingerprint|commit|커밋|해시|\brefs?\b|(?:rsa|dsa|gpg|pgp)\b"
    r"|\bblob\b|checked out|expected|actual",
    re.IGNORECASE,
)
_LISTED = re.compile(  # a file after its digest, as git submodule and sha256sum print it, or a commit's subject
    r"[ +-]{0,4}(?P<digest>[0-9a-fA-F-]{32,})[ \t]{1,4}(?:\*?[\w-]*[/._][\w.-]|(?<=[0-9a-f]{40} )[\w(\[])"
)
_GIT = re.compile(r"\bgit (?:rev-parse|hash-object|merge-base|ls-tree|log|show|rev-list|cat-file|write-tree)\b")
_BELOW = re.compile(r"(?:SPEC )?CHECKSUMS:\r?\n(?:[ \t]+[^\s:]+: [0-9a-f]{32,}\r?\n)*[ \t]+[^\s:]+: ")  # Podfile.lock
_COMPUTER = re.compile("(?:LAPTOP|DESKTOP|WIN|MBP)-[A-Z0-9]{6,11}")
_WIFI = re.compile(r"[A-Za-z_-]*[_-](?:5|2\.?4)G(?:Hz)?(?:[_-]\w{1,6})?")
_PUBLIC = re.compile(r"공개 ?키|public[ _-]?key", re.IGNORECASE)
_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RESOURCES = "secret", "token", "credential"
_RESOURCE = re.compile(r"[a-z]{2,}\d{0,2}(?:-(?:[a-z]{2,}\d{0,2}|v?\d{1,4}))+")  # db-creds-v3, a secret's own name
_HEX = re.compile("[0-9a-f-]+")
_COLOUR = re.compile(r"#(?=\d*[A-Fa-f])(?:[0-9A-Fa-f]{3,4}){1,2}")  # of a login page, say
_LINE = re.compile(r"[^\n]+")
_HEAD = re.compile(r"[ *\"']*[\w.-]+(?: [\w.-]+){0,2}[ *\"']*")  # a cell of a table's first line


def find_nearby(text: str, names: Sequence[Name], *, has_unmistakable: bool) -> Iterator[Secret]:
    """Yield the likely secrets near the names, the surest first, then passwords that need no name."""
    cues = find_cues(text, names)
    lines: dict[int, list[Cue]] = {}
    for cue in cues:
        lines.setdefault(text.rfind("\n", 0, cue.start) + 1, []).append(cue)
    in_lock_file = "SPEC CHECKSUMS:" in text  # names of packages there end in Auth
    for found in _find_assigned(text, cues):
        if not in_lock_file or not _is_digest(text, found, lines):
            yield found
    strong = {start for start, of_line in lines.items() if any(cue.is_strong for cue in of_line)}
    in_lines = (_find_in_line(text, start, of_line[:MOST_CUES], strong) for start, of_line in lines.items())
    for found in chain(_find_generated(text, cues), *in_lines):
        if not _is_digest(text, found, lines):
            yield found
    for line in _LINE.finditer(text) if has_unmistakable else ():
        if not _CODE.search(line[0]):
            for start, stop in _values(text, line.start(), line.end()):
                if is_unmistakable(text[start:stop]):
                    yield Secret("password", start, stop)


def _is_digest(text: str, found: Secret, cued: Container[int]) -> bool:
    """Return True for a digest in a list: before a file name, or below CHECKSUMS in a lock file.

    Return False if the line above has a cue, unless that line is in the list, too.
    """
    if found.end - found.start < 32 or not _HEX.fullmatch(text[found.start : found.end].lower().lstrip("+-")):
        return False
    line = text.rfind("\n", 0, found.start) + 1
    if (listed := _LISTED.match(text, line)) and listed.end("digest") == found.end:
        above = text.rfind("\n", 0, max(0, line - 1)) + 1
        is_of_digests = _LISTED.match(text, above) or _HASHED.search(text, above, line)
        return above == line or above not in cued or is_of_digests is not None
    if found.start == line and _GIT.search(text, text.rfind("\n", 0, max(0, line - 1)) + 1, line):
        return True
    head = text.rfind("CHECKSUMS:", max(0, line - LONGEST_LIST), line)
    return head >= 0 and _BELOW.fullmatch(text, text.rfind("\n", 0, head) + 1, found.start) is not None


def _find_assigned(text: str, cues: Sequence[Cue]) -> Iterator[Secret]:
    behind = 0
    for cue in cues:
        if cue.start >= behind and not cue.name.is_cue and (found := _ASSIGNED.match(text, cue.end)):
            behind = found.end() if len(found[0]) > LONGEST_SKIPPED else 0
            group = "quoted" if found["quoted"] else "bare"
            is_verb = cue.name.words == "pass" and found["plain"] and not cue.is_strong
            is_quoted = found["quote"] not in (None, "**")  # bold text may be anything
            if not is_verb and _is_assigned(found, cue.name, found[group], is_quoted=is_quoted):
                yield Secret(cue.name.kind, *found.span(group))


def _is_assigned(found: re.Match[str], name: Name, value: str, *, is_quoted: bool) -> bool:
    """Return True if the match is an assignment, and its value looks like the secret of the name."""
    is_call = found["call"] is not None and found["call"][0] == "(" and name.words.isascii()
    if is_call or _DESCRIBES.search(found["more"]):
        return False
    is_plain = found["plain"] is not None and not is_quoted
    if name.is_whole_word and (found["more"] or (is_plain and name.words != "pw")):
        return False
    if found["plain"] and name.words in _RESOURCES and not _UUID.fullmatch(value) and _RESOURCE.fullmatch(value):
        return False
    if is_plain:
        is_key = name.words != "session id" and _UUID.fullmatch(value) is not None
        return form(value) >= Form.NUMBERED or is_key or (name.kind == "password" and is_short_hex(value))
    if (found["listed"] and is_name(value)) or ((found["listed"] or found["plain"]) and is_code(value)):
        return False
    return is_secret(name, value, is_quoted=is_quoted)


def describes_secret(name: str) -> bool:
    """Return True for a name whose value only describes a secret: `token_type`."""
    return _DESCRIBES.search(name) is not None


def is_secret(name: Name, value: str, *, is_quoted: bool) -> bool:
    """Return True if a value that is assigned to a name looks like its secret."""
    if value.startswith(("arn:", "urn:")):  # names, in quotes too
        return False
    if name.needs_long:
        return form(value) is Form.GENERATED
    if _UUID.fullmatch(value):
        return name.words != "session id"
    if name.kind == "password" and is_short_hex(value):
        return True
    if not is_quoted and is_code(value):
        return False
    if name.kind == "password":
        if is_quoted and is_word(value.replace(".", "-", 1)):
            return True
        return is_password(value) or form(value) >= Form.NUMBERED or is_typed_korean(value)
    is_phrase = name.words.startswith("secret") or (name.words.startswith("signing") and value.count("-") > 3)
    is_chosen = form(value) >= (Form.NUMBERED if is_phrase else Form.ODD)
    return len(value) >= 8 and (is_chosen or (is_random(value) and not is_name(value)))


def _find_generated(text: str, cues: Sequence[Cue]) -> Iterator[Secret]:
    """Yield generated values near a name of a secret, in code too, unless their own label names something else."""
    near = [cue for cue in cues if cue.name.kind != "pin"]
    starts = [cue.start for cue in near]
    for token in _GENERATED.finditer(text) if near else ():
        start, stop = token.span()
        if not _RUN.search(token[0]) or not is_generated(token[0]) or NO_SECRET.search(text, max(0, start - 60), start):
            continue
        line = text[max(text.rfind("\n", 0, start) + 1, start - BEHIND) : start]
        if _HEX.fullmatch(token[0].lower()) and (len(token[0]) < 32 or _HASHED.search(line) or _IMAGE.search(line)):
            continue
        label = _LABEL.search(text, max(0, start - 60), start)
        for cue in near[bisect_left(starts, start - BEFORE) : bisect_left(starts, stop + NEXT)]:
            if label and (cue.end <= label.start() or cue.start >= stop):
                continue  # the label decides
            is_behind = 0 <= start - cue.end <= REACH and text.count("\n", cue.end, start) < 2
            if is_behind or (stop <= cue.start and "\n" not in text[stop : cue.start] and not _PUBLIC.search(line)):
                yield Secret("secret", start, stop)
                break


def _find_in_line(text: str, start: int, cues: Sequence[Cue], strong: Container[int]) -> Iterator[Secret]:
    """Yield the secrets in a line with cues, in the lines below it, and in the column of a table."""
    stop = text.find("\n", cues[-1].end)
    stop = len(text) if stop < 0 else stop
    first = max(start, text.rfind(" ", start, max(start, cues[0].start - BEFORE)))  # do not cut a value
    last = min(stop, cues[-1].end + BEHIND)
    for cue in cues:
        if cue.name.kind == "pin" or (cue.name.kind == "password" and not cue.name.is_cue):
            yield from _find_in_column(text, cue, start, stop)
            yield from find_pins(text, cue)
    if _CODE.search(text, first, last):
        return
    cues = [cue for cue in cues if cue.name.kind != "pin" and not _is_part_of_name(text, cue)]
    if cues:
        yield from _find_in_sentence(text, first, last, cues)
    if of_passwords := [cue.is_strong for cue in cues if cue.name.kind == "password"]:
        yield from _find_below(text, stop, strong, is_strong=any(of_passwords))


def _is_part_of_name(text: str, cue: Cue) -> bool:
    """Return True if a cue is a part of a name in code: `password_age`, `user.password`."""
    is_password = cue.name.kind == "password" and cue.name.words.isascii()
    is_pair = text[max(0, cue.start - 3) : cue.start].lower() == "id/"
    behind = text[cue.end : cue.end + 12]
    if re.match(r" (?:managers?|polic|field|generator|length|strength|hash)", behind):
        return True
    if is_password and _LOGGED.search(text, max(0, cue.start - 9), cue.start):
        return True
    return (
        behind[:1] in ("-", "_")
        or (cue.name.words.isascii() and re.match("[A-Z][a-z]", behind) is not None)
        or (is_password and not is_pair and text[cue.start - 1 : cue.start] in ("_", ".", "$", "/"))
    )


def _find_in_sentence(text: str, first: int, last: int, cues: Sequence[Cue]) -> Iterator[Secret]:
    surest, behind = sorted(cues, key=lambda cue: cue.name.is_cue), last
    for start, stop in _values(text, first, last):
        if NO_SECRET.search(text[max(first, start - 48) : start]):
            continue
        odd, tie = form(text[start:stop]), _tie(text, first, start, stop)
        is_another = odd >= Form.NUMBERED and _ANOTHER.search(text, max(behind, start - 12), start) is not None
        for cue in surest:
            if is_another or odd >= _needed(text, start, stop, cue, tie):
                yield Secret(cue.name.kind, start, stop)
                behind = stop
                break


def _values(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the values that begin between two positions and may be passwords."""
    for token in _TOKEN.finditer(text, first):
        if token.start() >= last:
            return
        value = token[0].rstrip(".:")  # the sentence's own punctuation
        if text.endswith("**", 0, token.start()):
            value = value.removesuffix("**")  # bold
        if value.endswith("??"):
            value = value.rstrip("?")
        if not _COLOUR.fullmatch(value) and (form(value) >= Form.NUMBERED or is_typed_korean(value)):
            yield token.start(), token.start() + len(value)


class _Tie(NamedTuple):
    """The relation of a value to a nearby name, by the words around the value."""

    has_particle: bool
    """A Korean particle or verb follows the value."""
    is_announced: bool
    """A word that announces a value precedes it: "is", "to"."""
    is_pair: bool
    """It follows a user's name: kim / …"""
    is_explicit: bool
    """A pronoun for the secret precedes it: "it's …"."""
    is_place: bool
    """A preposition or an article precedes it, so it is a place or a product."""


def _tie(text: str, first: int, start: int, stop: int) -> _Tie:
    before = text[max(first, start - 48) : start]
    return _Tie(
        has_particle=_PARTICLE.match(text, stop) is not None,
        is_announced=_ANNOUNCEMENT.search(before) is not None,
        is_pair=_PAIR.search(before) is not None,
        is_explicit=_PRONOUN.search(before) is not None,
        is_place=_PLACE.search(before) is not None,
    )


def _needed(text: str, start: int, stop: int, cue: Cue, tie: _Tie) -> Form:
    """Return the least form that makes a value the secret of a cue."""
    value, is_behind = text[start:stop], start >= cue.end
    if not (cue.end <= start <= cue.end + BEHIND or stop <= cue.start <= stop + BEFORE):
        return Form.NEVER
    if cue.name.kind == "secret":
        is_digest = value in (value.lower(), value.upper()) and (not cue.is_strong or _HEX.fullmatch(value.lower()))
        is_public = not is_behind and _PUBLIC.search(text, max(0, start - BEFORE), start)
        return Form.NEVER if is_digest or is_public else Form.GENERATED
    is_pair = tie.is_pair and (is_behind or (tie.has_particle and text[start - 1] == " "))
    if is_typed_korean(value) and (tie.has_particle or is_pair or not cue.name.words.isascii()):
        return Form.WORD
    if is_behind and tie.is_place:
        return Form.GENERATED
    # names of computers and Wi-Fi networks look like passwords, so they need a strong cue
    if _COMPUTER.fullmatch(value) and not (is_behind and cue.is_strong):
        return Form.NEVER
    is_announced = tie.has_particle or tie.is_announced or 0 <= start - cue.end < 3
    if cue.is_strong:
        is_likely = is_behind and sum(map(str.isdigit, value)) > 1
        return Form.NUMBERED if is_announced or is_likely else Form.ODD
    if is_pair or tie.is_explicit:
        return Form.NUMBERED
    if _WIFI.fullmatch(value):
        return Form.NEVER
    return Form.ODD if is_announced else Form.STRANGE


def _find_below(text: str, stop: int, strong: Container[int], *, is_strong: bool) -> Iterator[Secret]:
    """Yield the passwords in the next lines: values alone in a line, announced, or of the form STRANGE."""
    for line in _LINE.finditer(text, stop, min(len(text), stop + BEHIND)):
        if line.start() in strong or _CODE.search(line[0]):
            return
        for start, end in _values(text, line.start(), line.end()):
            before = text[max(line.start(), start - 48) : start]
            is_alone = not before.strip(" >*-") and not text[end : line.end()].strip(" .!?")
            if _HEX.fullmatch(text[start:end]) and not is_alone:
                continue  # a digest, a commit
            is_announced = is_alone or _ANNOUNCEMENT.search(before) or _PARTICLE.match(text, end)
            needed = Form.NUMBERED if is_strong and is_announced else Form.STRANGE
            if form(text[start:end]) >= needed and not NO_SECRET.search(before):
                yield Secret("password", start, end)


def _find_in_column(text: str, cue: Cue, first: int, last: int) -> Iterator[Secret]:
    """Yield the likely passwords or PINs in a table's column whose head is a cue."""
    head = text[first:last]
    sign = next((sign for sign in "|\t," if sign in head), None)
    if sign is None or not all(map(_HEAD.fullmatch, head.strip(" |\r").split(sign))):
        return
    if sign in text[text.rfind("\n", 0, max(0, first - 1)) + 1 : first]:  # a row, not the head
        return
    column, columns = text[first : cue.start].count(sign), head.count(sign)
    for row in _LINE.finditer(text, last + 1):
        if not re.search(r"\w", row[0]):
            continue
        cells = row[0].split(sign)
        if len(cells) != columns + 1:
            return
        value = cells[column].strip(" \t\r\"'`*")
        is_number = cue.name.words != "code" and PIN.fullmatch(value) and is_pin(value)
        if is_number if cue.name.kind == "pin" else form(value) > Form.NONE:
            start = text.index(value, row.start() + sum(len(cell) + 1 for cell in cells[:column]))
            yield Secret(cue.name.kind, start, start + len(value))
