"""Test questions to the user: before forgetting, and between equally good conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, ClientCapabilities, ElicitRequestParams, ElicitResult, ErrorData

from mcp_server import questions
from mcp_server.questions import can_ask
from mcp_server.server import create_server
from orchestrator.service import Orchestrator

pytestmark = pytest.mark.anyio

Choose = Callable[[str, list[str]], ElicitResult | ErrorData]
FORGET = {"channel": "mail", "dry_run": False}
QUEUE = {"query": {"text": "what about the queue?"}}


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def choosing(number: int) -> Choose:
    return lambda _text, labels: ElicitResult(action="accept", content={"answer": labels[number]})


def declining(_text: str, labels: list[str]) -> ElicitResult:
    return ElicitResult(action="decline", content={"answer": labels[0]})


class User:
    """A user of a client, who collects the questions."""

    def __init__(self, orchestrator: Orchestrator, mode: str, choose: Choose | None = None) -> None:
        self._server = create_server(orchestrator.run, ("default", "admin"), is_local=True)
        self._mode, self._choose = mode, choose
        self.asked: list[tuple[str, list[str]]] = []

    async def answer(self, _ctx: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        labels = params.requested_schema["properties"]["answer"]["enum"]  # type: ignore[union-attr]
        self.asked.append((params.message, labels))
        assert self._choose
        return self._choose(*self.asked[-1])

    async def call(self, called: str, arguments: dict[str, Any]) -> dict[str, Any]:
        listener: Any = self.answer if self._choose else None
        async with Client(self._server, mode=self._mode, elicitation_callback=listener) as client:
            answer = await client.call_tool(called, arguments)
        assert isinstance(answer, CallToolResult)
        assert answer.structured_content
        result: dict[str, Any] = answer.structured_content["result"]
        return result


async def mail_of(orchestrator: Orchestrator, count: int = 34) -> None:
    messages = [{"role": "user", "text": f"Part {number} of the mail."} for number in range(count)]
    await orchestrator.run({"operation": "conversation_log", "channel": "mail", "messages": messages})


async def queues_of(orchestrator: Orchestrator) -> None:
    for place in ("mailer", "printer"):
        messages = [{"role": "user", "text": f"The queue of the {place} is full."}]
        await orchestrator.run({"operation": "conversation_log", "channel": place, "messages": messages})


async def test_forgetting_much_is_done_when_the_user_agrees(orchestrator: Orchestrator, mode: str) -> None:
    await mail_of(orchestrator)
    user = User(orchestrator, mode, choosing(0))
    receipt = (await user.call("forget", FORGET))["receipt"]
    assert (receipt["messages"], receipt["is_dry_run"]) == (34, False)
    assert user.asked == [
        ("Forget this for good? Messages: 34, whole conversations: 1", ["Forget it", "Keep it"]),
    ]
    assert await orchestrator.registry.get_conversations("mail") == []


@pytest.mark.parametrize("choose", [choosing(1), declining])
async def test_nothing_is_forgotten_if_the_user_declines(orchestrator: Orchestrator, mode: str, choose: Choose) -> None:
    await mail_of(orchestrator)
    result = await User(orchestrator, mode, choose).call("forget", FORGET)
    assert result["receipt"]["is_dry_run"]
    assert "nothing was forgotten" in result["note"]
    assert await orchestrator.registry.get_conversations("mail")


async def test_a_dry_run_asks_no_question(orchestrator: Orchestrator, mode: str) -> None:
    await mail_of(orchestrator)
    user = User(orchestrator, mode, choosing(0))
    assert (await user.call("forget", {"channel": "mail"}))["receipt"]["is_dry_run"]
    assert user.asked == []


async def test_the_user_is_asked_again_if_the_number_of_messages_grows_meanwhile(orchestrator: Orchestrator) -> None:
    await mail_of(orchestrator)
    user = User(orchestrator, "auto", choosing(0))
    answer = user.answer

    async def while_more_comes(ctx: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        await mail_of(orchestrator, 35)
        return await answer(ctx, params)

    user.answer = while_more_comes  # type: ignore[assignment, method-assign]
    await user.call("forget", FORGET)
    assert [text.partition(": ")[2][:2] for text, _ in user.asked] == ["34", "35"]


async def test_a_client_that_cannot_ask_forgets_without_a_question(orchestrator: Orchestrator, mode: str) -> None:
    await mail_of(orchestrator)
    assert not (await User(orchestrator, mode).call("forget", FORGET))["receipt"]["is_dry_run"]


async def test_the_user_chooses_between_two_equally_good_conversations(orchestrator: Orchestrator, mode: str) -> None:
    await queues_of(orchestrator)
    plain = await User(orchestrator, mode).call("extract", QUEUE)
    assert plain["confidence"] == "low"
    user = User(orchestrator, mode, choosing(1))
    result = await user.call("extract", QUEUE)
    [(text, labels)] = user.asked
    assert (text, len(labels)) == ("Which conversation do you mean?", 2)
    assert {plain["channel"], result["channel"]} == {"mailer", "printer"}
    assert "confidence" not in result
    declined = await User(orchestrator, mode, declining).call("extract", QUEUE)
    assert (declined["channel"], "candidates" in declined) == (plain["channel"], True)


async def test_a_better_conversation_is_given_without_a_question(orchestrator: Orchestrator, mode: str) -> None:
    await queues_of(orchestrator)
    user = User(orchestrator, mode, choosing(1))
    result = await user.call(
        "extract", {"query": {"text": "how was the full queue of the mailer cured without a restart?"}}
    )
    assert (result["channel"], [one["channel"] for one in result["candidates"]]) == ("mailer", ["printer"])
    assert user.asked == []


async def test_a_client_that_fails_to_ask_gets_the_plain_answer(orchestrator: Orchestrator) -> None:
    await queues_of(orchestrator)

    def failing(_text: str, _labels: list[str]) -> ErrorData:
        return ErrorData(code=-32603, message="no window is open")

    assert "candidates" in await User(orchestrator, "legacy", failing).call("extract", QUEUE)


async def test_an_absent_user_is_not_waited_for(orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch) -> None:
    await queues_of(orchestrator)
    monkeypatch.setattr(questions, "ANSWER_S", 0.01)
    user = User(orchestrator, "legacy", choosing(0))
    user.answer = lambda *_: asyncio.sleep(30)  # type: ignore[assignment, method-assign]
    assert "candidates" in await asyncio.wait_for(user.call("extract", QUEUE), 10)


def test_only_a_client_that_supports_forms_is_asked() -> None:
    cases: list[tuple[dict[str, Any], bool]] = [({}, True), ({"form": {}, "url": {}}, True), ({"url": {}}, False)]
    for declared, can in cases:
        capabilities = ClientCapabilities.model_validate({"elicitation": declared})
        context: Any = SimpleNamespace(session=SimpleNamespace(client_capabilities=capabilities))
        assert can_ask(context) is can
