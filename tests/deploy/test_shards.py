"""Two PostgreSQL nodes, a registry in partitions by the hash of the channel on both (docs/beyond-one-node.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from benchmarks.shards import NAMING, Questions, on_other_node, two_nodes
from deploy.ha.processes import Missing
from registry.storage.tables import metadata

PLAN = Path(__file__).parents[2] / "docs" / "beyond-one-node.md"


@pytest.fixture(scope="module")
def here() -> Iterator[psycopg.Connection[object]]:
    """A connection to the first node."""
    nodes = two_nodes(400)
    try:
        connection = nodes.__enter__()
    except Missing as exc:
        pytest.skip(str(exc))
    yield connection
    nodes.__exit__(None, None, None)


@pytest.mark.slow
def test_two_nodes_find_what_one_finds(here: psycopg.Connection[object]) -> None:
    alone, shared = Questions(here, "public"), Questions(here, "sharded")
    far = on_other_node(here)
    numbers = [row[0] for row in here.execute("SELECT number FROM public.channel").fetchall()]  # type: ignore[index]
    assert 0 < len(far) < len(numbers)
    words = [
        row[0]  # type: ignore[index]
        for row in here.execute(
            "SELECT word FROM ts_stat('SELECT tokens FROM public.message_index') ORDER BY ndoc DESC"
        )
        if not row[0].startswith("zz")  # type: ignore[index]
    ]
    for number in numbers:
        assert shared.in_channel(number, words[0]) == alone.in_channel(number, words[0])
    for asked in (words[:3], words[40:43], ["nowhere"]):
        assert shared.anywhere(asked) == alone.anywhere(asked)
    everything = alone.anywhere(words[:1])
    assert everything
    assert shared.read(everything) == alone.read(everything)


@pytest.mark.slow
@pytest.mark.parametrize(("table", "message"), NAMING.items(), ids=NAMING)
def test_what_belongs_to_a_message_is_on_its_node(
    here: psycopg.Connection[tuple[int]], table: str, message: str
) -> None:
    def count(of: str) -> int:
        row = here.execute(f"SELECT count(*) FROM {of}").fetchone()  # noqa: S608
        return row[0] if row else 0

    for node in (0, 1):
        with_message = (
            f"sharded.{table}_{node} AS one JOIN sharded.conversation_{node} AS m ON m.number = one.{message}"
        )
        assert count(with_message) == count(f"sharded.{table}_{node}") > 0
    assert count(f"sharded.{table}") == count(f"public.{table}") == count("public.conversation")


@pytest.mark.slow
def test_a_search_in_a_channel_asks_one_node(here: psycopg.Connection[object]) -> None:
    shared = Questions(here, "sharded")
    far = on_other_node(here)
    numbers = [row[0] for row in here.execute("SELECT number FROM public.channel").fetchall()]  # type: ignore[index]
    for number in numbers:
        plan = shared.plan(number, "any")
        assert ("Foreign Scan" in plan) == (number in far)
        assert len(re.findall(r"message_index_[01]\b", plan.replace("message_index_0_", "index_of_"))) == 1


def test_the_plan_says_of_every_table_where_it_goes() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PLAN.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted([*metadata.tables, "message_index"])
