"""Test the daily briefing: its contents, and that an external system gets it once."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.server import MCPServer

from orchestrator import graph
from orchestrator.operations import daily_briefing as briefing
from orchestrator.outside import tools
from orchestrator.outside.tools import MAX_PART, McpAction, fill
from orchestrator.service import Orchestrator
from orchestrator.state import OUTSIDE_ATTEMPTS
from registry.registry import Registry
from registry.settings import ActionSettings, CheckSettings
from registry.storage.paging import Page
from registry.storage.records.executions import get_execution, list_executions
from registry.storage.records.extract_results import get_result

pytestmark = pytest.mark.anyio

DAY = "2026-01-05"
RUN = {"operation": "daily_briefing", "query": {"date": DAY}}


class Killed(BaseException):
    """An exception that no product code catches."""


class PageMaker:
    """An external system that makes a page of each briefing, or fails with `fault`."""

    name = "pages"

    def __init__(self) -> None:
        self.made: list[Mapping[str, str]] = []
        self.attempts = 0
        self.fault: BaseException | None = None
        self.has_it: bool | None = None

    async def was_done(self, about: Mapping[str, str]) -> bool | None:
        return self.has_it

    async def perform(self, about: Mapping[str, str]) -> str:
        self.attempts += 1
        if self.fault:
            raise self.fault
        self.made.append(about)
        return f"page {len(self.made)}"


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> PageMaker:
    monkeypatch.setattr(graph, "OUTSIDE_RETRY", graph.OUTSIDE_RETRY._replace(initial_interval=0.01))
    return PageMaker()


@pytest.fixture
async def orchestrator(database_url: str, pages: PageMaker) -> AsyncIterator[Orchestrator]:
    registry = Registry(database_url)
    orchestrator = Orchestrator(registry, actions=[pages])
    await log(orchestrator, "shop", "How do we store sessions?", "Let's go with Redis. TODO: the migration.")
    yield orchestrator
    registry.close()


async def log(orchestrator: Orchestrator, channel: str, *texts: str, project: str = "/home/me/shop") -> None:
    messages = [
        {"role": ("user", "assistant")[i % 2], "text": text, "timestamp": f"{DAY}T12:00:{i:02}Z"}
        for i, text in enumerate(texts)
    ]
    given = {"operation": "save", "channel": channel, "messages": messages, "source": "cursor"}
    answer = await orchestrator.run({**given, "metadata": {"project": project}})
    assert answer["success"], answer


async def test_a_briefing_has_decisions_then_open_points_then_work_by_project(orchestrator: Orchestrator) -> None:
    await log(orchestrator, "chat", "What is a monad?", "A way to chain computations.", project="/home/me/haskell")
    made = (await orchestrator.run(RUN))["briefing"]
    assert (made["date"], made["by"], made["id"][:6]) == (DAY, "extractive", "brief_")
    text = made["text"]
    assert text.startswith(f"# Briefing of {DAY}\n")
    assert "  - Asked: What is a monad?\n" in text
    parts = [
        "## Decided",
        "- **shop** · cursor: Let's go with Redis.",
        "## Open",
        "TODO: the migration.",
        "### haskell",
    ]
    places = [text.index(part) for part in [*parts, "What is a monad?", "### shop"]]
    assert places == sorted(places)


async def test_what_a_fork_copied_is_told_once(orchestrator: Orchestrator) -> None:
    said = "How do we send invoices?", "Let's go with RabbitMQ."
    await log(orchestrator, "mail", *said)
    await log(orchestrator, "fork", *said, "And the dead letters?", "Let's keep them for a week.")
    text = (await orchestrator.run(RUN))["briefing"]["text"]
    assert text.count("RabbitMQ") == 1
    assert text.count("dead letters") == 1


async def test_a_decision_that_was_changed_later_in_the_day_is_left_out(orchestrator: Orchestrator) -> None:
    for channel, hour, minutes in (("first", 8, 15), ("second", 9, 45)):
        said = ("user", "How long now?"), ("assistant", f"We decided that refresh tokens live {minutes} minutes.")
        messages = [{"role": role, "text": text, "timestamp": f"{DAY}T{hour:02}:00:00Z"} for role, text in said]
        given = {"operation": "save", "channel": channel, "messages": messages, "source": "cursor"}
        await orchestrator.run({**given, "metadata": {"project": "/home/me/shop"}})
    text = (await orchestrator.run(RUN))["briefing"]["text"]
    decided = text[text.index("## Decided") : text.index("## Open")]
    assert "live 45 minutes" in decided
    assert "live 15 minutes" not in decided


async def test_a_briefing_is_in_korean_if_korean_was_spoken_or_asked_for(orchestrator: Orchestrator) -> None:
    korean = await orchestrator.run({**RUN, "query": {"date": DAY, "language": "ko"}})
    assert "## 결정한 것" in korean["briefing"]["text"]
    answered = "It fails in test_renewal: expected 200, got 401. " * 40
    await log(
        orchestrator, "집", "세션은 어디에 저장할까", answered, "레디스로 가자", answered, "만료는 열두 시간으로 하자"
    )
    assert "## 결정한 것" in (await orchestrator.run(RUN))["briefing"]["text"]


async def test_the_same_briefing_is_delivered_once(orchestrator: Orchestrator, pages: PageMaker) -> None:
    first, second = [(await orchestrator.run(RUN, execution_id=f"exec_{i}"))["briefing"] for i in range(2)]
    assert first == second
    kept = await orchestrator.registry.read(lambda tx: get_result(tx, first["id"]))
    assert kept.metadata["execution_id"] == "exec_0", "a repeated run keeps the id of the first"
    assert first["actions"] == [{"name": "pages", "status": "done", "result": "page 1"}]
    assert pages.made == [{"id": first["id"], "date": DAY, "text": first["text"]}]
    again = await orchestrator.run({**RUN, "query": {"date": DAY, "again": True}})
    assert (again["briefing"], len(pages.made)) == (first, 1), "`again` repeats only unfinished deliveries"


@pytest.mark.usefixtures("without_pauses")
async def test_if_the_external_system_fails_the_briefing_is_stored_and_delivered_later(
    orchestrator: Orchestrator, pages: PageMaker
) -> None:
    pages.fault = ConnectionError("nobody answers")
    failed = await orchestrator.run(RUN)
    assert (failed["success"], failed["partly_failed"], pages.made) == (True, True, [])
    assert pages.attempts == OUTSIDE_ATTEMPTS
    pages.fault = None
    again = await orchestrator.run(RUN)
    assert (again["briefing"]["id"], again["partly_failed"]) == (failed["briefing"]["id"], False)
    assert len(pages.made) == 1


async def test_a_run_killed_before_the_answer_makes_no_second_page(
    orchestrator: Orchestrator, pages: PageMaker
) -> None:
    pages.fault = KeyboardInterrupt()  # like a kill: no product code runs after it
    with pytest.raises(KeyboardInterrupt):
        await briefing.publish(*await interrupted_run(orchestrator, pages))
    pages.fault = None
    after = await orchestrator.run(RUN)
    assert (pages.made, after["briefing"]["actions"]) == ([], [{"name": "pages", "status": "started"}])
    asked = await orchestrator.run({**RUN, "query": {"date": DAY, "again": True}})
    assert (len(pages.made), asked["partly_failed"]) == (1, False)


async def test_a_killed_run_is_recorded_as_interrupted(
    orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: Any) -> None:
        raise Killed

    killed = replace(graph.steps_of("daily_briefing"), query=kill)
    monkeypatch.setattr(graph, "steps_of", lambda _: killed)
    with pytest.raises(Killed):
        await orchestrator.run(RUN)
    [run] = (await briefings(orchestrator))["items"]
    assert (run["status"], run["error"]["message"]) == ("failed", "Started, but not finished.")


async def test_a_run_is_recorded_once_with_all_its_steps(orchestrator: Orchestrator) -> None:
    await orchestrator.run(RUN)
    [run] = (await briefings(orchestrator))["items"]
    recorded = await orchestrator.registry.read(lambda tx: get_execution(tx, run["id"]))
    assert (run["status"], run["error"], "briefing" in recorded["result"]) == ("succeeded", None, True)
    path = ["plan", "cr_query", "transform", "external_action", "cr_write"]
    assert [step["node"] for step in recorded["steps"]] == path
    nothing = await orchestrator.run({"operation": "daily_briefing", "query": {"date": "2020-01-01"}})
    assert nothing["error"]["code"] == "NOT_FOUND"


async def briefings(orchestrator: Orchestrator) -> dict[str, Any]:
    wanted = {"operation": "daily_briefing"}
    return await orchestrator.registry.read(lambda tx: list_executions(tx, wanted, Page()))


@pytest.mark.parametrize(("has_it", "made"), [(True, 0), (False, 1)])
async def test_after_a_kill_the_external_system_is_asked_for_the_page(
    orchestrator: Orchestrator, pages: PageMaker, has_it: bool, made: int
) -> None:
    pages.fault = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        await briefing.publish(*await interrupted_run(orchestrator, pages))
    pages.fault, pages.has_it = None, has_it
    after = await orchestrator.run(RUN)
    assert (len(pages.made), after["partly_failed"], after["briefing"]["actions"][0]["status"]) == (made, False, "done")


async def test_a_page_whose_answer_was_lost_is_not_made_again(orchestrator: Orchestrator, pages: PageMaker) -> None:
    pages.fault = TimeoutError("no answer")
    assert (await orchestrator.run(RUN))["partly_failed"]
    pages.fault, pages.has_it = None, True
    after = await orchestrator.run(RUN)
    assert (pages.made, after["partly_failed"]) == ([], False)


async def interrupted_run(orchestrator: Orchestrator, pages: PageMaker) -> Any:
    """Run a briefing up to its external actions."""
    from orchestrator.operations.daily_briefing import BriefingRequest
    from orchestrator.recording.recorder import Recorder
    from orchestrator.state import Run

    run = Run(orchestrator.registry, Recorder("daily_briefing", "test", None, None), actions=[pages])
    request = BriefingRequest.model_validate({"query": RUN["query"]})
    with run.recorder.step("external_action"):
        day = await orchestrator.registry.read(lambda tx: briefing.read_day(tx, run, request))
        return run, request, {"data": day, **await briefing.write_text(run, request, {"data": day})}


NOTES = """
from pathlib import Path
from mcp.server import MCPServer

