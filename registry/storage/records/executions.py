"""Store executions of operations (one row each), their ratings, and test cases: questions with expected messages.

Executions that failed, found nothing, guessed, were slow or were rated keep their details; others are shortened when
they are no longer among the newest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from operator import eq, ge, le, ne
from typing import Any, Literal

from sqlalchemy import ColumnElement, Executable, Row, delete, func, insert, select

from registry.domain import format_time, new_id, now, preview_of, storable
from registry.errors import NotFound
from registry.storage.column_types import shown
from registry.storage.conditions import FilterRules, Filters, contains, filter_conditions
from registry.storage.conversations.channels import ChannelRow, count_delivery
from registry.storage.conversations.messages import get_message
from registry.storage.conversations.references import canonical_name
from registry.storage.database import ReadTransaction, WriteTransaction, insert_into, update_rows, upsert
from registry.storage.paging import Page, read_page
from registry.storage.safety.masking import masked
from registry.storage.safety.visibility import access_of, ask_all, owner_of
from registry.storage.tables import conversation, execution, expectation, rating, token

GUESSED = "guessed"  # status, and `error_code` for the statistics, of an answer with low confidence
Door = Literal["mcp", "http", "cli", "inside"]  # the entry of a request; `inside`: the program itself, such as a sync


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution: caller, request, times, outcome, and the steps of its nodes. Durations in milliseconds."""

    id: str
    operation: str
    source: str
    client: str | None
    channel: str | None
    status: str
    error: dict[str, str] | None
    started_at: datetime
    finished_at: datetime
    duration_ms: float
    request: dict[str, Any]
    result: dict[str, Any] | None
    steps: Sequence[dict[str, Any]]
    token: str | None = None  # the name of the caller's token; None if none is needed
    door: Door = "inside"  # for the metrics and logs of the process; not stored

    @property
    def outcome(self) -> str:
        """Return `succeeded`, `guessed`, or the code of its error."""
        return self.error["code"] if self.error else self.status


def runs_of_others(tx: ReadTransaction, row: ChannelRow, most: int) -> list[dict[str, Any]]:
    """Return the latest runs of other people's tokens on a channel, for its owner and unrestricted tokens."""
    if row.owner is None or (access_of(tx) and owner_of(tx) != row.owner):
        return []
    own_tokens = select(token.c.name).where(func.coalesce(token.c.owner, token.c.name) == row.owner)
    query = select(execution.c.token, execution.c.operation, execution.c.started_at).where(
        execution.c.channel == row.name, execution.c.token != row.owner, execution.c.token.not_in(own_tokens)
    )
    runs = ask_all(tx, query.order_by(execution.c.started_at.desc()).limit(most))
    return [{"token": run.token, "operation": run.operation, "at": format_time(run.started_at)} for run in runs]


def save_execution(tx: WriteTransaction, run: Execution) -> None:
    """Record a run in one statement; if it is recorded already, update its outcome."""
    values = {column.name: getattr(run, column.name) for column in execution.c if hasattr(run, column.name)}
    values |= {
        "client": run.client and run.client[:MAX_STORED_LENGTH],
        "error_code": run.error["code"] if run.error else GUESSED if run.status == GUESSED else None,
        # two significant digits, so that a million runs have few distinct values
        "duration_rounded": float(f"{run.duration_ms:.1e}"),
    }
    values = masked(tx, storable(values))  # a row that cannot be stored would block all later ones
    values["asked"] = beginning_of(values["request"])  # cut after masking, so that no secret is cut in two
    shorten_older(tx, tx.execute(_record(tx.dialect.name), values).scalar_one())
    if run.operation in DELIVERING and run.channel and run.status in ANSWERED:
        counts = (step.get("detail", {}).get("tokens") for step in run.steps)
        tokens = sum(number for number in counts if isinstance(number, int))
        count_delivery(tx, run.channel, run.finished_at, tokens)


