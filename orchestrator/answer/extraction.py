"""What was read for one extraction: the values that pass from the reading of a registry to the writing of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.answer.delivery import Turn
from orchestrator.answer.relevance import Judged
from orchestrator.answer.selection import MessageDict
from registry.search.retrieval import SearchResult
from registry.storage.conversations.channels import ChannelRow
from registry.storage.safety.sealing import Seal
from registry.text.ranking.confidence import Confidence
from registry.text.request.understanding import Understood


@dataclass(frozen=True, slots=True)
class KeptRanking:
    """Where an earlier extraction's ranking goes on, so that its next page is what it would have been then."""

    result_id: str
    offset: int


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was read of one channel: `ranked` turns best first, and its last turns in order.

    `seqs` are the places of all its messages of the roles asked for. Where nothing was asked by words, `ranked` is
    empty and `has_older` says whether there is more before `end`.
    """

    channel: ChannelRow
    read: Understood
    ranked: list[list[MessageDict]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    hits: frozenset[int] = frozenset()
    end: list[list[MessageDict]] = field(default_factory=list)
    recent: list[MessageDict] = field(default_factory=list)
    seqs: Sequence[int] = ()
    result: SearchResult | None = None
    verdicts: list[Judged] = field(default_factory=list)
    confidence: Confidence | None = None
    candidates: list[dict[str, Any]] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    taken_back: Mapping[str, str] = field(default_factory=dict)
    """For the ids of messages those of the later ones that take them back."""
    relaxed: str = ""
    """What of the request was given up because nothing was found with it: its words, or its time."""
    note: str = ""
    has_older: bool = False
    seal: Seal | None = None
    """For the cursor of what is older."""
    kept: KeptRanking | None = None
