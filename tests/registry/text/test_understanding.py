"""Times, clients, projects and intentions in a request of the user's own words."""

from datetime import UTC, datetime, timedelta, timezone

from registry.text.request.query import parse_query
from registry.text.request.understanding import KnownNames, ParsedRequest, parse_request
from registry.text.times.spans import EVER

SEOUL = timezone(timedelta(hours=9))
NOW = datetime(2026, 3, 18, 15, 30, tzinfo=SEOUL)  # a Wednesday
KNOWN = KnownNames(
    {"cursor", "claude", "claude-code", "chatgpt", "gemini-cli", "windsurf"},
    {("shop", "/home/me/shop"), ("blog", "/home/me/blog"), ("shop api", "/home/me/shop api")},
)


def read(text: str) -> ParsedRequest:
    return parse_request(text, NOW, KNOWN)


def span(text: str) -> tuple[str, str]:
    """Return the request's time filter, to the hour."""
    when = read(text).search.when
    return tuple(f"{at:%Y-%m-%d %H}" if at else "" for at in when)  # type: ignore[return-value]


def days(first: str, last: str = "") -> tuple[str, str]:
    return f"{first} 00", f"{last or first} 23"


def test_another_project_or_chat_is_a_scope_and_not_searched_for() -> None:
    cases: list[str] = [
        "the cache size in my other project",
        "in another chat the cache size",
        "from a different conversation: cache size",
        "다른 프로젝트에서 cache size",
    ]
    for text in cases:
        words = [word.text for word in parse_query(read(text).search.words).words]
        assert words[-2:] == ["cache", "size"]
        assert not {"other", "another", "chat", "project", "conversation", "다른"} & set(words)


