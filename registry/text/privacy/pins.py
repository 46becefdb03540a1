"""Find numbers that open a door, a lock, a card or an account: near "pin", "door code" or 도어락. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from registry.text.privacy.cues import BEFORE, Cue, Secret
from registry.text.privacy.values import is_pin

PIN = re.compile(  # a number without a unit, with the signs of a keypad, in single digits or turns of a dial
    r"(?<![\w.,:/+#*@-])(?<!내선 |사번 )(?P<secret>(?P<keyed>"
    r"[*#]{0,2}\d{3,8}[*#]\d{0,6}#?|\d{1,2}[*#]\d{3,6}#?|\*#?\d{4,8}|\d(?:[-·. ]\d){3,5}"
    r"|\d[\d ]{2,8} ?(?:별표?|우물정?자?|샵)(?![가-힣])"
    r"|(?i:(?:zero|oh|one|two|three|four|five|six|seven|eight|niner?|double|star|hash)\b[ ,]{0,2}){4,}(?<=\w)"
    r"|(?<![가-힣])(?:[공영일이삼사오육륙칠팔구][-· ,]?){4,8}(?<=[가-힣]))"
    r"|(?:G-|(?<!\[)[#*])?\d{4,8}"
    r"|(?=[A-Z\d]{5,8}\b)[A-Z\d]*[A-Z]\d+[A-Z][A-Z\d]*|\d{3,4} \d{3,4}|\d{3}-\d{3}|\d{1,2}(?:-\d{1,2}){2,3})"
    r"(?![A-Za-z0-9_%/]|[.,:-]\d|-(?!\s)|[줄점권쪽장](?![가-힣])|\s?(?:digit|char|min|sec|hour|day|time|[mck]?m\b|ms|px|bit|byte|line|row|user|[자년월일분초시회번개원명건호층만~]))"
)
_OTHER_CODE = re.compile(  # ends what stands before a cue that opens nothing: "error code"
    r"error|(?:exception|colou?r|booking|course|exit|status|close|version|zip|postal|area|country|response|http|source|promo|item"
    r"|product)[ -]?\Z",
    re.IGNORECASE,
)
_PIN_LEAD = re.compile(  # ends what stands between a cue and its number
    r"(?:(?:"
    r"\b(?:is|was|are|be|it['’]?s|left|right|needs|takes|to|then|set|es|ist|code|pin|with|now|press|enter|type)"
    r"|[:→(\[?–-]|[가-힣])"
    r"|^s?(?:,| from)?|^\s?=)\s{0,2}[\"'`“‘(]?\Z",
    re.IGNORECASE,
)
_CODE_NAME = re.compile("pin|puk|otp|code|comb|pass|key|lockbox")  # names of a number: it may follow at once
_OTHER_NOUN = re.compile(  # the safe distance is …
    r" (?!code|comb|now|pad|key|on|for|to|at|by|of|in\b)[a-z]+ (?:is|was)\b"
)
_OTHER_NUMBER = re.compile(r"\d\d(?!\d*[년월일])")
_IS_ANSWER = re.compile(r"\A[^\n]{0,50}\n\s?(?:[\w가-힣 ]{1,12}[:\]])?[ >*-]{0,3}[\"'`]?\Z")  # said in the next line
_CALL = re.compile(r".*[A-Za-z_]\(")  # PIN_LOCKED(42301)
_PIN_TOLD = re.compile(r"[\"'`”’)]?\s?[가-힣]")  # a Korean particle or verb behind a number


def find_pins(text: str, cue: Cue) -> Iterator[Secret]:
    """Yield the numbers behind a cue ("pin", "door code"), or ahead of it in "448812 is your code"."""
    if _OTHER_CODE.search(text, max(0, cue.start - 24), cue.start):
        return
    first, known = max(text.rfind("\n", 0, cue.start) + 1, cue.start - 50), 0
    is_direct = not cue.name.words.isascii() or _CODE_NAME.search(cue.name.words) is not None
    for found in PIN.finditer(text, first, cue.end + BEFORE):
        value, (start, stop) = found["secret"], found.span("secret")
        between = text[cue.end : start] if start >= cue.end else ""
        if _IS_ANSWER.search(between) and not text[stop : stop + 9].partition("\n")[0].strip("\"'`. "):
            yield Secret("pin", start, stop)
            return
        if not is_pin(value) or re.search(r"[\n;={}<>]", between.strip(" =")):
            continue
        if not is_direct and _OTHER_NOUN.match(between):
            continue
        if _CALL.fullmatch(between) or (cue.name.words.isascii() and between == "("):
            continue
        if _OTHER_NUMBER.search(between) and len(value) != known and not found["keyed"]:  # it belongs to that
            continue
        if start >= cue.end:
            is_led = _PIN_LEAD.search(between) if between.strip(" ,s") else is_direct
            if found["keyed"] or is_led or len(value) == known or _PIN_TOLD.match(text, stop):
                known = len(value)
                yield Secret("pin", start, stop)
        elif re.fullmatch(r"\s(?:is|as|for|on|into|at)\s(?:[\w']+\s){0,4}", text[stop : cue.start]):
            yield Secret("pin", start, stop)
