"""Looking messages up by words, and by meaning where a model is configured: what every reading operation calls."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.requests import ExtractRequest, Request, SearchRequest, SessionsRequest
from orchestrator.state import Run
from registry.domain import now
from registry.search.retrieval import SearchResult, find_messages
from registry.search.scope import Scope, narrow
from registry.storage.database import ReadTransaction
from registry.text.rank_fusion import SimilarMessages
from registry.text.syntax import Search, read_search


def subject_of(request: Request) -> str:
    """The words of a request that may be near something in meaning; none where it goes on with an earlier answer."""
    if isinstance(request, SessionsRequest):
        search = read_search(request.query.text, now())
        return " ".join([search.words, *search.phrases])
    if isinstance(request, SearchRequest):
        return request.query.text
    if isinstance(request, ExtractRequest) and not request.query.cursor:
        return request.query.text or ""
    return ""


def find(tx: ReadTransaction, run: Run, wanted: str | Search, scope: Scope) -> SearchResult:
    """The messages in scope that have to do with the words, or are near them in meaning.

    Words as they were typed may hold phrases, exclusions and fields; in a request to an AI time words narrow nothing.
    """
    if isinstance(wanted, str):
        wanted = read_search(wanted, now()).at_any_time()
        scope = narrow(scope, wanted)
    findings = find_messages(tx, wanted, scope, run.search_budget)
    if run.meant is None:
        return findings
    if run.meant.model is None:
        return replace(findings, similar=SimilarMessages(note=run.meant.note))
    from registry.search.meaning import with_meaning  # numpy, which is there only for who asked for meaning

    return with_meaning(tx, findings, wanted, scope, run.meant.model, run.meant.vector)