def test_a_time_narrows_the_search() -> None:
    cases: list[tuple[str, tuple[str, str]]] = [
        ("yesterday", days("2026-03-17")),
        ("what did I work on yesterday?", days("2026-03-17")),
        ("the day before yesterday", days("2026-03-16")),
        ("today in Cursor", days("2026-03-18")),
        ("redis last Tuesday", days("2026-03-17")),
        ("what did we talk about yesterday?", days("2026-03-17")),
        ("what did we talk about on Wednesday, March 4", days("2026-03-04")),
        ("the Thu, 5 Mar 2026 chat", days("2026-03-05")),
        ("the chat of the last week of February", days("2026-02-20", "2026-02-28")),
        ("2월 첫째 주에 한 대화", days("2026-02-01", "2026-02-10")),
        ("on Sunday we talked about redis", days("2026-03-15")),
        ("redis last week", days("2026-03-09", "2026-03-15")),
        ("Tuesday of last week", days("2026-03-10")),
        ("last weekend", days("2026-03-14", "2026-03-15")),
        ("last month", days("2026-02-01", "2026-02-28")),
        ("last month's redis", days("2026-02-01", "2026-02-28")),
        ("last thursday", days("2026-03-12")),
        ("this month", days("2026-03-01", "2026-03-31")),
        ("last year", days("2025-01-01", "2025-12-31")),
        ("three days ago", days("2026-03-15")),
        ("2 weeks ago", days("2026-03-02", "2026-03-08")),
        ("a few weeks ago", days("2026-02-02", "2026-03-08")),
        ("yesterday afternoon", ("2026-03-17 12", "2026-03-17 17")),
        ("last night", ("2026-03-17 18", "2026-03-18 03")),
        ("this morning", ("2026-03-18 05", "2026-03-18 11")),
        ("the API in the last 3 days", ("2026-03-15 00", "2026-03-18 15")),
        ("since yesterday", ("2026-03-17 00", "2026-03-18 15")),
        ("redis since last week", ("2026-03-09 00", "2026-03-18 15")),
        ("on October 3, 2023 we talked about JWT", days("2023-10-03")),
        ("in January 2022", days("2022-01-01", "2022-01-31")),
        ("in May", days("2025-05-01", "2025-05-31")),
        ("in late February", days("2026-02-20", "2026-02-28")),
        ("in 2023", days("2023-01-01", "2023-12-31")),
        ("New Year's Day", days("2026-01-01")),
        ("Christmas 2024", days("2024-12-25")),
        ("2024-02-29", days("2024-02-29")),
        ("2024-02", days("2024-02-01", "2024-02-29")),
        ("어제 뭐 했지?", days("2026-03-17")),
        ("그저께 한 일 정리해줘", days("2026-03-16")),
        ("엊그제 하던 거", days("2026-03-15", "2026-03-17")),
        ("어제 오후에 쿠버네티스 얘기", ("2026-03-17 12", "2026-03-17 23")),
        ("어젯밤에 하던 거", ("2026-03-17 18", "2026-03-18 03")),
        ("지난주 화요일에 배포", days("2026-03-10")),
        ("지난주에 뭐 했어", days("2026-03-09", "2026-03-15")),
        ("지난 주말", days("2026-03-14", "2026-03-15")),
        ("저번 주", days("2026-03-09", "2026-03-15")),
        ("지난 화요일", days("2026-03-17")),
        ("이번 주 월요일", days("2026-03-16")),
        ("이번 달", days("2026-03-01", "2026-03-31")),
        ("한 달 전", days("2026-02-01", "2026-02-28")),
        ("월요일에 얘기한 회의", days("2026-03-16")),
        ("지난달 초", days("2026-02-01", "2026-02-10")),
        ("이번 주", days("2026-03-16", "2026-03-22")),
        ("3일 전에 본 에러", days("2026-03-15")),
        ("사흘 전", days("2026-03-15")),
        ("2주 전", days("2026-03-02", "2026-03-08")),
        ("최근 3일 동안", ("2026-03-15 00", "2026-03-18 15")),
        ("어제부터 뭐 했지", ("2026-03-17 00", "2026-03-18 15")),
        ("작년", days("2025-01-01", "2025-12-31")),
        ("올해 초", days("2026-01-01", "2026-03-31")),
        ("작년 말에 한 얘기", days("2025-10-01", "2025-12-31")),
        ("작년 중순에 한 얘기", days("2025-05-01", "2025-08-31")),
        ("어저께 한 얘기", days("2026-03-17")),
        ("작년 12월 초", days("2025-12-01", "2025-12-10")),
        ("3월 5일", days("2026-03-05")),
        ("작년 3월 5일에 얘기한 거", days("2025-03-05")),
        ("12월", days("2025-12-01", "2025-12-31")),
        ("2024년 2월", days("2024-02-01", "2024-02-29")),
        ("크리스마스", days("2025-12-25")),
        ("the week before last", days("2026-03-02", "2026-03-08")),
        ("the month before last", days("2026-01-01", "2026-01-31")),
        ("in July of last year", days("2025-07-01", "2025-07-31")),
        ("the last few days", ("2026-03-12 00", "2026-03-18 15")),
        ("earlier this week", days("2026-03-16", "2026-03-22")),
        ("early last year", days("2025-01-01", "2025-03-31")),
        ("last October", days("2025-10-01", "2025-10-31")),
        ("in the last October", days("2025-10-01", "2025-10-31")),
        ("October", days("2025-10-01", "2025-10-31")),
        ("on the 12th we talked", days("2026-03-12")),
        ("Monday morning we talked about it", ("2026-03-16 05", "2026-03-16 11")),
        ("Monday's session", days("2026-03-16")),
        ("last tues", days("2026-03-17")),
        ("over the weekend", days("2026-03-14", "2026-03-15")),
        ("30 minutes ago", ("2026-03-18 14", "2026-03-18 15")),
        ("yesterday in the afternoon", ("2026-03-17 12", "2026-03-17 17")),
        ("until yesterday", ("", "2026-03-17 23")),
        ("before last week", ("", "2026-03-08 23")),
        ("since Monday", ("2026-03-16 00", "2026-03-18 15")),
        ("지지난주", days("2026-03-02", "2026-03-08")),
        ("지지난주 금요일", days("2026-03-06")),
        ("주말에 한 얘기", days("2026-03-14", "2026-03-15")),
        ("지난 주말 저녁에 한 배포", ("2026-03-14 17", "2026-03-15 23")),
        ("last week in the morning we talked", ("2026-03-09 05", "2026-03-15 11")),
        ("그저께 저녁", ("2026-03-16 17", "2026-03-16 23")),
        ("10분 전", ("2026-03-18 15", "2026-03-18 15")),
        ("지난 일주일 동안", ("2026-03-11 00", "2026-03-18 15")),
        ("최근 며칠", ("2026-03-12 00", "2026-03-18 15")),
        ("어제까지 한 작업", ("", "2026-03-17 23")),
        ("12일에 얘기한 거", days("2026-03-12")),
        ("25년 3월에 한 얘기", days("2025-03-01", "2025-03-31")),
        ("2026.03.05에 얘기한 거", days("2026-03-05")),
        ("한 달쯤 전에 고친 API", days("2026-02-01", "2026-02-28")),
        ("about a month ago we fixed the API", days("2026-02-01", "2026-02-28")),
        ("약 2주 정도 전에 한 일", days("2026-03-02", "2026-03-08")),
        ("a couple of weeks ago", days("2026-02-23", "2026-03-15")),
        ("지지난 화요일", days("2026-03-10")),
        ("10월 이전에 한 얘기", ("", "2025-09-30 23")),
        ("작년 여름에 한 얘기", days("2025-06-01", "2025-08-31")),
        ("last winter", days("2025-12-01", "2026-02-28")),
        ("며칠 전", days("2026-03-12", "2026-03-16")),
        ("열흘 전", days("2026-03-05", "2026-03-11")),
        ("in the past couple of weeks", ("2026-02-23 00", "2026-03-18 15")),
        ("at the end of last month", days("2026-02-20", "2026-02-28")),
        ("yesterday around 3pm", days("2026-03-17")),
        ("어제 오후 3시쯤", ("2026-03-17 12", "2026-03-17 23")),
        ("between Monday and Tuesday we talked", days("2026-03-16", "2026-03-17")),
        ("from March 3 to yesterday we talked", days("2026-03-03", "2026-03-17")),
        ("between 3 and 7 March we talked", days("2026-03-03", "2026-03-07")),
        ("Nov 3-7 we talked", days("2025-11-03", "2025-11-07")),
        ("Nov 7 to 3 we talked", days("2025-11-07")),
        ("3월 3일부터 7일까지 한 일", days("2026-03-03", "2026-03-07")),
        ("3월 3~7일에 한 얘기", days("2026-03-03", "2026-03-07")),
        ("작년 5월부터 7월까지 한 일", days("2025-05-01", "2025-07-31")),
        ("지난주 월요일부터 어제까지 한 일", days("2026-03-09", "2026-03-17")),
        ("the week of March 5 we talked", days("2026-03-02", "2026-03-08")),
        ("after the 12th we talked", ("2026-03-13 00", "2026-03-18 15")),
        ("half a year ago", days("2025-08-01", "2025-10-31")),
        ("반년 전에 한 얘기", days("2025-08-01", "2025-10-31")),
        ("크리스마스 전에 한 얘기", ("", "2025-12-24 23")),
        ("around March 5 we talked", days("2026-03-02", "2026-03-08")),
        ("3월 5일쯤 한 얘기", days("2026-03-02", "2026-03-08")),
    ]
    for text, expected in cases:
        assert span(text) == expected


