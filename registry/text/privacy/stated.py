"""Find passwords that a sentence states ("the password is …", "use … as the passphrase", 비번은 …야), however plain."""

from __future__ import annotations

import re
from collections.abc import Iterator

from registry.text.privacy.likeness import is_placeholder, is_remark, is_typed_korean, is_word

BEFORE = 80
"""Characters before a cue in which the user's name or the value is searched."""
_OPEN = r"[ \t]{1,2}[\"'`“‘*]{0,3}"
_VALUE = r"(?P<value>(?![~*(:])[!-~]{4,64})"
_BE = (
    r"(?:is|was|are|ist|lautet|es|est|,?(?: just| then)? ?(?:enter|type|use|put|try|say)"
    r"|(?:will|would|should|must|has to|used to|to) be|became|equals|reads)"
    r"(?: (?:now|still|just|literally|always|currently|simply|actually|probably|apparently|again|only|set to|changed to"
    r"|reset to|back to|called|this|like|as follows|definitely|also)){0,2}[:,]?"
)
_PLACE = r"(?: (?:for|to|on|of|in|at|from|there|here|we|you|i|he|she|they|that)\b[^\n.:;=(){}<>]{0,60}?)?"
_BEHIND = re.compile(rf"s?(?:{_PLACE} {_BE}| for [\w@.'-]{{2,30}}:){_OPEN}{_VALUE}", re.IGNORECASE)
_FROM = re.compile(rf"s? from{_OPEN}(?P<value>[!-~]{{4,64}}?)[\"'`”’*]{{0,3}} to ", re.IGNORECASE)
_TO = re.compile(rf"s?{_PLACE}(?: back)? to{_OPEN}{_VALUE}", re.IGNORECASE)
_CHANGED = re.compile(
    rf"s?{_PLACE}(?: (?:has been|was|got|is|were))? (?:chang|switch|updat|rotat|set|reset)\w*"
    rf"(?: to|[,;]? (?:now )?it['’]?s(?: now)?){_OPEN}{_VALUE}",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:set|chang\w{1,3}|switch\w{0,3}|reset|updat\w{1,3}|rotat\w{1,3}|made)\s(?:[\w'’-]{1,20}\s){0,4}\Z",
    re.IGNORECASE,
)
_PAIRED = re.compile(rf"(?:\s(?:is|was))?\s?:?{_OPEN}{_VALUE}")
_USER = re.compile(
    r"\b(?:user(?:[ _]?name)?|log ?in|account|acct|id|email|as(?= (?!the|an?|my|our|your)))\s?[:=]?\s?(?:is\s)?"
    r"[\"'`]?[\w.@+-]{2,40}[\"'`]?[,;]?\s(?:(?:/|and|with|the|then)\s){0,2}\Z",
    re.IGNORECASE,
)
_NOUN = re.compile(
    r"(?:\b(?:the|my|our|your|his|her|their|its|temp|temporary|new|old|root|admin|user|default|current|same|sudo|zip|db|vpn"
    r"|wi-?fi|guest|test)|[,;/])\s\Z",
    re.IGNORECASE,
)
_USED_AS = re.compile(
    r"(?:(?P<verb>\b(?:us(?:e|ed|ing)|tr(?:y|ied|ying)|enter(?:ed|ing)?|typ(?:ed?|ing)|put|gave|give|pick(?:ed)?"
    r"|chose|choose))|\S)[ ][\"'`“‘*]{0,3}(?P<value>(?![~*(])[!-~]{4,64}?)[\"'`”’*]{0,3} (?:as|for)"
    r" (?:(?:the|my|our|your|its|his|her|their|an?) )?(?:[\w-]{1,20} ){0,2}\Z",
    re.IGNORECASE,
)
_ABOUT = re.compile(  # "password manager": the sentence is about something else
    r"[ _-]?(?:manager|polic|field|hash|hint|reset(?! to)|prompt|protect|generat|stor|strateg|rule|requirement|length"
    r"|strength|check|valid|input|box|column|file|change(?!d)|rotat(?!ed)|auth|encod|encrypt|scheme|algorithm|format"
    r"|type|variable|param|rate|entry|form|page|screen|dialog|confirm|recover|less|-)",
    re.IGNORECASE,
)
_ENDS = re.compile(  # a plain word is a value only at the end of its clause
    r"[\"'”’`*]{0,3}[ \t]*(?:[.,;!?)](?!\w)|[-–—][ \t]|\r?\n|\Z|(?:and|but|so|then|if|when|in case|until|from|since"
    r"|because|though|for now|please|pls|thx|lol|haha|btw|on|yesterday|today|again|everywhere|after|before|while|right"
    r"|just|fyi|which|works?|it|i|we|you|now|still|for|not|instead|old)\b)",
    re.IGNORECASE,
)
_CODE_LINE = re.compile(r"[{}<>\\]|;\s*$|\w\(|[=!]=|::|:=|\]\(|\w=\S|^\s*(?:[#@+$%|]|//|/?\*(?!\*))", re.MULTILINE)
_OTHER = re.compile(  # an address, a path, a file, a field
    r"(?:https?:|[/.$%<{\[(-])|.*(?:://|\w@[\w-]+\.\w|\w\(|\w\[)|[a-z_]+(?:\.[a-z_]+)+$|[\w./-]+\.(?:[jt]sx?|py|go|rs|txt|json"
    r"|ya?ml|toml|env|md|ini|cfg|conf|pem|key|sh|sql|html?|kdbx?|com|org|net|io)$"
    r"|(?:utf|sha|aes|rsa|base|md|bcrypt|argon|pbkdf|oauth|http|ipv)-?\d*|\d{1,3}(?:\.\d+)?[a-z%+-]*$|(?:1|last)pass(?:word)?$",
    re.IGNORECASE,
)
_KOREAN_BEHIND = re.compile(
    r"(?:번호)?(?:은|는|이|가|을|를|만)?(?=[\s:=])"
    r"(?:\s(?:그냥|걍|아직|아직도|지금|지금은|이제|새로|현재|임시로|다시|원래|여전히|아마|전부|다)){0,2}\s?[:=]?\s?"
    r"[\"'`“‘]?(?P<value>[가-힣]{2,12}?(?:\d{1,8})?[!@#$%^&*?]{0,3}|[!-~]{4,40}?)[\"'`”’]?"
    r"(?:\s?(?:이?야|입니다|이에요|예요|에요|이?거든|이?라고|이래|인데|이고|임|였|맞)(?![가-힣]{0,2}\s?아니)"
    r"|\s(?:이거|이걸|요거|이렇게)\s?(?:넣|입력|치|쓰|누르)"
    r"|\s?으?로\s?(?:바꿨|바꾸|바뀌|바뀐|변경[했하됐해]|설정[했해하]|해[놨뒀놓둠둔 ]|했|정했|통일"
    r"|걸[려어었]|잠[가갔겼])"
    r"|(?<=[!-~])\s?으?로\s?(?:쓰|써|들어가|접속|로그인))"
)
_KOREAN_BEFORE = re.compile(
    r"(?P<value>[!-~]{4,40}|[가-힣]{2,12}\d{1,8}[!@#$%^&*?]{0,3})[\"'`”’]?\s?(?:이게|이거|요게|이|가)\s(?:[가-힣]{1,6}\s){0,2}\Z"
)
_KOREAN_LISTED = re.compile(
    r"(?:번호)?\s?[:=]\s?(?P<value>[가-힣]{3,12}\d{0,8}[!@#$%^&*?]{0,3})[ \t]*(?:\n|\Z)"
    r"|[을를]\s\S{1,40}\s?에서\s(?P<to>[!-~]{4,40}?)\s?으?로\s?(?:바꿔|바꾸|바꿨|변경)"
    r"|\((?P<within>(?=[^()\s]*\d)[!-~]{5,40}?)\)"
)
_KOREAN_NEAR = re.compile(  # a Korean word with digits, farther on in the clause
    r"[^\n.;=(){}<>]{0,40}?\s[\"'`“‘]?(?P<value>[가-힣]{2,12}\d{1,8}[!@#$%^&*?]{0,3})[\"'`”’]?"
    r"\s?(?:이거|이걸|이라고|라고|이야|입니다|이에요|넣|입력하|치면|치고|로 (?:열|들어|바꿨|변경했|설정|해[놨뒀]))"
)
_KOREAN_IS = re.compile(r"(?:번호)?\s?(?:이?야|인데|입니다|이에요|예요|임|이?고|이?라|맞)")
_KOREAN_REMARK = re.compile(  # a word that tells something about a password
    r"아니|아닌|필수|필요|자리|이상|이하|영문|숫자|특수|문자|변경|오류|에러|문제|저장|암호|해시|평문|동일|그대|뭐|무엇|무슨|어디|어떤|누구|언제|없|있"
    r"|모르|모름|틀|맞|이거|그거|저거|기본|초기|설정|입력|확인|다름|다르|같|내일|나중|보안|필드|컬럼|값|이름|정책|규칙|랜덤|무작위|임의|임시|만료"
    r"|재설정|공유|관리|안전|위험|노출|유출|로그|화면|방식|형식|방법|자동|수동|강제|직접|이메일|메일|토큰|변수|타입|버전|영어|한글|한국어|별도|실제|스스로"
    r"|마음대|제대|앞으|하나|비밀|일치|찾기|방금|최근|아까|어제|오늘|제가|내가|우리|사용|관련|복잡|간단|어려|쉬|다른|새|환경|파일|테이블|단계|페이지|코드"
    r"|되|됐|했|하는|하게|할|한다|하고|라는|만들|바꾸|바꿔|바뀌|물어|알려|보내|말해|적혀|걸$|키$|아무|것|거$|적$|게$|서$|는$|은$|을$|를$|지$|면$|도$|요$|다$"
)


def _is_said(value: str, text: str, start: int, stop: int) -> bool:
    """Return whether a word in the place of a password may be one."""
    if len(value) < 4 or is_placeholder(value) or _OTHER.match(value) or is_remark(value.strip("@!?")):
        return False
    if re.fullmatch(r"[A-Za-z'’]+|[a-z]+(?:[-_][a-z]+)+", value):  # a plain word
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", stop)
        return (
            not any(part and (is_remark(part.lower()) or len(part) < 3) for part in re.split("[-_]", value))
            and all(is_word(part.lower()) for part in re.split("[-_]", value) if len(part) > 4)
            and len(value) > 4
            and _ENDS.match(text, stop) is not None
            and not _CODE_LINE.search(text, first, last if last >= 0 else len(text))
        )
    return not value.isdigit()


def _trimmed(text: str, start: int, stop: int) -> int:
    """Return the end of a value without quotes and the sentence's punctuation."""
    return start + len(re.sub(r"(?:[\"'`”’)\]}>*,;:.]|(?<=[a-z])[!?])+$", "", text[start:stop]))


def find_stated(text: str, at: int, end: int, *, is_pass: bool) -> Iterator[tuple[int, int]]:
    """Yield the places of values that are stated around a password's name from `at` to `end`."""
    before = text[max(0, at - BEFORE) : at].rpartition("\n")[2]
    if not text[end - 1].isascii():
        yield from _find_korean(text, at, end, before)
        return
    if _ABOUT.match(text, end) or text[at - 1 : at] in ("_", "-", ".", "$", "/"):
        return
    if (found := _FROM.match(text, end)) and not found["value"].isalpha() and _is_said(found["value"], text, end, end):
        yield found.span("value")
    found = _PAIRED.match(text, end)
    if found and not _USER.search(before):
        found = None
    if not found and (not is_pass or _NOUN.search(before[-12:])):
        found = (
            _BEHIND.match(text, end)
            or (_TO.match(text, end) if _CHANGE.search(before) else None)
            or _CHANGED.match(text, end)
        )
    if not found and not is_pass:
        found = _USED_AS.search(before)
        if found:
            start = at - len(before) + found.start("value")
            stop = at - len(before) + found.end("value")
            if (found["verb"] or not found["value"].isalpha()) and _is_said(found["value"], text, end, end):
                yield start, stop
            return
    if found:
        start, stop = found.start("value"), _trimmed(text, *found.span("value"))
        if _is_said(text[start:stop], text, start, stop):
            yield start, stop


def _find_korean(text: str, at: int, end: int, before: str) -> Iterator[tuple[int, int]]:
    if found := _KOREAN_BEHIND.match(text, end):
        value, (start, stop) = found["value"], found.span("value")
        is_plain = not value[0].isascii()
        if (not _KOREAN_REMARK.search(value)) if is_plain else _is_korean_password(value):
            yield start, stop
            return
    if (found := _KOREAN_LISTED.match(text, end)) and not _KOREAN_REMARK.search(found["value"] or ""):
        yield found.span(found.lastgroup or 0)
        return
    if (found := _KOREAN_NEAR.match(text, end)) and not _KOREAN_REMARK.search(
        found["value"].rstrip("0123456789!@#$%^&*?")
    ):
        yield found.span("value")
        return
    if _KOREAN_IS.match(text, end) and (found := _KOREAN_BEFORE.search(before)) and _is_korean_password(found["value"]):
        yield at - len(before) + found.start("value"), at - len(before) + found.end("value")


def _is_korean_password(value: str) -> bool:
    if is_placeholder(value) or _OTHER.match(value) or is_remark(value):
        return False
    return not value.isalpha() or is_word(value.lower()) or is_typed_korean(value)
