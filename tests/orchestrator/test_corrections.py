"""Test the corrections that are proposed to be remembered: of one project, or of all."""

from typing import Any

import pytest

from orchestrator.service import Orchestrator

pytestmark = pytest.mark.anyio


async def proposed(orchestrator: Orchestrator, **query: str) -> list[tuple[str, int]]:
    answer = await orchestrator.run({"operation": "remember", "query": query})
    return [(one["text"], one["chats"]) for one in answer["proposed"]]


@pytest.mark.both_databases
async def test_corrections_of_a_projects_chats_are_counted_and_everywhere_those_of_all(
    orchestrator: Orchestrator,
) -> None:
    for number, (project, text) in enumerate(
        [
            ("/home/me/shop", "no, use pnpm"),
            ("/home/me/shop", "use pnpm instead of npm"),
            ("/home/me/till", "아니 pnpm 써"),
        ]
    ):
        message = {"role": "user", "text": text, "timestamp": f"2026-01-0{number + 1}T12:00:00Z"}
        log: dict[str, Any] = {"operation": "save", "channel": f"c{number}", "messages": [message], "source": "cursor"}
        await orchestrator.run({**log, "metadata": {"project": project}})
    assert await proposed(orchestrator, project="/home/me/shop") == [("use pnpm instead of npm", 2)]
    assert await proposed(orchestrator, project="/home/me/till") == []
    assert await proposed(orchestrator) == [("아니 pnpm 써", 3)]


async def test_what_the_user_asked_to_remember_in_several_chats_is_proposed(orchestrator: Orchestrator) -> None:
    for number, text in enumerate(("remember: use pnpm", "From now on use pnpm", "remember the bug of yesterday?")):
        message = {"role": "user", "text": text, "timestamp": f"2026-01-0{number + 1}T12:00:00Z"}
        await orchestrator.run(
            {"operation": "save", "channel": f"c{number}", "messages": [message], "source": "cursor"}
        )
    assert await proposed(orchestrator) == [("From now on use pnpm", 2)]