def test_words_that_only_look_like_a_time_are_not_filters() -> None:
    cases: list[str] = [
        "1/2 of the users",
        "반입 마감 각각 몇시간 전",
        "예약은 며칠 전까지 바꿀 수 있지?",
        "the ratio 10/3",
        "may I use sessions",
        "it may break",
        "march of progress",
        "python 3.11 upgrade",
        "version 2024.1 release",
        "port 2023 in use",
        "fix_2024_01_05_migration.sql",
        "backup-2024-01-05.tar",
        "src/2024-01-05/yesterday.py",
        "sunday times crawler",
        "monday.com api",
        "yesterday_total 컬럼",
        "31 February",
        "on February 29, 2023",
        "2월 31일",
        "13월",
        "일요일마다시",
        "화요일별",
        "세 시간 복잡도",
        "from the start to the end",
        "between the client and the server",
        "from 1 to 10",
        "처음부터 끝까지",
        "1부터 10까지 더하는 함수",
        "cron at 3am",
        "새벽에 도는 배치 작업",
        "크론이 새벽 3시에 돌던 문제",
        "다음주 화요일 배포",
        "last sun exposure",
        "until loop",
        "the last commit",
        "3.11에 추가된 문법",
        "각주 11.12에 있는 문장",
        "the other days are off",
        "stock export format of the shop today",
    ]
    for text in cases:
        found = read(text)
        assert (found.search.when, found.dates, found.search.words) == (EVER, (), text)


def test_a_date_that_may_be_the_subject_is_a_preference_not_a_filter() -> None:
    cases: list[tuple[str, int, int]] = [
        ("what happened on 14 October?", 10, 14),
        ("2월 월세 얼마였지", 2, 1),
        ("2024-01-05 backup", 1, 5),
        ("3월 5일 공연 예매", 3, 5),
        ("flight on December 24", 12, 24),
        ("월요일 회의", 3, 16),
        ("지은님 겨울에는 몇 분할로 했지", 12, 1),
        ("what was the house heated to in winter?", 12, 1),
    ]
    for text, month, day in cases:
        found = read(text)
        assert found.search.when == EVER
        assert found.search.words == text
        [date] = found.dates
        assert date.start
        assert (date.start.month, date.start.day) == (month, day)