@cache
def _record(dialect: str) -> Executable:
    outcome = ("status", "error_code", "error", "finished_at", "duration_ms", "duration_rounded", "result", "steps")
    record = insert_into(dialect, execution)
    changes = {name: record.excluded[name] for name in outcome}
    return record.on_conflict_do_update(index_elements=["id"], set_=changes).returning(execution.c.number)


ANSWERED = ("succeeded", GUESSED)
DELIVERING = frozenset({"extract", "fetch", "resume"})  # operations that deliver one conversation to the caller


def list_executions(tx: ReadTransaction, wanted: Filters, page: Page) -> dict[str, Any]:
    conditions = execution_conditions({**wanted, "channel": canonical_name(tx, wanted.get("channel"))})
    moment = execution.c.started_at
    return read_page(tx, moment, conditions, page, lambda rows: list(map(execution_item, rows)), _LISTED)


_LISTED = [column for column in execution.c if column.name != "steps"]  # `steps` is most of a row


def has_execution(tx: ReadTransaction, operation: str) -> bool:
    return tx.execute(select(execution.c.number).where(execution.c.operation == operation).limit(1)).first() is not None


def get_execution(tx: ReadTransaction, execution_id: str) -> dict[str, Any]:
    """Return one execution with its request, result and steps; NotFound if there is none."""
    row = tx.execute(select(execution).where(execution.c.id == execution_id)).first()
    if row is None:
        hint = "old ones are deleted (CTXR_KEEP_EXECUTIONS_DAYS)"
        raise NotFound("No such execution", f"No execution {execution_id!r} in the registry; {hint}")
    steps = full_steps(row.steps, row.started_at)
    return {**execution_item(row), "request": row.request, "result": row.result, "steps": steps}


def execution_item(row: Row[Any] | Execution) -> dict[str, Any]:
    return {
        **shown(row, "id", "operation", "source", "client", "token", "channel", "status", "error"),
        **shown(row, "started_at", "finished_at", "duration_ms"),
        "asked": asked_of(row.request or {}),
        "delivered": _delivered(row.result or {}) if row.status in ANSWERED else None,
    }


def asked_of(request: Mapping[str, Any]) -> str | None:
    """Return the question or the reference of a request, shortened."""
    question = _question_in(request)
    return preview_of(question) if question else None


def _question_in(request: Mapping[str, Any]) -> str | None:
    query = request.get("query") or {}
    return next((str(query[name]) for name in _QUESTION_FIELDS if query.get(name)), None)


def beginning_of(request: Mapping[str, Any]) -> str:
    """Return the beginning of a request's question, which the list's filter searches."""
    return (_question_in(request) or "")[:MAX_STORED_LENGTH]


MAX_STORED_LENGTH = 200  # characters of a question that a filter searches, and of a client's name


_QUESTION_FIELDS = ("text", "session_id", "nickname", "title", "id", "date")


def _delivered(result: Mapping[str, Any]) -> int | None:
    """Return how many messages or sessions were delivered, or messages stored; None for other operations."""
    counts = (result.get("metadata") or {}).get("filtered_count"), result.get("new_count"), result.get("sessions")
    messages = result.get("messages")  # ids, or their number if the run is shortened
    known = (*counts, len(messages) if isinstance(messages, list) else messages)
    found = next((count for count in known if isinstance(count, int)), None)
    return 0 if found is None and "pagination" in result else found


def execution_conditions(wanted: Filters) -> list[ColumnElement[bool]]:
    return filter_conditions(_FILTERS, wanted)


_FILTERS: FilterRules = {
    "operation": (eq, execution.c.operation),
    "channel": (eq, execution.c.channel),
    "status": (eq, execution.c.status),
    "source": (eq, execution.c.source),
    "from_": (ge, execution.c.started_at),
    "to": (le, execution.c.started_at),
    "error_code": (eq, execution.c.error_code),
    "words": (contains, execution.c.asked),
    "client": (contains, execution.c.client),
    "min_duration_ms": (ge, execution.c.duration_ms),
    "without_source": (ne, execution.c.source),
    "without_operation": (ne, execution.c.operation),
}


