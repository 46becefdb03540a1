"""Explain why an answer lacks a message, from the recorded steps of the execution."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from benchmarks.retrieval.product import Product
from registry.registry import Registry
from registry.storage.records.executions import get_execution
from registry.storage.tables import conversation

ELSEWHERE = "another channel came first"
NO_CANDIDATE = "not a candidate"
NOT_RECORDED = "not a candidate, or ranked below those recorded"
RANKED_LOW = "kept, but beyond the limit"


@dataclass(frozen=True)
class Losses:
    """Explains the absence of messages of one registry; `numbers` are the registry's, by message id of the set."""

    registry: Registry
    numbers: Mapping[str, int]

    @classmethod
    async def of(cls, product: Product) -> Losses:
        """Read the numbers of all messages, by which executions name them."""
        rows = await product.registry.read(
            lambda tx: tx.execute(select(conversation.c.id, conversation.c.number)).all()
        )
        numbers: dict[str, int] = {row.id: row.number for row in rows}
        return cls(product.registry, {message: numbers[stored] for message, stored in product.stored_ids().items()})

    async def explain(self, execution: str, missing: Collection[str], *, is_elsewhere: bool) -> dict[str, str]:
        """Return for each missing message where it was lost."""
        if not missing:
            return {}
        run = await self.registry.read(lambda tx: get_execution(tx, execution))
        details = [step["detail"] for step in run["steps"]]
        verdicts = {one["message"]: one for one in _verdicts(details)}
        seen = sum(detail.get("kept", 0) + detail.get("dropped", 0) for detail in details if "verdicts" in detail)
        unseen = NO_CANDIDATE if seen <= len(verdicts) else NOT_RECORDED
        return {one: fate_of(verdicts.get(self.numbers[one]), ELSEWHERE if is_elsewhere else unseen) for one in missing}


def fate_of(verdict: Mapping[str, Any] | None, unseen: str) -> str:
    """Return the reason in a recorded verdict on a message; `unseen` if there is no verdict."""
    if verdict is None:
        return unseen
    return f"cut: {verdict['reason']}" if verdict.get("reason") else RANKED_LOW


def _verdicts(details: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for detail in details:
        yield from (one for one in detail.get("verdicts", ()) if isinstance(one, dict))