def test_a_date_is_a_filter_without_a_subject_or_if_we_talked_then() -> None:
    for text in (
        "on October 14",
        "on October 14 we discussed flights",
        "10월 14일에 뭐 했지",
        "10월 14일에 얘기한 항공권",
    ):
        found = read(text)
        assert (found.search.when != EVER, found.dates) == (True, ()), text


def test_a_request_about_the_state_before_a_change_is_recognised() -> None:
    cases: list[tuple[str, bool]] = [
        ("what ran the nightly builds before, the thing under the desk?", True),
        ("When we moved out, what was the rent?", True),
        ("what was the rate limit when we launched", True),
        ("When did Melanie buy the figurines?", False),
        ("How did Evan feel when he painted the bird?", False),
        ("what did I buy for the hose around the sunday before last", False),
        ("continue the report that we wrote before we moved", False),
        ("3월 초에 배포하고 터졌던 거 원인이 뭐였지", False),
        ("심화반은 무슨 요일에 했었죠?", True),
        ("잠이 안 올 때 뭐 하랬지?", False),
        ("log retention as of today", False),
        ("log retention, as of the latest?", False),
        ("which log retention had we picked at the very beginning", True),
        ("예약할 때 선입금 얼마야?", False),
    ]
    for text, is_past in cases:
        assert read(text).is_about_past is is_past, text


def test_days_are_in_the_users_time_zone() -> None:
    midnight = datetime(2026, 3, 1, 0, 0, tzinfo=SEOUL)
    before = midnight - timedelta(milliseconds=1)
    assert parse_request("today", midnight).search.when.start == midnight
    assert parse_request("어제", midnight).search.when.end == before
    assert parse_request("오늘", before).search.when.start == datetime(2026, 2, 28, tzinfo=SEOUL)
    utc = parse_request("today", midnight.astimezone(UTC)).search.when
    assert utc.start == datetime(2026, 2, 28, tzinfo=UTC)


def test_after_midnight_a_part_of_the_day_is_the_last_one() -> None:
    midnight = datetime(2026, 3, 18, 0, 20, tzinfo=SEOUL)
    expected = {"this morning": 17, "어젯밤": 17, "last night": 17, "오늘": 18}
    for text, day in expected.items():
        start = parse_request(text, midnight).search.when.start
        assert start, text
        assert start.astimezone(SEOUL).day == day, text


def test_asking_what_was_done_at_a_time_has_no_subject() -> None:
    cases: list[str] = [
        "summarize what I did this week",
        "what happened yesterday",
        "a recap of last week",
        "yesterday's progress",
        "이번 주 작업 목록 보여줘",
        "어제 대화 목록",
    ]
    for text in cases:
        found = read(text)
        assert found.search.when != EVER
        assert not found.has_words


def test_words_of_time_are_not_searched_for() -> None:
    found = read("what did we decide about the API in the last 3 days?")
    assert found.search.words == "what did we decide about the API ?"
    assert found.search.when_words == "in the last 3 days"
    assert not read("어제 한 일 정리해줘").has_words
    assert not read("what did I work on last week?").has_words
    assert read("어제 redis").has_words


def test_a_client_narrows_the_search() -> None:
    cases: list[tuple[str, tuple[str, ...], str]] = [
        ("redis in Cursor", ("cursor",), "redis"),
        ("what I asked in Claude about redis", ("claude", "claude-code"), "what I asked about redis"),
        ("the bug from Claude Code", ("claude-code",), "the bug"),
        ("asked ChatGPT about taxes", ("chatgpt",), "about taxes"),
        ("클로드에서 얘기한 인증", ("claude", "claude-code"), "얘기한 인증"),
        ("챗지피티한테 물어본 거", ("chatgpt",), ""),
        ("제미나이에서 물어본 여행", ("gemini-cli",), "물어본 여행"),
        ("커서에서 고친 버그", ("cursor",), "고친 버그"),
        ("the Cursor session about auth", ("cursor",), "about auth"),
        ("my ChatGPT conversation about taxes", ("chatgpt",), "about taxes"),
        ("what did ChatGPT recommend for taxes", ("chatgpt",), "what recommend for taxes"),
        ("what Claude said about taxes", ("claude", "claude-code"), "what said about taxes"),
        ("챗지피티가 추천한 책", ("chatgpt",), "추천한 책"),
        ("커서 대화에서 redis", ("cursor",), "대화에서 redis"),
        ("the bug we fixed in Windsurf", ("windsurf",), "the bug we fixed"),
        ("클코에서 고친 버그", ("claude-code",), "고친 버그"),
    ]
    for text, sources, words in cases:
        found = read(text)
        assert (found.sources, found.search.words) == (sources, words)


