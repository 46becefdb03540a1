"""Realistic conversations in Korean and English, for the tests of the pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from orchestrator.service import Orchestrator
from registry.domain import Actor, Message, Role
from registry.ingest.save import save_messages
from registry.storage.conversations.channels import open_channel

FIBONACCI = "cursor_session_1759156215"
LOGIN = "claude_session_1759242615"
AGENT = "claude-code/6f1c2a"
HOSTILE = "chatgpt_session_1"
LONG = "codex_session_long"
START = datetime(2025, 9, 29, 14, 30, 15, tzinfo=UTC)
LATER = START + timedelta(days=4)

FIBONACCI_TEXTS = [
    (
        "user",
        "이 피보나치 함수가 너무 느려요. `n=40`이면 30초가 걸립니다.\n\n"
        "```python\ndef fib(n):\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\n```",
    ),
    (
        "assistant",
        "같은 값을 **여러 번 계산**하기 때문입니다. 호출 횟수가 지수로 늘어납니다. 메모이제이션을 쓰면 됩니다.\n\n"
        '```python\nfrom functools import cache\n\n\n@cache\ndef fib(n: int) -> int:\n    """n번째 피보나치 수."""\n'
        "    return n if n < 2 else fib(n - 1) + fib(n - 2)  # 한 번씩만 계산\n```\n\n"
        "| 방법 | n=40 | 메모리 |\n|---|---|---|\n| 재귀 | 30 s | O(n) |\n| `cache` | 0.02 ms | O(n) |\n\n"
        "1. 한 번 계산한 값은 다시 계산하지 않습니다.\n2. 재귀 깊이는 그대로이므로 `n > 1000`이면 반복문이 낫습니다.",
    ),
    ("user", "반복문으로도 보여 주세요."),
    (
        "assistant",
        "```diff\n--- a/fib.py\n+++ b/fib.py\n@@ -1,4 +1,6 @@\n def fib(n):\n-    if n < 2:\n-        return n\n"
        "-    return fib(n - 1) + fib(n - 2)\n+    before, value = 0, 1\n+    for _ in range(n):\n"
        "+        before, value = value, before + value\n+    return before\n```\n\n메모리는 O(1)입니다.",
    ),
]
LOGIN_TEXTS = [
    ("user", "Where should the refresh token live: cookie or local storage?"),
    (
        "assistant",
        "In a **cookie** with `HttpOnly`, `Secure` and `SameSite=Strict`. Local storage can be read by any script "
        "on the page.\n\n> A stolen refresh token outlives the session it was stolen from.\n\n"
        '```ts\nres.cookie("refresh", token, { httpOnly: true, secure: true, sameSite: "strict" });\n```\n\n'
        "See [the cookie draft](https://example.org/cookies).",
    ),
    ("user", "And rotation?"),
    ("assistant", "Rotate on every use; if an old one comes back, revoke the whole family."),
]
ATTACKS = (
    "<script>document.title='pwned'</script> <img src=x onerror=\"document.title='pwned'\">\n\n"
    "![pixel](http://127.0.0.1:9/pixel.png) [click](javascript:document.title='pwned')\n\n"
    '<style>body{display:none}</style> <div id="main" hx-get="/" hx-trigger="load">x</div>'
)
EDIT = {
    "file_path": "src/login.py",
    "old_string": "def login(user):\n    return token(user)\n",
    "new_string": "def login(user):\n    check(user)\n    return token(user)\n",
}


def _tool(name: str, params: dict[str, Any], result: str, status: str) -> dict[str, Any]:
    return {"tool": {"name": name, "params": params, "result": result, "status": status, "duration_ms": 1240}}


AGENT_MESSAGES = [
    Message(Role.USER, "Check the user before a login, then run the tests.", LATER),
    Message(Role.THINKING, "The function `login` has no check. I should look at the tests first.", LATER),
    Message(
        Role.TOOL,
        "Edit src/login.py\n\nUpdated 1 file",
        LATER,
        None,
        _tool("Edit", EDIT, "Updated 1 file", "completed"),
    ),
    Message(
        Role.TOOL,
        "Bash pytest -q\n\n" + "FAILED tests/test_login.py::test_unknown_user - KeyError: 'user'\n" * 120,
        LATER,
        None,
        {**_tool("Bash", {"command": "pytest -q"}, "", "failed"), "time": "inferred"},
    ),
    Message(Role.ERROR, "API Error: 529 overloaded_error", LATER),
    Message(
        Role.ASSISTANT,
        "One test fails: `test_unknown_user` expects a *404*. Shall I change the test?",
        LATER,
        None,
        {"time": "inferred"},
    ),
]


async def _log(orchestrator: Orchestrator, channel: str, texts: list[tuple[str, str]], days: int, **meta: Any) -> None:
    messages = [
        {"role": role, "text": text, "timestamp": (START + timedelta(days=days, seconds=40 * i)).isoformat()}
        for i, (role, text) in enumerate(texts)
    ]
    request = {"operation": "conversation_log", "channel": channel, "messages": messages, "metadata": meta}
    answer = await orchestrator.run({**request, "source": meta["source"]}, "test/1.0")
    assert answer["success"], answer


async def read_in(
    orchestrator: Orchestrator, channel: str, messages: list[Message], at: datetime, **metadata: str
) -> None:
    """Store messages as if read from Claude Code's history at this time."""
    given: dict[str, Any] = {"source": "claude-code", "actor": Actor.READER, "metadata": metadata, "received_at": at}
    await orchestrator.registry.write(
        lambda tx: save_messages(tx, open_channel(tx, channel, "claude-code", at), messages, **given)
    )


async def seed(orchestrator: Orchestrator) -> None:
    """Fill a registry: named and unnamed, short and long, friendly and hostile conversations, and one extraction."""
    await _log(
        orchestrator,
        FIBONACCI,
        FIBONACCI_TEXTS,
        1,
        source="cursor",
        project="/home/me/numbers",
        title="피보나치 메모이제이션",
    )
    await _log(orchestrator, LOGIN, LOGIN_TEXTS, 2, source="claude", project="/home/me/shop", title="Refresh tokens")
    await _log(orchestrator, HOSTILE, [("user", ATTACKS), ("assistant", ATTACKS)], 3, source="chatgpt")
    words = ["cache", "배포", "retry", "테스트", "socket", "인증"]
    turns = [
        ("assistant" if i % 2 else "user", f"{words[i % 6]} {words[i // 6 % 6]} step {i}: what happens then?")
        for i in range(300)
    ]
    await _log(orchestrator, LONG, turns, 0, source="codex", project="/home/me/shop", title="A long migration")
    for i in range(70):
        await _log(
            orchestrator, f"gemini_session_{i}", [("user", f"Question {i} about vectors")], -1 - i, source="gemini"
        )
    about = {"title": "Check the user before a login", "project": "/home/me/shop"}
    await read_in(orchestrator, AGENT, AGENT_MESSAGES, LATER, **about)
    await orchestrator.run(
        {"operation": "tag", "channel": FIBONACCI, "query": {"nickname": "fib", "tags": ["python", "성능"]}}
    )
    await orchestrator.run(
        {"operation": "extract", "channel": FIBONACCI, "query": {"text": "피보나치"}, "source": "claude"},
        "claude-desktop/1.2",
    )
