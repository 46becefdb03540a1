"""The tokens by which a message is found."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from registry.text.analysis.analyzer import LONGEST_TOKEN, Kind, Word, analyze, stem, word_tokens, words
from registry.text.analysis.particles import strip_particles


def test_an_identifier_is_found_whole_and_in_parts() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("Running tests", ["run", "test"]),
        ("the cache, caching, cached", ["the", "cach"]),
        ("user_id", ["zziduserid", "user", "id"]),
        ("getUserName", ["zzidgetusername", "get", "user", "name"]),
        ("HTTPServer", ["zzidhttpserver", "http", "server"]),
        ("APIs", ["api"]),
        ("E1234", ["zzide1234", "e", "1234"]),
        ("v2.3.1", ["zzidv231", "v", "2", "3", "1"]),
        ("/usr/lib/site.py", ["zzidusrlibsitepy", "usr", "lib", "site", "py"]),
        ("std::vector", ["zzidstdvector", "std", "vector"]),
        ("C++17, C# and c, count++", ["cplusplus", "17", "csharp", "and", "c", "count"]),
        ("Done. Next", ["done", "next"]),
        ("___", []),
        ("404", ["404"]),
    ]
    for text, expected in cases:
        assert analyze(text) == expected


def test_korean_japanese_and_chinese_are_found_by_pairs_of_characters() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("시간복잡도", ["시간", "간복", "복잡", "잡도"]),
        ("시간 복잡도", ["시간", "복잡", "잡도"]),
        ("배포", ["배포"]),
        ("키", ["키"]),
        ("FastAPI로 바꿔", ["zzidfastapi", "fast", "api", "로", "바꿔"]),
        ("食べる", ["食べ", "べる"]),
        ("ガイド", ["ガイ", "イド"]),
        ("漢字를", ["漢字", "를"]),
    ]
    for text, expected in cases:
        assert analyze(text) == expected


def test_case_and_accents_do_not_matter_in_other_scripts() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("МОСКВА", ["москва"]),
        ("ΟΔΟΣ οδός", ["οδοσ"]),
        ("café Straße İstanbul", ["cafe", "strass", "istanbul"]),
        ("مرحبا", ["مرحبا"]),
        ("สวัสดี", ["สว", "วส", "สด"]),
        ("हिन्दी", ["हनद"]),
    ]
    for text, expected in cases:
        assert analyze(text) == expected


def test_a_soft_hyphen_does_not_cut_a_word() -> None:
    assert analyze("infor\u00admation") == analyze("information")


def test_base64_and_minified_code_are_skipped() -> None:
    assert analyze("before " + "Zm9v+/" * 40 + " after") == ["befor", "after"]


def test_a_message_cannot_forge_the_tokens_the_index_adds() -> None:
    assert analyze("zzpsecret zzc12") == ["zzidzzpsecret", "zzidzzc12", "12"]


def test_particles_are_stripped_and_nouns_are_not() -> None:
    cases: list[tuple[str, str]] = [
        ("서버에서는", "서버"),
        ("시간복잡도는", "시간복잡도"),
        ("미들웨어가", "미들웨어"),
        ("구현했던", "구현"),
        ("배포하는", "배포"),
        ("알고리즘을", "알고리즘"),
        ("파이썬으로", "파이썬"),
        ("인증까지", "인증"),
        ("전문가", "전문가"),
        ("매니저", "매니저"),
        ("경로", "경로"),
    ]
    for word, bare in cases:
        assert strip_particles(word) == bare


def test_raw_words_keep_their_case_and_kind() -> None:
    assert words("FastAPI로 東京 Москва") == [
        Word("FastAPI", Kind.IDENTIFIER),
        Word("로", Kind.HANGUL),
        Word("東京", Kind.SPACELESS),
        Word("Москва", Kind.OTHER),
    ]


ANY_TEXT = st.text(max_size=80) | st.text(
    st.sampled_from("가힣ㄱ\u1100\u1161を゙漢aZ_0.-/:+#É́ßΣİ\u00ad٣ก็Ꭰꭰ "), max_size=40
)


@given(ANY_TEXT)
def test_both_databases_read_every_token_as_one_word(text: str) -> None:
    for token in analyze(text):
        assert 1 <= len(token) <= LONGEST_TOKEN
        assert token == token.lower()
        assert {unicodedata.category(char)[0] for char in token} <= {"L", "N"}


@given(ANY_TEXT)
def test_unicode_normal_forms_give_the_same_tokens(text: str) -> None:
    assert analyze(unicodedata.normalize("NFC", text)) == analyze(text)
    assert analyze(unicodedata.normalize("NFD", text)) == analyze(text)
    assert analyze(unicodedata.normalize("NFKC", text)) == analyze(text)
    assert analyze(unicodedata.normalize("NFKD", text)) == analyze(text)


@given(st.text(st.sampled_from("abcxyz가나다 "), max_size=40))
def test_upper_case_gives_the_same_tokens_for_plain_words(text: str) -> None:
    assert set(analyze(text.upper())) == set(analyze(text))


def test_stemming_joins_inflections() -> None:
    assert {stem(word) for word in ("deploy", "deploys", "deployed", "deploying")} == {"deploy"}


@given(st.text(st.sampled_from("aZ_.-é가힣ー漢\u0301\u3099\u200b\u2028\xa0\x1f \n\t1"), max_size=60))
def test_separators_between_words_do_not_change_the_tokens_which_are_distinct(text: str) -> None:
    assert analyze(text) == list(dict.fromkeys(token for word in words(text) for token in word_tokens(word.text)))
