"""Where a message that answers was lost, as far as the execution's recorded steps tell."""

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
    """Tells what became of messages of one registry."""

    registry: Registry
    numbers: Mapping[str, int]

    @classmethod
    async def of(cls, product: Product) -> Losses:
        """With the registry's number of each message, by which executions name them."""
        rows = await product.registry.read(
            lambda tx: tx.execute(select(conversation.c.id, conversation.c.number)).all()
        )
        numbers: dict[str, int] = {row.id: row.number for row in rows}
        return cls(product.registry, {message: numbers[stored] for message, stored in product.stored_ids().items()})

    async def explain(self, execution: str, missing: Collection[str], *, is_elsewhere: bool) -> dict[str, str]:
        """For each missing message where it was lost."""
        if not missing:
            return {}
        run = await self.registry.read(lambda tx: get_execution(tx, execution))
        details = [step["detail"] for step in run["steps"]]
        verdicts = {one["message"]: one for one in _verdicts(details)}
        seen = sum(detail.get("kept", 0) + detail.get("dropped", 0) for detail in details if "verdicts" in detail)
        unseen = NO_CANDIDATE if seen <= len(verdicts) else NOT_RECORDED
        return {one: fate_of(verdicts.get(self.numbers[one]), ELSEWHERE if is_elsewhere else unseen) for one in missing}


def fate_of(verdict: Mapping[str, Any] | None, unseen: str) -> str:
    """What a recorded verdict on a message says; `unseen` where there is none."""
    if verdict is None:
        return unseen
    return f"cut: {verdict['reason']}" if verdict.get("reason") else RANKED_LOW


def _verdicts(details: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for detail in details:
        yield from (one for one in detail.get("verdicts", ()) if isinstance(one, dict))