server = MCPServer("notes")

@server.tool()
def write_file(path: str, content: str) -> str:
    if Path(path).exists():
        raise ValueError("it is there already")
    Path(path).write_text(content, encoding="utf-8")
    return f"written to {path}"

server.run("stdio")
"""


async def test_a_briefing_becomes_a_note_by_a_tool_of_another_mcp_server(sqlite_url: str, tmp_path: Path) -> None:
    server = tmp_path / "notes.py"
    server.write_text(NOTES, encoding="utf-8")
    settings = ActionSettings(
        name="notes",
        tool="write_file",
        command=[sys.executable, "$SERVER"],
        arguments={"path": str(tmp_path / "{date}.md"), "content": "{text}"},
    )
    registry = Registry(sqlite_url)
    orchestrator = Orchestrator(registry, actions=[McpAction(settings, {"SERVER": str(server)})])
    await log(orchestrator, "shop", "What of {date} and {text}?", "They stay as they are.")
    done = (await orchestrator.run(RUN))["briefing"]
    assert done["actions"] == [{"name": "notes", "status": "done", "result": f"written to {tmp_path / DAY}.md"}]
    assert (tmp_path / f"{DAY}.md").read_text(encoding="utf-8") == done["text"]
    assert "{date} and {text}" in done["text"]
    registry.close()


async def test_a_refusal_that_a_server_returns_as_an_answer_is_a_failure(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = MCPServer("pages")
    refusal = '{"status": 400, "object": "error", "message": "too long"}'
    server.tool(name="make")(lambda: refusal)
    server.tool(name="list")(lambda: f"a page of {DAY}")
    monkeypatch.setattr(tools, "_target", lambda *_: server)
    registry = Registry(sqlite_url)
    check = CheckSettings(tool="list", finds="{date}")
    settings = ActionSettings(name="pages", tool="make", command=["pages"], check=check)
    orchestrator = Orchestrator(registry, actions=[McpAction(settings)])
    await log(orchestrator, "shop", "Sessions?", "Redis.")
    [failed] = (await orchestrator.run(RUN))["briefing"]["actions"]
    assert (failed["status"], "too long" in failed["error"]) == ("failed", True)
    [found] = (await orchestrator.run(RUN))["briefing"]["actions"]
    assert found == {"name": "pages", "status": "done", "result": "was there already"}
    registry.close()


def test_a_list_item_with_a_placeholder_for_parts_is_repeated_for_each_part() -> None:
    text = "line\n" * 500
    made = fill({"children": [{"text": {"content": "{part}"}}, "end"]}, {"id": "1", "date": DAY, "text": text})
    *parts, end = made["children"]
    assert (end, len(parts)) == ("end", 3)
    assert all(len(one["text"]["content"]) <= MAX_PART for one in parts)
    assert "".join(one["text"]["content"] for one in parts) == text


def test_placeholders_in_nested_arguments_are_filled() -> None:
    about = {"id": "brief_1", "date": DAY, "text": "{id}"}
    assert fill({"a": [{"b": "{date}: {text}"}], "n": 1}, about) == {"a": [{"b": f"{DAY}: {{id}}"}], "n": 1}
