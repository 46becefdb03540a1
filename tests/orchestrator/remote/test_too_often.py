"""Test rate limits of the registry elsewhere: machines wait as long as it asks, then continue."""

from __future__ import annotations

import httpx
import pytest

from backoffice import quotas
from backoffice.admission import AdmissionRules
from orchestrator.remote import client
from orchestrator.remote.client import RateLimited
from orchestrator.service import Orchestrator
from registry.access import Level
from registry.storage.exchange import change_feed
from registry.storage.safety.tokens import create_token
from tests.backoffice.application import application
from tests.orchestrator.remote.laptops import Laptops, Line, texts_by_channel

pytestmark = pytest.mark.anyio

TEXTS = [f"{'Is' if at % 2 else 'Why is'} item {at} in the basket?" for at in range(9)]


class Clock:
    """A clock that advances only while a machine waits."""

    def __init__(self) -> None:
        self.now, self.waits = 1000.0, list[float]()

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(quotas, "time", clock)
    monkeypatch.setattr(client, "sleep", clock.sleep)
    return clock


async def test_under_a_small_rate_limit_everything_arrives_late(
    laptops: Laptops, elsewhere: Orchestrator, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = httpx.ASGITransport(application(elsewhere, rules=AdmissionRules(per_minute=2)))
    for laptop, name in zip(laptops, ("kim", "kims-other"), strict=True):
        made = await elsewhere.registry.write(lambda tx, name=name: create_token(tx, name, Level.ADMIN, owner="kim"))  # type: ignore[misc]
        laptop.token = made.secret
        monkeypatch.setattr(laptop, "line", limited)
    monkeypatch.setattr(change_feed, "MAX_ROWS", 2)  # messages in an answer
    one, two = laptops
    for at, text in enumerate(TEXTS):
        await one.log(f"basket {at}", text)
    assert (await one.exchange()).sent == len(TEXTS)
    assert (await two.exchange()).received == len(TEXTS)
    assert await texts_by_channel(two.orchestrator) == await texts_by_channel(one.orchestrator)
    assert len(clock.waits) > len(TEXTS)
    assert set(clock.waits) == {30}


WAITS = {"0": 10 * [1], "60": 10 * [60], "61": [], "99999": [], "tomorrow": [], "": []}
"""Seconds waited for each value of `Retry-After`."""


async def test_a_machine_waits_at_most_a_minute_and_not_for_ever(
    laptops: Laptops, line: Line, clock: Clock, subtests: pytest.Subtests
) -> None:
    one, _ = laptops
    await one.log("basket", *TEXTS)
    for retry_after, waits in WAITS.items():
        refused = httpx.Response(429, headers={"Retry-After": retry_after})
        with subtests.test(retry_after), line.answered_by(lambda: refused):  # noqa: B023
            clock.waits.clear()
            with pytest.raises(RateLimited, match="429"):
                await one.push()
            assert clock.waits == waits
