"""Find PINs: numbers that open a door, a lock, a card or an account, near "pin", "door code" or 도어락. Pure."""

import re
from collections.abc import Iterator

from registry.text.privacy.cues import BEFORE, NO_SECRET, Cue, Secret
from registry.text.privacy.values import is_pin

_KEYS = "별표?|우물정?자?|샵|종|열쇠|호출"  # signs on keypads in Korea
PIN = re.compile(  # a number without a unit, with the signs of a keypad, in single digits or turns of a dial
    r"(?<![\w.,:/+#*@-])(?<!내선 |사번 )(?P<secret>(?P<keyed>"
    r"[*#]{0,2}\d{3,8}[*#]\d{0,6}#?|\d{1,2}[*#]\d{3,6}#?|\*#?\d{4,8}|#\d{3,6}[A-Z]|\d(?:[*#]\d){2,4}[*#]?"
    rf"|\d[\d ]{{2,8}} ?(?:{_KEYS})(?![가-힣])|(?:{_KEYS}) ?\d{{3,8}}(?: ?(?:{_KEYS}))?"
    r"|(?!\d(?:\.\d){3}(?!\.?\d))\d(?:[-·. ]\d){3,5}"  # no network address
    r"|(?i:(?:zero|oh|one|two|three|four|five|six|seven|eight|niner?|double|star|hash)\b[ ,]{0,2}){4,}(?<=\w)"
    r"|(?<![가-힣])(?:[공영일이삼사오육륙칠팔구][-· ,]?){4,8}(?<=[가-힣]))"
    r"|(?:G-|(?<!\[)[#*])?\d{4,8}"
    r"|(?=[A-Z\d]{5,8}\b)[A-Z\d]*[A-Z]\d+[A-Z][A-Z\d]*|(?P<lettered>\d{4,6}[A-Z]|[A-Z]\d{4,6})"
    r"|\d{3,4} \d{3,4}|\d{3}-\d{3}|\d{1,2}(?:-\d{1,2}){2,3}|\d{1,2}(?: [-–] \d{1,2}){2,3})"
    r"(?![A-Za-z0-9_%/]|[.,:-]\d|-(?!\s)|[줄점권쪽장](?![가-힣])"
    r"|\s?(?:digit|char|min|sec|hour|day|time|[mck]?m\b|ms|px|bit|byte|line|row|user|wide|high|tall|deep"
    r"|[자년월일분초시회번개원명건호층만~]))"
)
_OTHER_CODE = re.compile(  # the end of the text before a cue or number that is no PIN: "error code"
    r"error|(?:오류|에러|상태|응답|국가|지역|상품|쿠폰|할인|추천|초대|예약)(?: ?코드)?[은는이가]? ?\Z"
    r"|(?:exception|connections? with|colou?r|booking|course|exit|status|close|version|zip|postal|area|country|response"
    r"|http|source|promo|item|product)[ -]?\Z",
    re.IGNORECASE,
)
_PIN_ANNOUNCEMENT = re.compile(  # the end of the text between a cue and its number
    r"(?:(?:"
    r"\b(?:is|was|are|be|it['’]?s|left|right|needs|takes|to|then|set|es|ist|code|pin|with|now|press|enter|type)"
    r"|[:→(\[?–-]|[가-힣])"
    r"|^s?(?:,| from)?|^\s?=)\s{0,2}[\"'`“‘(]?\Z",
    re.IGNORECASE,
)
_CODE_NAME = re.compile("pin|puk|otp|code|comb|pass|key|lockbox")  # names of a number, which may follow immediately
_OTHER_NOUN = re.compile(  # the safe distance is …
    r" (?!code|comb|now|pad|key|on|for|to|at|by|of|in\b)[a-z]+ (?:is|was)\b"
)
_NEXT = re.compile(  # a further number of a list: and the attic is …
    r"(?:이고|이며|고|,|and|but|;)\s[\w\s]{1,16}(?:은|는|\b(?:is|are)|:)\s\Z|\d(?:에서|,? or| to) \Z"
)
_STATED = re.compile(r"(?:은|는|이|가)?\s?(?:is|was|:|=)?\s")  # after it, a number that looks like a year is a PIN
_STATED_LETTER = re.compile(r"(?:\b(?:is|was|be|to)|[:=은는이가]) ?\Z")  # precedes a number with a letter
_OTHER_NUMBER = re.compile(r"\d\d(?!\d*[년월일번])")
_IS_ANSWER = re.compile(r"\A[^\n]{0,50}\n\s?(?:(?:[^\W_]| ){1,12}[:\]])?[ >*-]{0,3}[\"'`]?\Z")  # said in the next line
_CALL = re.compile(r".*[A-Za-z_]\(")  # PIN_LOCKED(42301)


def find_pins(text: str, cue: Cue) -> Iterator[Secret]:
    """Yield the PINs after a cue ("pin", "door code"), or before it as in "448812 is your code"."""
    if _OTHER_CODE.search(text, max(0, cue.start - 24), cue.start):
        return
    first, known = max(text.rfind("\n", 0, cue.start) + 1, cue.start - 50), 0
    is_direct = not cue.name.words.isascii() or _CODE_NAME.search(cue.name.words) is not None
    last = cue.end + BEFORE
    for found in PIN.finditer(text, first, last + 24):  # numbers that begin before the end are matched whole
        value, (start, stop) = found["secret"], found.span("secret")
        if start >= last:
            return
        between = text[cue.end : start] if start >= cue.end else ""
        if _IS_ANSWER.search(between) and not text[stop : stop + 9].partition("\n")[0].strip("\"'`. "):
            yield Secret("pin", start, stop)
            return
        is_next = known > 0 and _NEXT.search(between) is not None
        is_more = is_next or len(value) == known or found["keyed"] is not None
        if _is_other(cue, found, between, is_direct=is_direct) or (_OTHER_NUMBER.search(between) and not is_more):
            continue
        if NO_SECRET.search(text, max(0, start - 48), start):
            continue
        if start >= cue.end:
            is_announced = _PIN_ANNOUNCEMENT.search(between) if between.strip(" ,s") else is_direct
            if is_announced or is_more:
                known = len(value)
                yield Secret("pin", start, stop)
        elif re.fullmatch(r"\s(?:is|as|for|on|into|at)\s(?:[\w']+\s){0,4}", text[stop : cue.start]):
            yield Secret("pin", start, stop)


def _is_other(cue: Cue, found: re.Match[str], between: str, *, is_direct: bool) -> bool:
    """Return True if a number is not a PIN: a year, an example, an error code, or a number in source code."""
    value, name = found["secret"], cue.name.words
    is_year = is_direct and value[:2] in ("19", "20") and _STATED.fullmatch(between) is not None
    if not (is_pin(value) or found["keyed"] or is_year) or re.search(r"[\n;={}<>]", between.strip(" =")):
        return True
    if _OTHER_CODE.search(between) or (not is_direct and _OTHER_NOUN.match(between)):
        return True
    if found["lettered"] and (name == "code" or not _STATED_LETTER.search(between)):
        return True
    in_code = (name == "code" and between in ("=", '": ')) or (name.isascii() and between == "(")
    return in_code or _CALL.fullmatch(between) is not None
