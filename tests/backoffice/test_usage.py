"""Test GET /bo/usage: tokens and their list price."""

from __future__ import annotations

import httpx
import pytest

from orchestrator.service import Orchestrator
from tests.backoffice.conftest import problem_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def spent(orchestrator: Orchestrator) -> None:
    for channel, output in (("baskets", 4000), ("login", 1000)):
        usage = {"input_tokens": 10, "output_tokens": output}
        said = {"role": "assistant", "text": "Done.", "model": "claude-opus-4-5", "usage": usage}
        await orchestrator.run({"operation": "save", "channel": channel, "messages": [said], "source": "claude-code"})


@pytest.mark.usefixtures("spent")
async def test_tokens_and_their_price_are_grouped_as_asked(http: httpx.AsyncClient) -> None:
    found = (await http.get("/bo/usage", params={"by": "session"})).json()
    assert [(row["name"], row["output_tokens"]) for row in found["rows"]] == [("baskets", 4000), ("login", 1000)]
    assert found["total"]["cost_usd"] == pytest.approx((20 * 5 + 5000 * 25) / 1e6)
    one = (await http.get("/bo/usage", params={"by": "model", "channel": "login"})).json()
    assert [(row["name"], row["output_tokens"]) for row in one["rows"]] == [("claude-opus-4-5", 1000)]


async def test_an_unknown_grouping_is_refused(http: httpx.AsyncClient) -> None:
    assert "by" in problem_of(await http.get("/bo/usage", params={"by": "week"}), 400)["details"]
    assert problem_of(await http.get("/bo/usage", params={"channel": "nowhere"}), 404)["code"] == "NOT_FOUND"
