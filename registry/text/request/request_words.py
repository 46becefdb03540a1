"""Recognise words that belong to the request and not to its subject; they are not searched for. Pure."""

import re
import unicodedata
from itertools import product

_ENGLISH = """
a an the this that these those it its i me my mine we us our ours you your yours he she they them their
his him her hers theirs himself herself themselves am
is are was were be been being do does did done doing have has had having can could will would shall should
may might must let lets please kindly just also again still ever really actually maybe s t m d re ve ll don
doesn didn isn wasn aren weren won couldn shouldn wouldn and or but so if then than as at by for from in
into of off on onto out over to up upon via with within without about regarding concerning related relating
around what when where which who whom whose why how there here some any something anything someone thing
things stuff conversation conversations discuss discussed discussing discussion discussions talk talked
talking mention mentioned say said saying tell told ask asked asking spoke continue continued continuing
resume resuming last previous prior previously earlier ago before most recent recently lately yesterday today
find finds found finding show shows showed shown showing give gives gave given giving get gets got getting
look looks looked looking retrieve recall remember remembered remind know knows knew known need needs needed
want wants wanted like help continues discusses mentions says tells asks talks everything much many often
no not nor too very because during through across now yet already such own one ones each every
neither once twice ive whats hows wheres whos thats lets
w etc yes yeah hmm lol haha btw pls plz thx
wich whcih waht wht hwo wher teh abt another other ok okay hey hi hello well
"""

_KOREAN = """
관련 관하여 관한 대해 대하여 대한 대해서 대화 대화내용 이야기 얘기 논의 토론 상의 언급 질문 말 말씀 내용
방법 방식 이어 이어서 이어가기 이어가 이어가자 이어줘 이어나가 이어지는 계속 계속해 계속하자 계속해서
다시 마저 어떻게 어떤 어떠한 어땠지 어느 어디 어디서 어디에 언제 왜 누가 누구 무엇 무엇을 무슨 뭐 뭐가
뭐라고 뭐야 뭐지 뭐였지 뭐였더라 뭐더라 뭔가 뭔지 뭘 몇 얼마 얼마나 있나 있어 있었지 있었나 있었던 있었 있던
있는 있을까 있지 였지 였더라 됐지 됐더라 했지 했더라 했던 했었지 우리 우리가 우리는 저희 나 내 내가 나는 저
제 제가 저는 너 네 네가 당신 지난 지난번 저번 이번 지난주 지난달 어제 그제 오늘 아까 이전 예전 전 전에 최근
그때 당시 요즘 방금 조금 옛날 그거 그것 그게 그건 그 이 이거 이것 이게 이건 저거 저것 저게 거 것 게 건 걸 뭣
데 때 줄 수 좀 혹시 그냥 그럼 그래서 그리고 그런데 근데 또 또는 및 더 잘 참 막 한번 같이 함께 나눈 나눴던
나누던 주고받은 말한 말했던 했 하는 하던 하기 한 할 해 된 되는 될 기억 기억나 기억나는 생각나 알고 싶어 싶은
싶다 궁금해 궁금한 부탁 부탁해 줘 주세요 주라 해줘 해주세요 해봐 봐 보자 볼까 하자
이유 이유가 번 번째
했어 했어요 했었어 했었지 했었나 했더라 했더라고 했나 했냐 했는지 했는데 했으면 하다 하다가 하다말고 말았지
말았던 말았더라 말았어 뭐였어 뭐였나 뭐였는지 어땠어 어땠나 어땠더라 어땠는지 어떻게든 물어본 물어봤던 물어봤지
물어봤어 물어보던 보던 봤던 봤지 봤어 알려준 알려줬던 알려줬지 알려줬어 말해준 설명해준 추천해준 가르쳐준 하라고
하랬지 하랬더라 하랬어 떴지 떴던 떴었지 떴었어 떴더라 됐어 됐었지 됐었어 됐나 됐는지 였어 였었지 이었지 이었더라
그랬지 그랬더라 그랬어 중이던 중이었지 중이었던 얘기한 얘기했던 얘기했지 얘기했어 얘기하던 이야기한 이야기했던
이야기하던 대화한 대화했던 대화하던 안 못 되던 안되던 안돼 안되는 안되던거
지금 여태 다 전부 모두 모든 하자고 하자던 했었는데 물어본다고 물어본다던 상담한 상담했던 상담하던 상담했지
뭐했어 뭐했지 뭐했더라 뭐했나 뭐했는지 뭐하던 뭐했었지 누구한테
한거 한건 한게 하던거 하던건 하던게 했던거 했던건 했던게 하는거 되던거 된거 말야 말인데 있잖아 같은데 맞지 맞나 맞아
때문 때문에 땜에 중에 중에서 쪽 뒤 뒤에 다음에 사이에 동안 그대로 최종 최종적 최종적으로 결론적으로 각각 따로
결국 결국에 결국엔 마침내 지금까지 여태까지 고마워 고마워요 고맙습니다 감사합니다
"""