NEWEST = 200  # runs that are stored in full
SHORTEN_EVERY = NEWEST // 4  # runs between two shortenings


def delete_executions(tx: WriteTransaction, before: datetime, most: int) -> int:
    """Delete up to `most` of the oldest runs before an instant, and return their number."""
    oldest = select(execution.c.number).where(execution.c.started_at < before)
    oldest = oldest.order_by(execution.c.started_at, execution.c.number).limit(most)
    oldest = oldest.with_for_update(skip_locked=True)  # another server may do the same
    return tx.execute(delete(execution).where(execution.c.number.in_(oldest))).rowcount


MAX_PAUSE = timedelta(days=30)  # without any run; after a longer pause the clock may be wrong


def latest_trusted_time(tx: ReadTransaction) -> datetime:
    """Return now; or the time of the last run before a long pause that ended lately, which may be a wrong clock's.

    Such a pause is trusted once a retention policy was applied by command, or after `MAX_PAUSE` of runs.
    """
    at, time = now(), execution.c.started_at
    last = tx.execute(select(func.max(time)).where(time < at - MAX_PAUSE)).scalar()
    first = tx.execute(select(func.min(time)).where(time.between(at - MAX_PAUSE, at))).scalar() or at
    if last is None or first - last <= MAX_PAUSE:
        return at
    of_policy = execution.c.operation == "retention", execution.c.status == "succeeded", time >= first
    runs = tx.execute(select(execution.c.request).where(*of_policy)).scalars()
    return last if all(request.get("dry_run", True) for request in runs) else at  # a forgotten request says nothing


def shorten_older(tx: WriteTransaction, number: int) -> None:
    """Shorten the ordinary runs that are no longer among the newest; called with each new run's number."""
    if number % SHORTEN_EVERY == 0:
        _shorten(tx, number - NEWEST - 2 * SHORTEN_EVERY, number - NEWEST)


def shorten_newest(tx: WriteTransaction) -> None:
    """Shorten the newest runs of a restored registry, too: they may have been shortened after its backup."""
    newest = tx.execute(select(func.max(execution.c.number))).scalar() or 0
    _shorten(tx, newest - NEWEST - 3 * SHORTEN_EVERY, newest)


def _shorten(tx: WriteTransaction, first: int, last: int) -> None:
    columns = execution.c.number, execution.c.steps, execution.c.result, execution.c.started_at
    query = select(*columns).where(
        execution.c.number.between(first, last),
        execution.c.status == "succeeded",
        execution.c.duration_ms < 1000,  # slow runs keep their details for inspection
        ~select(rating.c.execution_id).where(rating.c.execution_id == execution.c.id).exists(),
    )
    rows = tx.execute(query.order_by(execution.c.number).with_for_update(skip_locked=True)).all()
    brief = [
        {"number": row.number, "steps": _brief_steps(row.steps, row.started_at), "result": _shorten_value(row.result)}
        for row in rows
        if not _is_brief(row.steps)
    ]
    update_rows(tx, execution, brief)


def _is_brief(steps: Sequence[Any]) -> bool:
    return not steps or isinstance(steps[0], list)


def _brief_steps(steps: Sequence[Mapping[str, Any]], started_at: datetime) -> list[list[Any]]:
    """Return each step as node, milliseconds since the run began, and duration."""
    begun = [datetime.fromisoformat(step["started_at"]) - started_at for step in steps]
    return [
        [step["node"], round(since / timedelta(milliseconds=1)), round(step["duration_ms"], 1)]
        for step, since in zip(steps, begun, strict=True)
    ]