def test_words_that_only_look_like_a_client_are_not_filters() -> None:
    cases: list[str] = [
        "cursor pagination in Postgres",
        "in cursor pagination",
        "use the cursor in postgres",
        "커서 기반 페이지네이션",
        "gpt tokenizer",
        "in codex",
        "the path ~/claude/notes",
        "in gemini.toml",
        "set the cursor in the chat box",
        "the claude api pricing",
        "커서 위치 계산",
    ]
    for text in cases:
        found = read(text)
        assert (found.sources, found.search.words) == ((), text)


def test_a_known_project_narrows_the_search() -> None:
    cases: list[tuple[str, str | None, str]] = [
        ("redis in the shop project", "/home/me/shop", "redis"),
        ("the redis bug in shop", "/home/me/shop", "the redis bug"),
        ("shop 프로젝트에서 배포", "/home/me/shop", "배포"),
        ("shop에서 결제", "/home/me/shop", "결제"),
        ("for the shop api project", "/home/me/shop api", ""),
        ("redis in the shop-api repo", "/home/me/shop api", "redis"),
        ("shop으로 한 거", "/home/me/shop", ""),
        ("the paint for the shop", None, "the paint for the shop"),
        ("a shop that sells shoes", None, "a shop that sells shoes"),
        ("in the barber project", None, "in the barber project"),
        ("in shop/cart.py", None, "in shop/cart.py"),
    ]
    for text, project, words in cases:
        found = read(text)
        assert (found.search.project, found.search.words) == (project, words)


def test_a_korean_verb_with_a_client_and_a_date_has_no_subject() -> None:
    found = read("3월 5일 커서에서 뭐 바꿨어")
    assert (found.search.when_words, found.sources, found.search.words) == ("3월 5일", ("cursor",), "")


def test_time_client_and_project_narrow_together() -> None:
    found = read("yesterday in Cursor in the shop project redis")
    assert (found.search.words, found.sources, found.search.project) == ("redis", ("cursor",), "/home/me/shop")
    assert found.search.when_words == "yesterday"


def test_a_written_filter_is_combined_with_words_of_time() -> None:
    found = read("source:claude project:x yesterday -flask")
    assert (found.sources, found.search.project) == (("claude",), "x")
    assert found.search.excluded == ("flask",)
    assert found.search.when != EVER


def test_a_request_to_continue_is_recognised() -> None:
    cases: list[str] = [
        "continue the fibonacci conversation",
        "please continue with the parser",
        "Let's pick up where we left off",
        "can you resume the migration work",
        "go on with yesterday's refactoring",
        "where did we stop?",
        "피보나치 이어서",
        "이어서 하자",
        "지난번 대화 이어줘",
        "결제 모듈 이어서 작업하자",
        "어제 하던 거 계속",
        "마저 하자",
        "can we continue our discussion about indexes?",
        "where were we with the parser?",
        "take me back to where I was with the cache",
        "continuing the conversation about redis",
        "pick this up again: photo import",
        "load the fibonacci conversation and continue",
        "We were working on photo import; let's continue",
        "what's next on the deployment?",
        "우리 어디까지 얘기했지",
        "결제 작업 계속 진행하자",
        "그 대화 이어받아서 해줘",
        "아까 그 대화로 돌아가자",
    ]
    for text in cases:
        assert read(text).is_continuation


def test_words_that_only_look_like_continuing_are_searched_for() -> None:
    cases: list[str] = [
        "continue statement in a for loop",
        "how does continue work in a for loop",
        "continue or break",
        "git rebase --continue",
        "계속 떨어지던 버그",
        "계속 실패하는 테스트 고친 거",
        "이어서 쓰는 법",
        "이어폰 추천",
        "what did we decide about resume parsing",
        "resume template in LaTeX",
        "the difference between break and continue",
        "pick up lines",
        "go on vacation",
        "continuous integration",
        "이어달리기 일정",
    ]
    for text in cases:
        assert not read(text).is_continuation


