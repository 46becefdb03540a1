"""The client's own model, asked for other wordings of a question: only where the user and the client want it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from mcp import Client
from mcp.types import CreateMessageResult, ErrorData, TextContent

from mcp_server.server import create_server
from orchestrator.service import Orchestrator
from registry.storage.paging import Page
from registry.storage.records.executions import ExecutionFilter, get_execution, list_executions

pytestmark = pytest.mark.anyio


class Model:
    """A client's model: answers with these lines, or refuses; keeps what it was asked."""

    def __init__(self, lines: Sequence[str] = (), *, refuses: bool = False) -> None:
        self._lines, self._refuses = lines, refuses
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: Any) -> CreateMessageResult | ErrorData:
        self.asked.append(params.messages[0].content.text)
        if self._refuses:
            return ErrorData(code=-1, message="the user said no")
        return CreateMessageResult(role="assistant", model="m-1", content=TextContent(text="\n".join(self._lines)))


@pytest.fixture
async def chat(orchestrator: Orchestrator) -> Orchestrator:
    texts = ["The session cookie lasts 300 seconds", "Renew its Max-Age on each request"]
    messages = [{"role": role, "text": text} for role, text in zip(("user", "assistant"), texts, strict=True)]
    await orchestrator.run({"operation": "save", "channel": "cookie", "messages": messages})
    return orchestrator


ASKED: dict[str, dict[str, Any]] = {
    "extract": {"query": {"text": "people get thrown out"}},
    "search_sessions": {"query": "people get thrown out", "project": "all"},
}


async def _answer(orchestrator: Orchestrator, model: Model | None, tool: str, mode: str, **more: Any) -> dict[str, Any]:
    server = create_server(orchestrator.run, asks_client=more.pop("asks_client", True))
    async with Client(server, mode=mode, sampling_callback=model) as client:
        body = (await client.call_tool(tool, ASKED[tool] | more)).structured_content
    assert isinstance(body, dict)
    return body


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("tool", ASKED)
async def test_the_clients_model_gives_the_words_that_find_it(chat: Orchestrator, tool: str, mode: str) -> None:
    model = Model(["1. session cookie Max-Age", '- "세션 쿠키 만료"', "people get thrown out"])
    body = await _answer(chat, model, tool, mode)
    assert body["ok"]
    assert len(model.asked) == 1
    assert "people get thrown out" in model.asked[0]
    found = body["result"].get("channel") or body["result"]["sessions"][0]["channel"]
    assert found == "cookie"
    await chat.settle()
    page = await chat.registry.read(lambda tx: list_executions(tx, ExecutionFilter(operation=tool), Page()))
    execution = await chat.registry.read(lambda tx: get_execution(tx, page["items"][0]["id"]))
    query = execution["request"]["query"]
    assert query["also"] == ["session cookie Max-Age", "세션 쿠키 만료"]
    assert query["also_by"] == "m-1 (the client's)"


@pytest.mark.parametrize("tool", ASKED)
async def test_nobody_is_asked_who_does_not_offer_it_or_where_it_is_not_wanted(chat: Orchestrator, tool: str) -> None:
    without = await _answer(chat, None, tool, "auto")
    model = Model(["session cookie Max-Age"])
    assert await _answer(chat, model, tool, "auto", asks_client=False) == without
    assert await _answer(chat, model, tool, "legacy", asks_client=False) == without
    assert model.asked == []


async def test_a_question_with_other_wordings_is_not_put_to_the_model(chat: Orchestrator) -> None:
    model = Model(["something else"])
    body = await _answer(chat, model, "search_sessions", "auto", also=["session cookie"])
    assert (model.asked, body["result"]["sessions"][0]["channel"]) == ([], "cookie")


async def test_a_user_who_refuses_gets_the_answer_all_the_same(chat: Orchestrator) -> None:
    model = Model(refuses=True)
    refused = await _answer(chat, model, "search_sessions", "legacy")
    assert len(model.asked) == 1
    assert refused == await _answer(chat, None, "search_sessions", "legacy")
