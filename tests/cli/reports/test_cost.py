"""Test `ctxr cost`, and the tokens in `ctxr show`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.monitor.prices import use_prices
from tests.cli.conftest import Ctxr

SAID = {
    "channel": "baskets",
    "messages": [
        {"role": "user", "text": "Why does the basket lose its items?", "timestamp": "2026-05-04T09:00:00Z"},
        {
            "role": "assistant",
            "text": "It makes a new list.",
            "timestamp": "2026-05-04T09:00:10Z",
            "model": "claude-opus-4-5",
            "usage": {"input_tokens": 20_000, "output_tokens": 4_000, "cache_read_input_tokens": 100_000},
        },
    ],
    "meta": {"source": "claude-code", "project": "/home/me/shop", "title": "The basket"},
}
PRICE = 0.1 + 0.1 + 0.05


@pytest.fixture
def spent(ctxr: Ctxr) -> Iterator[Ctxr]:
    """Return a registry with one answer that has token counts; prices are the built-in ones."""
    assert ctxr("log", "-", given=SAID).exit_code == 0
    yield ctxr
    use_prices(Path(), are_shown=True)


@pytest.mark.parametrize(
    ("by", "name"),
    [("project", "shop"), ("session", "The basket"), ("model", "claude-opus-4-5"), ("client", "claude-code")],
)
def test_tokens_and_their_price_are_grouped_by_each_field(spent: Ctxr, by: str, name: str) -> None:
    lines = spent("cost", "--by", by).output.splitlines()
    assert lines[0].split() == [by, "input", "output", "cache", "read", "list", "price"]
    assert [line.split("  ")[0] for line in lines[1:]] == [name, "total"]
    assert lines[1].split()[-4:] == ["20,000", "4,000", "100,000", "$0.25"]


def test_a_time_range_narrows_the_cost(spent: Ctxr) -> None:
    assert json.loads(spent("cost", "--from", "2026-05-05", "--json").output)["total"]["answers"] == 0
    [row] = json.loads(spent("cost", "--by", "day", "--to", "2026-05-04", "--json").output)["rows"]
    assert row["cost_usd"] == pytest.approx(PRICE)


def test_a_session_is_shown_with_its_tokens(spent: Ctxr) -> None:
    assert "Tokens:   20,000 input, 4,000 output, 100,000 cache; list price $0.25" in spent("show", "1").output


def test_without_prices_only_tokens_are_shown(spent: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXR_PRICES", "off")
    found = json.loads(spent("cost", "--json").output)
    assert (found["total"]["cost_usd"], found["unpriced_models"]) == (None, [])
    assert "price" not in spent("show", "1").output
    assert "price" not in spent("cost").output


def test_a_price_table_that_cannot_be_read_is_named(spent: Ctxr, empty_home: Path) -> None:
    (empty_home / "ctxr" / "prices.toml").write_text('[[price]]\nmodels = ["x"]\ninput = -1\n', encoding="utf-8")
    answer = spent("cost")
    assert answer.exit_code == 2
    assert "prices.toml: since: Field required" in answer.stderr
    assert "list price $0.25" in spent("show", "1").output