_JAPANESE = """
話 の話 会話 何を 何が 何の 内容 続き 前回 件 の件 相談 教え
"""

_AMBIGUOUS_WORDS = """
work works worked working session sessions chat chats week weeks list lists summary summaries summarize summarise recap
overview progress all latest newest project repo repository folder
작업 일 마지막 세션 채팅 목록 내역 현황 적 부분 프로젝트 레포 저장소 폴더
作業 仕事
"""

_GENERIC_ENGLISH = """
problem problems issue issues reason reasons cause causes fix fixes fixed fixing solve solved solution solutions
change changes changed changing add adds added adding remove removed use uses used using make makes made making
create creates created creating write writes wrote written writing set setting settings setup handle handled
handling work works worked working run runs running way ways method methods approach strategy option options
choice choose chose chosen decide decided decision decisions plan plans planned idea ideas suggest suggested
suggestion recommend recommended recommendation recommendations check checked list lists step steps part parts
kind type types name names value values number time times day days first second new old good best better
difference compare compared example examples detail details result results question questions answer answers
code file files project app system tool data thing error errors manage managing update updated explain explained
explanation write-up note notes rule rules limit limits start started stop stopped try tried keep kept put turn
should many much long short big small simple easy hard different same whole all other
go goes going went gone come comes came coming take takes took taken taking bring brings brought pick picks picked
see sees saw seen seeing happen happens happened happening leave leaves left end ends ended matter matters mattered
people person guy guys someone somebody everyone everybody way back still first last next
implement implements implemented implementing implementation build builds built building develop developed developing
generate generates generated generating reference references referenced designed based
"""

_GENERIC_KOREAN = """
문제 이슈 원인 이유 해결 해결책 설정 옵션 추천 구성 처리 분석 연결 추가 변경 수정 사용 이용 작성 정리 설명 비교
선택 결정 확인 적용 생성 구현 작업 기능 관리 계획 목표 결과 상태 시간 날짜 종류 기준 규칙 값 크기 개수 이름 목록
순서 단계 과정 차이 차이점 예시 예제 코드 파일 프로젝트 프로그램 시스템 서비스 데이터 정보 버전 오류 에러 버그
전체 일부 처음 마지막 새로 새로운 다른 여러 많은 좋은 제일 가장 먼저 나중 최종 제안 조언 의견 아이디어 전략 검토
개선 도입 실행 시작 종료 유지 제거 삭제 관련해서 경우 상황 조건 항목 대상 위치 장소 기간 정도 수준 가격 비용 숫자
번호 만들기 만들던 만든 쓰던 쓴 쓰기 고친 고치던 바꾼 바꾸던 정한 정했지 정하기로 했었는지 하기로 넣은 넣던 붙인 붙이던
나눈거 다룬 다루던 다루는 나오던 나온 나던 걸리던 걸린 생긴 생기던 발생한 발생
"""

_PARTICLES = """
은 는 이 가 을 를 에 의 로 도 만 과 와 랑 요 에서 으로 까지 부터 에게 한테 처럼 이랑 하고 에는 에도 로는
이나 이란 이라는 라는 보다 마다 대로 이고 인데 이며 에서는 에서도 으로는 이야 입니다 인지
"""

_REQUEST_VERBS = """
찾아 보여 알려 말해 설명해 가르쳐 불러와 불러 가져와 가져다 꺼내 정리해 요약해 기억해 이어서해 계속해 진행해
"""
_POLITE_ENDINGS = """
줘 줘요 줄래 줄래요 주세요 주십시오 주라 줄 봐 봐줘 보자 달라고 야 서
"""

