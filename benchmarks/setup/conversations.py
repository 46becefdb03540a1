"""Generate conversations of a bilingual programmer with an assistant, reproducibly for each seed.

A few subjects are frequent and most are rare, as in real conversations. Questions ask about all subjects equally.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

Message = dict[str, str]

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LENGTHS = range(300, 601)  # characters of one message
SUBJECT_LASTS = range(4, 30)  # messages until the conversation turns to something else

SUBJECTS = (
    "fibonacci cache", "결제 모듈", "login session", "로그 수집기", "search index", "이미지 업로드",
    "billing report", "알림 메일", "rate limiter", "사용자 권한", "date parser", "배포 스크립트",
    "websocket reconnect", "번역 파일", "retry queue", "테스트 데이터", "schema migration", "주문 상태",
    "feature flags", "지도 화면", "PDF export", "장바구니 합계", "token refresh", "백업 정책",
    "thread pool", "댓글 페이지", "CSV import", "환불 처리", "memory leak", "관리자 화면",
)  # fmt: skip
ASPECTS = (
    "속도 개선", "timeout", "메모리 사용량", "naming", "예외 처리", "unit tests", "동시성 문제", "logging",
    "타입 오류", "pagination", "설정 파일", "dependency upgrade", "문서화", "edge cases", "보안 점검", "cache",
)  # fmt: skip
SENTENCES = (
    "{subject}에서 {aspect} 문제를 어떻게 해결하면 좋을까요?",
    "{subject}의 {name} 함수를 다시 작성했고 {aspect}도 함께 확인했습니다.",
    "{name}.py 파일의 {number}번째 줄에서 오류가 나는데 원인을 모르겠어요.",
    "이 부분은 먼저 {aspect} 기준을 정하고 나서 고치는 편이 안전합니다.",
    "I changed `{name}` so that the {subject} no longer blocks, see the {aspect} section.",
    "The {aspect} of the {subject} is fine now, but {name} still takes {number} ms in the worst case.",
    "Could you explain why {name}({number}) is called twice when the page loads?",
    "Let us keep the old behaviour behind a flag and remove it after the release.",
    "```python\ndef {name}(items):\n    return [item for item in items if item.total > {number}]\n```",
    "네, 그렇게 진행해 주세요. 끝나면 결과를 요약해서 알려 주세요.",
)
VERBS = ("load", "parse", "merge", "check", "render", "store", "resolve", "split", "refresh", "collect")
NOUNS = ("orders", "rows", "tokens", "users", "events", "chunks", "routes", "prices", "labels", "files")


def conversation(seed: int, count: int, lengths: Sequence[int] = LENGTHS) -> list[Message]:
    """Return `count` messages: user and assistant in turn, one every 20 seconds."""
    dice = random.Random(seed)
    subjects = subjects_in_order(dice)
    return [
        {
            "role": ("user", "assistant")[number % 2],
            "text": text_about(next(subjects), dice, lengths),
            "timestamp": (START + timedelta(seconds=20 * number)).isoformat(),
        }
        for number in range(count)
    ]


def questions(seed: int) -> Iterator[str]:
    """Yield search texts without end, each about a subject of the conversations."""
    dice = random.Random(seed)
    while True:
        yield f"{dice.choice(SUBJECTS)} {dice.choice(ASPECTS)}"


def zipf_choice(choices: Sequence[str], dice: random.Random) -> str:
    """Return one of the choices, the n-th 1/n as often as the first (Zipf)."""
    return dice.choices(choices, weights=[1 / rank for rank in range(1, len(choices) + 1)])[0]


def subjects_in_order(dice: random.Random) -> Iterator[str]:
    """Yield the subject of each message, without end; a subject lasts for several messages."""
    while True:
        yield from [zipf_choice(SUBJECTS, dice)] * dice.choice(SUBJECT_LASTS)


def text_about(subject: str, dice: random.Random, lengths: Sequence[int] = LENGTHS) -> str:
    """Return a message of a random length from `lengths`, in characters."""
    length, text = dice.choice(lengths), ""
    while len(text) < length:
        text += sentence(subject, dice) + " "
    return text[:length].rstrip()


def sentence(subject: str, dice: random.Random) -> str:
    """Return a random sentence with an identifier and a number."""
    return dice.choice(SENTENCES).format_map(
        {
            "subject": subject,
            "aspect": zipf_choice(ASPECTS, dice),
            "name": f"{dice.choice(VERBS)}_{dice.choice(NOUNS)}",
            "number": dice.randrange(1000),
        }
    )
