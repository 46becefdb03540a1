"""How a request was read, as an answer tells it. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from registry.domain import format_time
from registry.search.retrieval import SearchResult
from registry.text.understanding import Understood


def understood(read: Understood, result: SearchResult | None, *, relaxed: bool = False) -> dict[str, Any]:
    """How a request was read, for a reader who wonders; what is empty is left out."""
    search = read.search
    said = {
        "words": [word.text for word in result.query.words] if result else [],
        "also": [wording.text for wording in result.wordings[1:]] if result else [],
        "phrases": list(search.phrases),
        "prefixes": list(search.prefixes),
        "excluded": list(search.excluded),
        "tags": list(search.tags),
        "when": search.when_words,
        "from": _time(search.from_),
        "to": _time(search.to),
        "dates": [f"{_time(span.start)}/{_time(span.end)}" for span in read.dates],
        "sources": list(read.sources),
        "project": search.project,
        "continues": read.goes_on,
        "typos": dict(result.wordings[0].typos) if result else {},
        "relaxed": "words" if relaxed else "",
    }
    return {name: value for name, value in said.items() if value}


def _time(given: datetime | None) -> str | None:
    return format_time(given) if given else None
