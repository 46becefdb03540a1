"""What travels through the graph, and what every node may use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from orchestrator.recorder import Recorder
from orchestrator.requests import Request
from registry.registry import Registry

if TYPE_CHECKING:
    from orchestrator.semantic.meaning import Meaning, Meant


class GeneralState(TypedDict, total=False):
    """The seed's state (004 §2.1), and the path that `plan` chose."""

    operation: str
    source: str
    channel: str | None
    query: dict[str, Any] | None
    data: Any
    transformed_data: Any
    result: Any
    error: str | None
    path: tuple[str, ...]


class ExternalAction(Protocol):
    """Something done outside the registry with what an operation produced, such as publishing a briefing."""

    name: str

    async def perform(self, text: str) -> str:
        """Do it; returns where the outcome can be seen."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run's request and tools. Handed to every node beside the state."""

    request: Request
    registry: Registry
    recorder: Recorder
    search_budget: int = 0
    actions: Sequence[ExternalAction] = ()
    meaning: Meaning | None = None
    meant: Meant | None = None
    """What the request means to the model of `meaning`, asked before the registry is read."""
