"""What the server does at certain times: once, also when it was not there then, or is there twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.operations.create_backup import kept
from orchestrator.schedule import jobs_of, keeping_schedule, run_due, trigger_of
from orchestrator.service import Orchestrator
from orchestrator.state import Shelf
from registry.errors import InvalidRequest
from registry.registry import Registry
from registry.settings import Settings

pytestmark = pytest.mark.anyio

HERE = datetime(2026, 1, 5).astimezone()
"""Midnight of this machine's clock, which is what a schedule goes by."""


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return HERE.replace(day=day, hour=hour, minute=minute).astimezone(UTC)


@pytest.fixture
async def orchestrator(database_url: str, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    registry = Registry(database_url)
    orchestrator = Orchestrator(registry, shelf=Shelf(tmp_path / "backups"))
    said = {"role": "user", "text": "How do we store sessions?", "timestamp": at(5, 12).isoformat()}
    answer = await orchestrator.run({"operation": "save", "channel": "shop", "messages": [said]})
    assert answer["success"]
    yield orchestrator
    registry.close()


async def briefings(orchestrator: Orchestrator) -> list[str]:
    query = "SELECT channel FROM extract_result WHERE record_type = 'briefing'"
    return await orchestrator.registry.read(lambda tx: list(tx.exec_driver_sql(query).scalars()))


[BRIEFING] = jobs_of(Settings(briefing_at="08:00"))
[BACKUP] = jobs_of(Settings(backup_at="0 3 * * *"))


async def test_the_briefing_of_the_day_before_is_made_when_it_is_due_and_once(orchestrator: Orchestrator) -> None:
    since = at(6, 7)
    assert not await run_due(orchestrator, BRIEFING, since, at(6, 7, 59))
    assert await run_due(orchestrator, BRIEFING, since, at(6, 8))
    assert await briefings(orchestrator) == ["briefing_2026-01-05"]
    assert not await run_due(orchestrator, BRIEFING, since, at(6, 8, 1))


async def test_of_two_servers_one_makes_it(orchestrator: Orchestrator, database_url: str) -> None:
    other = Registry(database_url)
    done = [await run_due(each, BRIEFING, at(6, 7), at(6, 8)) for each in (Orchestrator(other), orchestrator)]
    other.close()
    assert sorted(done) == [False, True]


async def test_of_two_servers_whose_clocks_differ_one_does_each_hours_job_once(orchestrator: Orchestrator) -> None:
    hourly = BRIEFING._replace(at="0 * * * *")
    since = at(6, 8)
    clocks = [at(6, 10, minute) + ahead for minute in (29, 30, 31) for ahead in (timedelta(minutes=90), timedelta())]
    done = [moment for moment in clocks if await run_due(orchestrator, hourly, since, moment)]
    assert done == [at(6, 11, 59), at(6, 12)]


async def test_what_came_due_while_no_server_ran_is_done_at_the_next_start(orchestrator: Orchestrator) -> None:
    assert await run_due(orchestrator, BRIEFING, at(2, 7), at(2, 8))
    assert await briefings(orchestrator) == []  # nothing was said that day
    assert await run_due(orchestrator, BRIEFING, at(6, 11), at(6, 11))
    assert await briefings(orchestrator) == ["briefing_2026-01-05"]


@pytest.mark.parametrize("too_early", [[at(6, 7, 58)], []])
async def test_a_clock_that_was_days_ahead_keeps_nothing_from_being_done_when_it_is_put_right(
    orchestrator: Orchestrator, too_early: list[datetime]
) -> None:
    since = at(20, 7)
    assert await run_due(orchestrator, BRIEFING, since, at(20, 8))
    for moment in too_early:
        assert not await run_due(orchestrator, BRIEFING, since, moment)
    assert await run_due(orchestrator, BRIEFING, since, at(6, 8))
    assert not await run_due(orchestrator, BRIEFING, since, at(6, 8, 1))
    assert "briefing_2026-01-05" in await briefings(orchestrator)


async def test_a_server_looks_at_its_start_and_stops_with_its_schedule(orchestrator: Orchestrator) -> None:
    async with keeping_schedule(orchestrator, Settings(briefing_at="08:00", backup_at="0 3 * * *")):
        pass


async def test_scheduled_backups_are_thinned_by_age_and_others_stay(orchestrator: Orchestrator, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    for number in range(40):
        day = datetime.now(UTC) - timedelta(days=number + 1)
        (folder / f"{day:%Y-%m-%dT%H%M%SZ}-scheduled.ctxr-backup.zip").touch()
        (folder / f"{day:%Y-%m-%dT%H%M%SZ}.ctxr-backup.zip").touch()
    assert await run_due(orchestrator, BACKUP, at(6, 2), at(6, 3))
    series = [path for path in folder.iterdir() if "-scheduled" in path.name]
    assert 8 <= len(series) <= 13
    assert len(list(folder.iterdir())) - len(series) == 40


def test_of_a_series_the_last_of_seven_days_four_weeks_and_twelve_months_stay() -> None:
    made = [datetime(2026, 1, 1, 3, tzinfo=UTC) + timedelta(hours=12 * number) for number in range(800)]
    stay = kept(made)
    assert max(made) in stay
    assert len({one.date() for one in stay if one > max(made) - timedelta(days=7)}) == 7
    assert {(one.year, one.month) for one in stay} >= {(2026, month) for month in range(3, 13)}
    assert kept([]) == set()


@pytest.mark.parametrize("wrong", ["25:00", "soon", "8", "0 8 * *"])
def test_what_is_no_time_is_refused_with_what_is_one(wrong: str) -> None:
    with pytest.raises(InvalidRequest, match="schedule") as refused:
        trigger_of(wrong)
    assert "08:00" in refused.value.details
