"""No table is forgotten, and no statement gets by."""

from __future__ import annotations

import pytest

from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.errors import InternalError
from registry.registry import Registry
from registry.storage.conversations.channels import ChannelFilter, list_channels
from registry.storage.paging import Page
from registry.storage.records.executions import ExecutionFilter, list_executions
from registry.storage.safety.visibility import FREE, ROWS, restricted
from registry.storage.tables import metadata
from tests.seeded import Seeded

ALICE = Access("alice", Level.READ, ("a_*",))


def test_of_every_table_it_is_said_what_is_seen() -> None:
    assert metadata.tables.keys() == ROWS.keys() | FREE


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT rowid FROM message_index",
        "SELECT term FROM message_term",
        "VACUUM",
        "WITH x AS (SELECT 1) SELECT * FROM x",
    ],
)
def test_what_cannot_be_restricted_is_refused(dialect: str, statement: str) -> None:
    with pytest.raises(InternalError):
        restricted(dialect, statement, ALICE)


NAMES = ["it's", "100%", "100x", "a_b", "axb", "[ab]", "a", "back\\slash", "E'", "channel", "A_B"]


async def hello(orchestrator: Orchestrator) -> None:
    """Said in a channel of each name."""
    for name in NAMES:
        await orchestrator.registry.save_conversation(name, [{"role": "user", "text": "hello"}], "test")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("pattern", "seen"),
    [
        *((name, [name]) for name in NAMES),
        ("100?", ["100%", "100x"]),
        ("a*", ["a", "a_b", "axb"]),
        ("*'*", ["E'", "it's"]),
        ("x' OR '1'='1", []),
        ("\\' OR 1=1 --", []),
    ],
)
async def test_a_pattern_means_its_letters(seeded: Seeded, pattern: str, seen: list[str]) -> None:
    registry = Registry(await seeded(hello))
    try:
        shown = registry.seen_by(Access("it's 100% \\", Level.READ, (pattern,)))
        page = await shown.read(lambda tx: list_channels(tx, ChannelFilter(), Page()))
        assert sorted(one["channel"] for one in page["items"]) == seen
        assert page["total"] == len(seen)
        assert (await shown.read(lambda tx: list_executions(tx, ExecutionFilter(), Page())))["total"] == 0
    finally:
        registry.close()
