"""Compare the results of the search page (`/?q=`) with those of the tool `search_sessions`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape

import httpx

from backoffice.admission import ON_LOOPBACK
from backoffice.app import assemble, use_orchestrator
from benchmarks.retrieval.product import product_with
from benchmarks.retrieval.question_sets import QuestionSet
from orchestrator.service import Orchestrator

HEADS = ("set", "questions", "same place", "first on the page", "first in search_sessions")
SHOWN = 50
ROW = re.compile(r'<article class="channel"[^>]* data-id="([^"]*)"')


@dataclass
class Places:
    """Counts for one set: questions, equal results, and right conversations in first place."""

    name: str
    questions: int = 0
    same: int = 0
    first: int = 0
    first_in_tool: int = 0
    differ: list[str] = field(default_factory=list)

    def row(self) -> tuple[str, ...]:
        return (self.name, *map(str, (self.questions, self.same, self.first, self.first_in_tool)))


async def places(question_set: QuestionSet) -> Places:
    """Ask every answerable question both ways, and count."""
    found = Places(question_set.name)
    async with product_with(question_set) as product:
        app = assemble("127.0.0.1", ON_LOOPBACK)
        use_orchestrator(app, Orchestrator(product.registry))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport,
            base_url="http://127.0.0.1:8765",
            headers={"Accept": "text/html"},
            cookies={"zone": question_set.zone},
            timeout=120,
        ) as http:
            for question in (one for one in question_set.questions if one.sessions and one.is_answerable):
                page = (await http.get("/", params={"q": question.text})).raise_for_status().text
                answer = await http.post("/bo/ao/run", json=_request(question.text, question_set))
                shown = [unescape(name) for name in ROW.findall(page)]
                told = [one["channel"] for one in answer.raise_for_status().json()["sessions"]]
                wanted = product.channels[question.sessions[0]]
                here, there = _place(shown, wanted), _place(told, wanted)
                found.questions += 1
                found.same += here == there and shown == told
                found.first += here == 1
                found.first_in_tool += there == 1
                if shown != told:
                    found.differ.append(question.text)
    return found


def _request(text: str, question_set: QuestionSet) -> dict[str, object]:
    offset = question_set.now.utcoffset()
    minutes = int(offset.total_seconds() // 60) if offset else 0
    query = {"text": text, "limit": SHOWN, "utc_offset_minutes": minutes}
    return {"operation": "search_sessions", "query": query, "source": "backoffice"}


def _place(channels: list[str], wanted: str) -> int | None:
    return channels.index(wanted) + 1 if wanted in channels else None
