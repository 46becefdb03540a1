"""Search quality on a small Korean and English corpus."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator.service import Orchestrator
from registry.registry import Registry
from registry.search.retrieval import find_messages
from registry.search.scope import Scope
from registry.text.ranking.matching import matched_words
from registry.text.request.query import parse_query
from tests.seeded import Seeded

pytestmark = pytest.mark.anyio

THRESHOLD = 0.2

# One channel per block; user and assistant alternate.
CHANNELS: tuple[tuple[str, ...], ...] = (
    (
        "피보나치 함수를 파이썬으로 구현해줘",
        "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2) 재귀로 작성했습니다.",
        "이거 시간복잡도가 너무 높은데 줄일 수 있을까?",
        "메모이제이션을 쓰면 O(2^n)에서 O(n)으로 줄어듭니다. functools.lru_cache 데코레이터를 붙이세요.",
    ),
    (
        "FastAPI 미들웨어에서 요청마다 request id를 남기고 싶어",
        "BaseHTTPMiddleware 대신 순수 ASGI 미들웨어로 contextvar에 담아 로그에 출력하면 됩니다.",
        "CORS 에러가 계속 나는데 allow_origins 설정은 했어",
        "allow_credentials=True이면 와일드카드를 쓸 수 없습니다. 출처를 명시하세요.",
    ),
    (
        "How do I rotate JWT refresh tokens safely?",
        "Store a token family id, rotate on every use and revoke the family when an old token is replayed.",
        "Where should the browser keep the access token?",
        "Keep it in memory; put the refresh token into an HttpOnly SameSite=Strict cookie.",
    ),
    (
        "배포 파이프라인에서 E1234 오류가 나면서 롤백됐어",
        "E1234는 헬스체크 타임아웃입니다. readinessProbe의 initialDelaySeconds를 늘려 보세요.",
        "쿠버네티스 클러스터 노드가 메모리 부족으로 죽는 것 같아",
        "kubectl top nodes로 확인하고 resources.limits.memory를 512Mi로 올리세요.",
    ),
    (
        "The worker deadlocks when two transactions update the accounts table",
        "Lock rows in one order, for example SELECT ... FOR UPDATE ordered by account id.",
        "Is SERIALIZABLE isolation cheaper than explicit row locks?",
        "No, you pay with retries; measure the abort rate under your own load first.",
    ),
    (
        "registry/search/analyzer.py의 get_user_profile 함수 이름을 바꾸자",
        "getUserProfile 호출부 세 곳을 모두 fetch_profile로 바꿨습니다.",
        "v2.3.1 태그를 달고 릴리스 노트 써줘",
        "CHANGELOG.md에 v2.3.1 항목을 추가하고 태그를 만들었습니다.",
    ),
    (
        "포스트그레스 인덱스를 걸었는데 쿼리가 여전히 느려",
        "EXPLAIN ANALYZE 결과를 보면 통계가 오래됐습니다. VACUUM ANALYZE를 먼저 실행하세요.",
        "커서 기반 페이지네이션으로 바꾸면 나아질까?",
        "OFFSET 대신 마지막 id를 커서로 넘기면 깊은 페이지도 빠릅니다.",
    ),
    (
        "React 컴포넌트가 무한 렌더링돼",
        "useEffect 의존성 배열에 매번 새로 만든 객체가 들어 있어서 그렇습니다. useMemo로 고정하세요.",
        "다크 모드 토글도 추가해줘",
        "prefers-color-scheme을 읽고 localStorage에 선택을 저장하도록 했습니다.",
    ),
    (
        "Write a rate limiter for the public API",
        "A token bucket in Redis with a Lua script keeps it atomic; 100 requests per minute per key.",
        "What about websocket connections?",
        "Count open sockets per user and close the oldest one when the quota is exceeded.",
    ),
    (
        "동시성 문제로 재고가 음수가 되는 버그가 있어",
        "낙관적 잠금으로 version 칼럼을 비교하고, 실패하면 재시도하세요.",
        "단위 테스트로 레이스 컨디션을 재현할 수 있을까?",
        "barrier로 스레드 두 개를 같은 지점에 세운 뒤 동시에 풀어 주면 됩니다.",
    ),
)

HITS = (
    ("피보나치 관련 대화 이어서", 0),
    ("fibonacci 구현 어떻게 했지?", 0),
    ("시간 복잡도 줄이는 방법 뭐였지", 2),
    ("lru_cache 데코레이터", 3),
    ("fastapi middleware request id", 4),
    ("미들웨어를 순수 asgi로 바꾼 대화 찾아줘", 5),
    ("cors 설정 오류", 6),
    ("please continue the conversation about refresh token rotation", 8),
    ("E1234", 12),
    ("헬스체크 타임아웃 늘리기", 13),
    ("deadlock between transactions", 16),
    ("isolation level cost", 18),
    ("getUserProfile", 21),
    ("analyzer.py", 20),
    ("v2.3.1 changelog", 23),
    ("리액트에서 무한 렌더링 고친 거", 28),
    ("다크모드 토글", 30),
    ("요청 제한 rate limiter", 32),
    ("동시성 버그 재고", 36),
    ("낙관적 락 재시도", 37),
)

UNRELATED = (
    "김치찌개 맛있게 끓이는 레시피",
    "제주도 3박 4일 여행 일정 추천",
    "how to train for a marathon",
    "best pizza places in Naples",
    "양자컴퓨터 얽힘 현상 설명",
    "블록체인 스마트컨트랙트 감사 보고서",
    "tax deductions for freelancers in Germany",
    "고양이 사료 알레르기 증상",
    "quarterly marketing budget spreadsheet",
    "아이 유치원 입학 준비물",
)


async def ten_conversations(orchestrator: Orchestrator) -> None:
    for number, texts in enumerate(CHANNELS):
        messages = [{"role": ("user", "assistant")[at % 2], "text": text} for at, text in enumerate(texts)]
        await orchestrator.registry.save_conversation(f"c{number}", messages, "cursor")


@pytest.fixture
async def registry(seeded_file: Seeded) -> AsyncIterator[Registry]:
    registry = Registry(await seeded_file(ten_conversations))
    yield registry
    registry.close()


async def test_the_right_exchange_comes_first_and_covers_the_request(registry: Registry) -> None:
    for text, wanted in HITS:
        found = await registry.read(lambda tx, text=text: find_messages(tx, text, Scope()))  # type: ignore[misc]
        best = found.ranked[0].candidate
        assert (best.number - 1) // 2 == wanted // 2, text
        assert found.coverage(best.channel_id) >= THRESHOLD, text
        everything = [said for channel in CHANNELS for said in channel]
        assert matched_words(parse_query(text), everything[wanted]), text


async def test_an_unrelated_request_stays_below_the_threshold(registry: Registry) -> None:
    for text in UNRELATED:
        found = await registry.read(lambda tx, text=text: find_messages(tx, text, Scope()))  # type: ignore[misc]
        assert all(found.coverage(one.number) < THRESHOLD for one in found.channels), text