# question words with any ending: 뭐로, 뭘로, 얼마까지였지, 언제야, 몇분
_QUESTION_WORD = re.compile(
    r"""(?:(?:뭐|뭘|무엇|어디|언제|누구|누가|얼마|어떻게|어떡|어케|왜(?!도|란))(?:뭐|어디)?|머(?=[였엿라했햇로]|더라))
        (?:하|해|할|한)?
        (?:부터|까지|에서|한테|에게|이랑|랑|보다|정도|쯤|씩|만|로|를|을|가|이|에|의|은|는|도|나|고|면|기로|라고|려고|다가)*
        (?:이?(?:[였엿었엇했햇됐됏랬댔]|라|란|야))*
        (?:더라고?|[지죠]요?|어요?|나요?|냐|니|야|는지|던[가지거]?|데|고|다|예요|에요)?$
      | 몇.{0,3}$ | 어딨.{1,3}$""",
    re.VERBOSE,
)

_RECALL_ENDINGS = "지 죠 지요 더라 더라고 더라구 나 나요 냐 니 는지 던가 던지 던거 던 었지 었더라 었어 었나 었는지 었던"
_PAST = 20  # number of the final consonant ㅆ, which past and future verbs have: 고쳤더라, 잡겠지

_MIN_INITIALS = 3  # different single letters that may be a word's initials (ㅊㅅㄱㅅ); fewer are chat: ㅋㅋ, ㅇㅈ
_LAUGHTER = set(unicodedata.normalize("NFKC", "ㅋㅎㅇㅠㅜ큐"))

_SPACELESS = frozenset(_JAPANESE.split())
_REQUEST_FORMS = ("".join(pair) for pair in product(_REQUEST_VERBS.split(), ("", *_POLITE_ENDINGS.split())))
_HANGUL = frozenset((*_KOREAN.split(), *_PARTICLES.split(), *_REQUEST_FORMS))
_LATIN = frozenset(_ENGLISH.split())
_AMBIGUOUS = frozenset(_AMBIGUOUS_WORDS.split())
_SMALL_DIGITS = 2  # digits of a number that is a count or part of a date
_GENERIC = frozenset((*_GENERIC_KOREAN.split(), *_GENERIC_ENGLISH.split()))


def is_request_word(word: str) -> bool:
    """Return True if a lower-case Latin or a Hangul word belongs to the request and not to its subject."""
    if word.isascii():
        return word in _LATIN
    is_chat = "\u1100" <= word[:1] <= "\u11ff" and len(set(word) - _LAUGHTER) < _MIN_INITIALS
    return word in _HANGUL or bool(_QUESTION_WORD.match(word)) or _is_recall_verb(word) or is_chat


def _is_recall_verb(word: str) -> bool:
    """Return True for a verb that asks what was done: 고쳤지, 바꿨더라; not 청소했더라, which has a subject."""
    verbs = (word[: -len(ending)] for ending in _RECALL_ENDINGS.split() if word.endswith(ending))
    return any(is_past(verb[-1:]) and (len(verb) == 1 or verb[-1] not in "했됐") for verb in verbs)


def is_request_piece(piece: str) -> bool:
    """Return True if a piece of a sentence without spaces belongs to the request and not to its subject."""
    return piece in _SPACELESS


def is_ambiguous_request_word(word: str) -> bool:
    """Return True for a request word that may also begin a subject: "session cookie", 작업 큐."""
    return word in _AMBIGUOUS


def is_generic_word(word: str) -> bool:
    """Return True for a lower-case Latin or a Hangul word that occurs in conversations on any subject."""
    return word in _GENERIC or (word.isdigit() and len(word) <= _SMALL_DIGITS) or is_past(word)


_FIRST, _LAST, _FINALS = ord("가"), ord("힣"), 28


def is_past(word: str) -> bool:
    """Return True for a past or future Korean verb, which seldom occurs again in the same form."""
    return any(_FIRST <= ord(char) <= _LAST and (ord(char) - _FIRST) % _FINALS == _PAST for char in word)