def test_a_pasted_text_is_searched_for_and_has_no_filters() -> None:
    log = "today it failed in cursor\nyesterday in the shop project too"
    found = read(log)
    assert (found.search.words, found.search.when, found.sources, found.search.project) == (log, EVER, (), None)
    long = "continue: " + "the job of today failed in cursor again and again " * 6
    found = read(long)
    assert (found.search.words, found.search.when, found.sources) == (long.strip(), EVER, ())
    assert not found.is_continuation


def test_any_text_can_be_parsed() -> None:
    cases: list[str] = ["", "   ", "?", "어제 어제 어제", "in in in", "1000000 days ago", "999 years ago", "0일 전"]
    for text in cases:
        read(text)


def test_a_project_name_alone_is_the_scope_of_continuing() -> None:
    for text in ["shop 이어서 하자", "let's continue shop", "continue working on shop"]:
        found = read(text)
        assert (found.search.project, found.has_words, found.is_continuation) == ("/home/me/shop", False, True)


def test_a_project_name_of_several_words_alone_is_the_scope() -> None:
    for text in ["shop api status", "the state of Shop-API", "shop-api 진행 상황"]:
        assert (read(text).search.project, read(text).has_words) == ("/home/me/shop api", False)
    assert read("shop api quota").search.project is None


def test_a_request_for_what_was_last_has_no_subject() -> None:
    for text in [
        *("continue that", "resume this please", "continue please", "help me continue", "resume work", "catch me up"),
        *("previous conversation context", "context from prior sessions", "latest chat", "지난 대화 요약"),
        *("which files did we change in the last session", "마지막 세션에서 고친 파일"),
    ]:
        assert (read(text).has_words, read(text).is_about_recent) == (False, True), text
    assert not read("pick up from yesterday").has_words
    for text in ["that", "latest node version", "the last session cookie bug", "react context", "마지막 배포 언제였지"]:
        assert read(text).has_words, text


def test_a_project_name_with_a_subject_is_searched_for() -> None:
    cases: list[str] = ["shop", "shop checkout 이어서 하자", "continue the shop window conversation"]
    for text in cases:
        assert read(text).search.project is None


def test_asking_for_everything_of_a_time_has_no_subject() -> None:
    for text in ["Show me all sessions from last week", "3일 전에 뭐했어", "어제 어디라고 했지"]:
        assert read(text).search.when_words
        assert not read(text).has_words


def test_clients_and_projects_are_known_by_their_usual_names() -> None:
    found = read('source:gemini project:"Shop-API" quota').search
    assert (found.source, found.project, found.words) == ("gemini-cli", "shop api", "quota")
    assert read("source:claude quota").search.source == "claude"


def test_a_season_can_be_the_subject() -> None:
    for text in ("this summer jeju trip", "작년 여름 여행"):
        assert (read(text).search.when, len(read(text).dates)) == (EVER, 1)


def test_a_part_of_a_month_or_year_is_a_filter() -> None:
    cases: list[tuple[str, str, str]] = [
        ("the login bug from early February", "2026-02-01", "2026-02-10"),
        ("mid-July cache talk", "2025-07-10", "2025-07-20"),
        ("7월 중순에 캐시 어떻게 했지", "2025-07-10", "2025-07-20"),
        ("end of September migration", "2025-09-20", "2025-09-30"),
        ("지난달 초에 한 배포", "2026-04-01", "2026-04-10"),
        ("state management back in mid-2025", "2025-05-01", "2025-08-31"),
        ("2025년 말 배포", "2025-10-01", "2025-12-31"),
        ("a couple of weeks ago we fixed login", "2026-04-27", "2026-05-17"),
        ("what did we do around last Christmas", "2025-12-22", "2025-12-28"),
        ("what did we discuss on the 24th about the deploy", "2026-04-24", "2026-04-24"),
        ("what did we discuss in autumn 2025", "2025-09-01", "2025-11-30"),
    ]
    for text, begin, end in cases:
        search = parse_request(text, datetime(2026, 5, 20, 10, tzinfo=UTC)).search
        assert search.when.start is not None
        assert search.when.end is not None
        assert (f"{search.when.start:%Y-%m-%d}", f"{search.when.end:%Y-%m-%d}") == (begin, end)


def test_today_can_mean_now() -> None:
    now = datetime(2026, 5, 20, 10, tzinfo=UTC)
    assert parse_request("which tool makes the invoice PDFs today?", now).search.when_words == ""
    assert parse_request("which tool did we try today?", now).search.when_words == "today"
