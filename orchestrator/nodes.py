"""The six nodes (seed 004 §2.1). What a node does for an operation stands in that node's table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

from langgraph.runtime import Runtime

from orchestrator.filters import filter_extraction, filter_search
from orchestrator.finding import subject_of
from orchestrator.history import fetch_session, filter_fetch, filter_list, list_sessions
from orchestrator.operations import PATHS, Operation
from orchestrator.queries import daily_briefing, extract, search
from orchestrator.relevance import within
from orchestrator.requests import ExtractRequest
from orchestrator.sessions import filter_sessions, find_sessions
from orchestrator.shortening import FirstSentences, digest
from orchestrator.state import GeneralState, Run
from orchestrator.summaries import result_summary
from orchestrator.writes import WRITES
from registry.storage.database import WriteTransaction
from registry.storage.executions import save_execution


class Node(Protocol):
    """A node as the graph calls it."""

    async def __call__(self, state: GeneralState, runtime: Runtime[Run]) -> GeneralState:
        """The node's change to the state."""


QUERIES: dict[Operation, Callable[..., Any]] = {
    Operation.EXTRACT: extract,
    Operation.SEARCH: search,
    Operation.SEARCH_SESSIONS: find_sessions,
    Operation.LIST: list_sessions,
    Operation.FETCH: fetch_session,
    Operation.DAILY_BRIEFING: daily_briefing,
}
"""What `cr_query` reads, in one read transaction."""

FILTERS: dict[Operation, Callable[..., Awaitable[dict[str, Any]]]] = {
    Operation.EXTRACT: filter_extraction,
    Operation.SEARCH: filter_search,
    Operation.SEARCH_SESSIONS: filter_sessions,
    Operation.LIST: filter_list,
    Operation.FETCH: filter_fetch,
}
"""What `filter` keeps of it."""

_summarizer = FirstSentences()


def _recorded(work: Callable[[GeneralState, Run], Awaitable[GeneralState]]) -> Node:
    """A node of the graph that notes its time and outcome in the flight recorder."""

    async def node(state: GeneralState, runtime: Runtime[Run]) -> GeneralState:
        with runtime.context.recorder.step(work.__name__.rstrip("_")):
            return await work(state, runtime.context)

    return node


@_recorded
async def plan(state: GeneralState, run: Run) -> GeneralState:
    """Choose the path: what the operation's name says, with `transform` where a shorter form is asked for."""
    request = run.request
    name = request.operation.value
    if isinstance(request, ExtractRequest) and request.query.mode != "raw":
        name = "extract, shortened"
    run.recorder.explain(path=list(PATHS[name]), why=f"the path of {name}")
    return {"path": PATHS[name]}


@_recorded
async def cr_query(state: GeneralState, run: Run) -> GeneralState:
    """Read from the registry."""
    query = QUERIES[run.request.operation]
    if run.meaning and (subject := subject_of(run.request)):
        run = replace(run, meant=await run.meaning.of(subject))
    return {"data": await run.registry.read(lambda tx: query(tx, run, run.request))}


@_recorded
async def filter_(state: GeneralState, run: Run) -> GeneralState:
    """Keep what answers the request."""
    return {"result": await FILTERS[run.request.operation](run, run.request, state["data"])}


@_recorded
async def transform(state: GeneralState, run: Run) -> GeneralState:
    """Make what was read or kept shorter."""
    if run.request.operation is Operation.DAILY_BRIEFING:
        text = _summarizer.summarize(state["data"])
        run.recorder.explain(by=_summarizer.name, messages=len(state["data"]), characters=len(text))
        return {"transformed_data": text}
    result: dict[str, Any] = dict(state["result"])
    result["messages"] = digest(result["messages"])
    if isinstance(run.request, ExtractRequest) and run.request.query.mode == "summary":
        result["summary"] = within(_summarizer.summarize(result["messages"]), run.request.query.max_tokens)
    run.recorder.explain(by=_summarizer.name, messages=len(result["messages"]))
    return {"result": result}


@_recorded
async def external_action(state: GeneralState, run: Run) -> GeneralState:
    """Hand the outcome to the outside systems that are configured."""
    done = {action.name: await action.perform(state["transformed_data"]) for action in run.actions}
    run.recorder.explain(actions=done, why=None if done else "no outside system is configured")
    return {}


@_recorded
async def cr_write(state: GeneralState, run: Run) -> GeneralState:
    """Store, and record this execution in the same transaction: neither is ever there without the other."""
    write = WRITES[run.request.operation]

    def work(tx: WriteTransaction) -> dict[str, Any]:
        result = write(tx, run, run.request, state)
        save_execution(tx, run.recorder.finished(result_summary(result)))
        return result

    return {"result": await run.registry.write(work)}


NODES: dict[str, Node] = {
    "plan": plan,
    "cr_query": cr_query,
    "filter": filter_,
    "transform": transform,
    "external_action": external_action,
    "cr_write": cr_write,
}
