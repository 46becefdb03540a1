"""complete: return names of sessions, tags, projects and clients that begin with a text."""

from typing import Any

from pydantic import Field

from orchestrator.requests.field_types import Limit, NameKind
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import Operation, Run, Steps, as_read
from registry.access import Level
from registry.storage.conversations.facets import names_like
from registry.storage.database import ReadTransaction


class CompleteQuery(QueryShape):
    """The beginning of a name, and the kind of name."""

    kind: NameKind
    text: str = Field("", max_length=300)
    limit: Limit = 20


class CompleteRequest(Request):
    operation = "complete"
    query: CompleteQuery


def names(tx: ReadTransaction, run: Run, request: CompleteRequest) -> dict[str, Any]:
    query = request.query
    found = names_like(tx, query.kind, query.text, query.limit)
    run.recorder.explain(names=len(found))
    return {"names": found}


OPERATION = Operation(
    request=CompleteRequest,
    level=Level.READ,
    steps=Steps[CompleteRequest, dict[str, Any]](query=names, answer=as_read),
    labels={"kind": ("kind", "종류")},
)