def full_steps(steps: Sequence[Any], started_at: datetime) -> Sequence[Mapping[str, Any]]:
    """Return the steps in their full form; shortened ones have no details."""
    if not _is_brief(steps):
        return steps
    return [
        {
            "node": node,
            "started_at": format_time(started_at + timedelta(milliseconds=since)),
            "duration_ms": duration_ms,
            "status": "succeeded",
            "error": None,
            "detail": {},
        }
        for node, since, duration_ms in steps
    ]


def _shorten_value(value: Any) -> Any:
    """Return numbers and short strings unchanged, a list as its length; drop long strings."""
    match value:
        case {**held}:
            return {name: short for name, part in held.items() if (short := _shorten_value(part)) not in (None, {}, "")}
        case list():
            return len(value)
        case str():
            return value if len(value) <= 12 else None
    return value


def rate_execution(tx: WriteTransaction, execution_id: str, *, useful: bool) -> None:
    """Rate an execution; the latest rating counts. NotFound if there is no such execution."""
    run = get_execution(tx, execution_id)
    about = {name: run[name] for name in ("operation", "source", "token")}
    upsert(tx, rating, ["execution_id"], [{"execution_id": run["id"], **about, "useful": useful, "rated_at": now()}])


def rating_of(tx: ReadTransaction, execution_id: str) -> bool | None:
    return tx.execute(select(rating.c.useful).where(rating.c.execution_id == execution_id)).scalar()


def unsure_executions(
    tx: ReadTransaction, since: datetime, without_sources: Sequence[str], limit: int
) -> list[dict[str, Any]]:
    """Return the newest executions that guessed or found nothing and whose question was not rated afterwards."""
    run = execution.alias()
    last = func.max(rating.c.rated_at).label("at")
    # The outer join makes SQLite start with the ratings, which are few.
    found = select(run.c.asked, last).select_from(rating).outerjoin(run, run.c.id == rating.c.execution_id)
    rated = found.group_by(run.c.asked).subquery()
    settled = rated.c.at.is_not(None) & (rated.c.at >= execution.c.started_at)
    query = (
        select(*_LISTED)
        .outerjoin(rated, rated.c.asked == execution.c.asked)
        .where(
            execution.c.status.in_((GUESSED, "not_found")),
            execution.c.started_at >= since,
            execution.c.source.not_in(without_sources),
            execution.c.asked != "",
            ~settled,
        )
    )
    newest = query.order_by(execution.c.started_at.desc(), execution.c.number.desc()).limit(limit)
    return [execution_item(row) for row in tx.execute(newest)]


def keep_expectation(tx: WriteTransaction, request: Mapping[str, Any], message_id: str) -> str:
    """Store a test case, unless it exists, and return its id. NotFound if there is no such message."""
    message = get_message(tx, message_id)
    stored_request = storable(dict(request))
    for known in list_expectations(tx):
        if known["message_id"] == message.id and known["request"] == stored_request:
            return str(known["id"])
    case_id = new_id("case")
    values = {"id": case_id, "request": stored_request, "message_number": message.number, "created_at": now()}
    tx.execute(insert(expectation).values(**values))
    return case_id


def list_expectations(tx: ReadTransaction) -> list[dict[str, Any]]:
    """Return all test cases in the order of storage, without those of deleted messages.

    Each has the request `{operation, channel, query}`, and the expected message with its channel.
    """
    found = conversation.c.id.label("message_id"), conversation.c.channel, conversation.c.text
    query = select(expectation.c.id, expectation.c.request, *found, expectation.c.created_at).join_from(
        expectation, conversation, conversation.c.number == expectation.c.message_number
    )
    rows = tx.execute(query.where(conversation.c.deleted.is_(False)).order_by(expectation.c.number))
    return [
        {**shown(row, "id", "request", "message_id", "channel", "created_at"), "preview": preview_of(row.text)}
        for row in rows
    ]


def drop_expectation(tx: WriteTransaction, case_id: str) -> None:
    if not tx.execute(delete(expectation).where(expectation.c.id == case_id)).rowcount:
        raise NotFound("No such case", f"No case {case_id!r} in the registry")
