"""The six nodes. What a node does for an operation stands in that operation's module."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from orchestrator.elsewhere import elsewhere, with_known_names
from orchestrator.operation_names import READING, Operation
from orchestrator.operations import (
    backup,
    blame,
    briefing,
    complete,
    extract,
    history,
    log,
    manage,
    migrate,
    note,
    resume,
    search,
)
from orchestrator.recording.recorder import result_summary
from orchestrator.requests import HookRequest, ImportRequest, Request
from orchestrator.state import Run, State, Steps
from registry.errors import OperationTimeout
from registry.storage.database import WriteTransaction
from registry.storage.records.executions import save_execution
from registry.storage.safety.sight import admit, check_seen

OPERATIONS: dict[Operation, Steps[Any, Any]] = {
    Operation.CONVERSATION_LOG: log.LOG,
    Operation.EXTRACT: extract.EXTRACT,
    Operation.SEARCH: search.SEARCH,
    Operation.SEARCH_SESSIONS: search.SESSIONS,
    Operation.LIST: history.LIST,
    Operation.FETCH: history.FETCH,
    Operation.TAG: manage.TAG,
    Operation.DELETE: manage.DELETE,
    Operation.RESTORE: manage.RESTORE,
    Operation.IMPORT: log.IMPORT,
    Operation.DAILY_BRIEFING: briefing.BRIEFING,
    Operation.RESUME: resume.RESUME,
    Operation.NOTE: note.NOTE,
    Operation.BLAME: blame.BLAME,
    Operation.CREATE_BACKUP: backup.CREATE,
    Operation.LIST_BACKUPS: backup.LIST,
    Operation.VALIDATE_BACKUP: backup.VALIDATE,
    Operation.RESTORE_BACKUP: backup.RESTORE,
    Operation.MIGRATE: migrate.MIGRATE,
    Operation.COMPLETE: complete.COMPLETE,
}
NAMING = frozenset({Operation.CONVERSATION_LOG, Operation.DELETE, Operation.RESTORE})
"""These change the channel of just the name that they are given, whether it was there before or not."""
QUERY = {name: steps.query for name, steps in OPERATIONS.items() if steps.query}
KEEP = {name: steps.keep for name, steps in OPERATIONS.items() if steps.keep}
SHORTEN = {name: steps.shorten for name, steps in OPERATIONS.items() if steps.shorten}
PUBLISH = {name: steps.publish for name, steps in OPERATIONS.items() if steps.publish}
WRITE = {name: steps.write for name, steps in OPERATIONS.items() if steps.write}
UNFINISHED = OperationTimeout("Begun, and not ended.", "It is still running, or its process was ended: ask again")
SUBJECT = {name: steps.subject for name, steps in OPERATIONS.items() if steps.subject}


async def plan(state: State, run: Run) -> State:
    """Say which way it will go if all is found; let in first what the clients have written since the last question."""
    name = _name_of(state["query"])
    run.recorder.explain(path=PATHS[name], why=f"the path of {name}")
    if state["query"].operation in PUBLISH:
        await _open_record(run)
    if run.before_reading and state["query"].operation in READING:
        syncing = await run.before_reading()
        if syncing:
            run.recorder.explain(syncing=syncing)
            return {"syncing": syncing}
    return {}


async def _open_record(run: Run) -> None:
    """Record what reaches outside before it does: of a run that is killed its record stays, and says so."""
    if not run.registry.is_read_only:
        unfinished = run.recorder.finished(None, UNFINISHED.as_dict())
        await run.registry.write(lambda tx: save_execution(tx, unfinished))


async def cr_query(state: State, run: Run) -> State:
    """Read from the registry."""
    meant = await _meant(state, run)
    return {"data": await _read(replace(run, meant=meant) if meant else run, state["query"])}


async def _read(run: Run, request: Request) -> Any:
    query = QUERY[request.operation]
    return await run.registry.read(lambda tx: query(tx, run, with_known_names(tx, request)))


async def filter_(state: State, run: Run) -> State:
    """Keep what answers the request; where there is no such session, say where and when there are some."""
    result = await KEEP[state["query"].operation](run, state["query"], state["data"])
    is_wanting = "sessions" in result and (not result["pagination"]["total"] or "guess" in result)
    if is_wanting and (others := await elsewhere(run, state["query"], result, _once_more)):
        result["elsewhere"] = others | result.get("elsewhere", {})
    return {"result": result}


async def _once_more(run: Run, request: Request) -> dict[str, Any]:
    return await KEEP[request.operation](run, request, await _read(run, request))


async def transform(state: State, run: Run) -> State:
    """Make what was read or kept shorter."""
    return await SHORTEN[state["query"].operation](run, state["query"], state)


async def external_action(state: State, run: Run) -> State:
    """Hand the outcome to the outside systems that are configured."""
    return await PUBLISH[state["query"].operation](run, state["query"], state)


async def cr_write(state: State, run: Run) -> State:
    """Store, and record this execution in the same transaction: neither is ever there without the other."""
    write = WRITE[state["query"].operation]

    def work(tx: WriteTransaction) -> dict[str, Any]:
        request: Request = state["query"]
        if request.channel and request.operation in NAMING:
            admit(tx, request.channel)
        result = write(tx, run, request, state)
        if request.operation == Operation.CONVERSATION_LOG and run.recorder.channel:
            check_seen(tx, run.recorder.channel)
        if not run.registry.is_read_only:
            save_execution(tx, run.recorder.finished(result_summary(result)))
        return result

    if run.registry.is_read_only and _also_read_only(state["query"]):
        result = await run.registry.read(lambda tx: work(WriteTransaction(tx)))
    else:
        result = await run.registry.write(work, of=_written_to(state["query"]))
    if afterwards := OPERATIONS[state["query"].operation].afterwards:
        await afterwards(run, state["query"])
    return {"result": result}


def _also_read_only(request: Request) -> bool:
    """Whether it is answered where nothing can be stored: an extract without its note, a trial without its record."""
    is_tried = getattr(getattr(request, "query", None), "dry_run", False)
    return request.operation == Operation.EXTRACT or is_tried


def _written_to(request: Request) -> str | None:
    """What a request stores into, as far as it says so."""
    match request:
        case HookRequest():
            return request.session.session_id
        case ImportRequest():
            return request.store
    return request.channel


Work = Callable[[State, Run], Awaitable[State]]
NODES: dict[str, Work] = {
    "plan": plan,
    "cr_query": cr_query,
    "filter": filter_,
    "transform": transform,
    "external_action": external_action,
    "cr_write": cr_write,
}
"""Each changes the state by what it returns."""


def _path(name: Operation, *, is_shortened: bool) -> list[str]:
    """The nodes that have work for an operation, in order."""
    steps = OPERATIONS[name]
    work = {
        "plan": True,
        "cr_query": steps.query,
        "filter": steps.keep,
        "transform": steps.shorten and (is_shortened or not steps.keep),
        "external_action": steps.publish,
        "cr_write": steps.write,
    }
    return [node for node in NODES if work[node]]


PATHS = {name.value: _path(name, is_shortened=False) for name in Operation} | {
    f"{name}, shortened": _path(name, is_shortened=True) for name in KEEP if name in SHORTEN
}
"""The way of each operation if all is found."""


def _name_of(request: Request) -> str:
    return f"{request.operation}, shortened" if request.is_shortened else request.operation


def path_of(request: Request) -> list[str]:
    """The nodes that a request goes through if all is found."""
    return PATHS[_name_of(request)]


async def _meant(state: State, run: Run) -> Any:
    """What the request's words mean to the model, where there are any and one is configured."""
    subject = SUBJECT[state["query"].operation](state["query"]) if state["query"].operation in SUBJECT else ""
    if not run.meaning or not subject:
        return None
    return await run.meaning.of(subject, getattr(getattr(state["query"], "query", None), "also", ()))
