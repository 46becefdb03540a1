"""The words and tokens of a request that are searched for."""

from hypothesis import given
from hypothesis import strategies as st

from registry.text.analysis.analyzer import analyze
from registry.text.request.query import QueryWord, parse_query


def subject(text: str) -> list[str]:
    return [word.text for word in parse_query(text).words]


def only(text: str) -> QueryWord:
    (word,) = parse_query(text).words
    return word


def test_request_words_and_particles_are_dropped() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("피보나치 관련 대화 이어서", ["피보나치"]),
        ("우리 지난번에 미들웨어 어떻게 하기로 했지?", ["미들웨어"]),
        ("배포했던 거 찾아줘", ["배포"]),
        ("인증 서버에서 토큰을 갱신하는 방법 뭐였지", ["인증", "서버", "토큰", "갱신"]),
        ("Redis를 이용한 캐시 보여줘", ["Redis", "이용", "캐시"]),
        ("What did we discuss about the database schema?", ["database", "schema"]),
        ("please continue our conversation about JWT", ["JWT"]),
        ("how_to_test", ["how_to_test"]),
        ("the sessions about JWT", ["JWT"]),
        ("the fibonacci session", ["fibonacci"]),
        ("what did we work on in the parser last week", ["parser"]),
        ("피보나치 작업 이어서", ["피보나치"]),
        ("결제 모듈 하다 말았지", ["결제", "모듈"]),
        ("커넥션풀 알려준 거 뭐였어", ["커넥션풀"]),
        ("환불 어떻게 하랬더라", ["환불"]),
        ("창고 재고 얼마까지였지", ["창고", "재고"]),
        ("전시 조명 뭘로 했더라", ["전시", "조명"]),
        ("도서관 좌석 몇개 나왔더라 ㅋㅋ", ["도서관", "좌석"]),
        ("발표 순서 언제야", ["발표", "순서"]),
        ("ㅇㅋ ㅊㅋㅊㅋ ㅠㅠ 발표", ["발표"]),
        ("ㄹㅇ 발표 ㅇㅋ", ["발표"]),
        ("ㅋㅋ ㄷㄷㄷ ㅅㄷㅅㄷ 발표", ["발표"]),
        ("그 세탁기 말야, 뭐하기로 했지", ["세탁기"]),
        ("머지 충돌", ["머지", "충돌"]),
        ("because of which boiler, and not the pump", ["boiler", "pump"]),
        ("whats the rota now btw", ["rota"]),
    ]
    for text, expected in cases:
        assert subject(text) == expected


def test_the_verb_of_a_question_counts_less_than_its_subject() -> None:
    cases: list[tuple[str, dict[str, float]]] = [
        ("난로 어떻게 청소했더라", {"난로": 1.0, "청소": 1.0}),
        ("난로 겉면 닦았더라", {"난로": 1.0, "겉면": 1.0}),
        ("정산 오류 왜 고쳤지, 이유가 뭐야", {"정산": 1.0, "오류": 0.5}),
        ("wich flue did we clean", {"flue": 1.0, "clean": 1.0}),
        ("who went to the bakery", {"went": 0.5, "bakery": 1.0}),
        ("where does it matter", {"matter": 0.5}),
    ]
    for text, expected in cases:
        assert {word.text: word.share for word in parse_query(text).words} == expected


def test_a_request_without_a_subject_has_no_search_words() -> None:
    cases: list[str] = [
        "",
        "?!",
        "대화 이어서",
        "우리 지난번에 이야기한 대화 보여줘",
        "please continue the conversation",
        "이거 알려줄래",
    ]
    for text in cases:
        assert parse_query(text).words == ()


def test_request_words_are_searched_for_inside_or_instead_of_a_subject() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("session", ["session"]),
        ("session cookie timeout", ["session", "cookie", "timeout"]),
        ("sessions instead of JWT", ["sessions", "instead", "JWT"]),
        ("work queue", ["work", "queue"]),
        ("작업", ["작업"]),
        ("작업 큐", ["작업", "큐"]),
        ("배치작업", ["배치작업"]),
        ("일정", ["일정"]),
    ]
    for text, expected in cases:
        assert subject(text) == expected


def test_a_sentence_without_spaces_is_split_into_words() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("データベースの接続プールの設定", ["データベース", "接続", "プール", "設定"]),
        ("夏の旅行はどこに行く", ["夏の", "旅行", "行く"]),
        ("木曜日の会議", ["木曜日", "会議"]),
        ("目的", ["目的"]),
        ("缓存的过期时间是多少", ["缓存", "过期时间", "多少"]),
        ("数据库连接池", ["数据", "据库", "库连", "连接", "接池"]),
        ("ひらがな", ["ひら", "らが", "がな"]),
        ("猫", ["猫"]),
    ]
    for text, expected in cases:
        assert subject(text) == expected


def test_a_repeated_word_counts_once() -> None:
    assert subject("redis Redis를 redis") == ["redis"]


def test_a_korean_word_is_searched_by_bigrams() -> None:
    assert only("미들웨어를") == QueryWord("미들웨어", ("미들", "들웨", "웨어"))


def test_parts_of_letters_or_digits_do_not_match_an_identifier() -> None:
    assert only("k8s").exact == ("zzidk8s",)
    assert only("getUser2").exact == ("zzidgetuser2", "get", "user")


def test_camel_case_and_its_plain_spelling_find_each_other() -> None:
    assert "zzidfastapi" in only("fastapi").variants
    assert "fastapi" in only("FastAPI").variants


def test_a_korean_noun_of_one_syllable_is_found_with_particles() -> None:
    others = only("값").variants
    assert "값을" in others
    assert "값를" not in others


def test_the_tokens_of_a_query_are_those_of_its_words() -> None:
    query = parse_query("미들웨어 user_id")
    assert query.tokens == tuple(token for word in query.words for token in word.tokens)


@given(st.text(max_size=60))
def test_a_query_is_found_in_a_message_of_the_same_text_or_has_no_words(text: str) -> None:
    found = set(analyze(text))
    for word in parse_query(text).words:
        assert word.exact
        assert not word.text.isascii() or found.issuperset(word.exact)
