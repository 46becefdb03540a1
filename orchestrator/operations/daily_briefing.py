"""daily_briefing: summarise a day's decisions, open questions and work; store it, and deliver it to outside systems."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta, timezone
from typing import Any, Literal

from pydantic import Field

from orchestrator.answer.delivery import MessageDict, message_dict
from orchestrator.answer.digests.summary import LABELS, WRITER, are_about_the_same, language_of, points_of
from orchestrator.outside.writing import BRIEFING as TASK
from orchestrator.outside.writing import transcript, written_by
from orchestrator.requests.field_types import Day, UtcOffset
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import OUTSIDE_ATTEMPTS, ExternalAction, GeneralState, Operation, Run, Steps
from registry.access import Level
from registry.domain import new_id, preview_of
from registry.errors import NotFound
from registry.ingest.save import SNAPSHOT
from registry.project import NO_PROJECT
from registry.storage.conversations.channels import channels_by_number
from registry.storage.conversations.messages import MessageRow, messages_between
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.records.extract_results import find_briefing, set_metadata


class BriefingQuery(QueryShape):
    """The day, by the clock that is `utc_offset_minutes` ahead of UTC."""

    date: Day
    data_types: list[Literal["conversation_summaries", "notion_snapshots"]] = Field(
        ["conversation_summaries", "notion_snapshots"], min_length=1
    )
    language: Literal["", "en", "ko"] = ""
    utc_offset_minutes: UtcOffset = 0
    again: bool = Field(False, description="deliver it also to systems that may have it already")


class BriefingRequest(Request):
    operation = "daily_briefing"
    takes_long = True
    query: BriefingQuery


WORDS = {
    "en": {
        **LABELS["en"],
        "title": "Briefing of {date}",
        "worked": "Worked on",
        "message": "1 message",
        "messages": "{count} messages",
    },
    "ko": {
        **LABELS["ko"],
        "title": "{date} 브리핑",
        "decided": "결정한 것",
        "open": "남은 것, 다음 할 일",
        "worked": "한 일",
        "message": "메시지 1개",
        "messages": "메시지 {count}개",
    },
}

WRITE_IN = {"en": " Write in English.", "ko": " 한국어로 쓰세요.", "": ""}


@dataclass(frozen=True, slots=True)
class ChatOfDay:
    """A channel's messages of the day."""

    title: str
    project: str
    source: str
    messages: list[MessageDict]


@dataclass(frozen=True, slots=True)
class ChatsOfDay:
    """The day's conversations, and an earlier briefing of exactly these messages."""

    chats: list[ChatOfDay]
    earlier: dict[str, Any] | None = None
    by: str = WRITER

    @property
    def ids(self) -> list[str]:
        return [message["id"] for chat in self.chats for message in chat.messages]


def read_day(tx: ReadTransaction, run: Run, request: BriefingRequest) -> ChatsOfDay:
    zone = timezone(timedelta(minutes=request.query.utc_offset_minutes))
    start = datetime.combine(request.query.date, time(), zone)
    # at most the last 1000 messages of a channel
    rows = messages_between(tx, start, start + timedelta(days=1, milliseconds=-1), 1000)
    day_rows = _without_copies(
        {number: [row for row in some if _is_wanted(row, request)] for number, some in rows.items()}
    )
    wanted = {number: list(map(message_dict, some)) for number, some in day_rows.items()}
    by_channel = {number: messages for number, messages in wanted.items() if messages}
    count = sum(map(len, rows.values()))
    run.recorder.explain(channels=len(by_channel), messages=count, day=str(request.query.date))
    if not by_channel:
        raise NotFound("No conversations on that day", f"date: given {request.query.date}")
    known = channels_by_number(tx, list(by_channel))
    chats = [
        ChatOfDay(
            preview_of(row.title or row.first_message_preview or row.name, 80),
            row.project_name or NO_PROJECT,
            row.source,
            by_channel[number],
        )
        for number, row in known.items()
    ]
    day = ChatsOfDay(sorted(chats, key=lambda chat: (chat.project == NO_PROJECT, chat.project)))
    return replace(day, earlier=find_briefing(tx, _channel(request), day.ids))


def _without_copies(rows: Mapping[int, Sequence[MessageRow]]) -> dict[int, list[MessageRow]]:
    """Leave out messages that are in an earlier channel, too: a fork has copies of what was said before it."""
    new: dict[int, list[MessageRow]] = {}
    earlier = set[tuple[datetime, bytes]]()
    for number, some in rows.items():
        new[number] = [row for row in some if (row.timestamp, bytes(row.digest)) not in earlier]
        earlier.update((row.timestamp, bytes(row.digest)) for row in some)
    return new


def _is_wanted(row: MessageRow, request: BriefingRequest) -> bool:
    """Return True if a message has a requested type: a Notion snapshot or a conversation's message."""
    kind = "notion_snapshots" if row.record_type == SNAPSHOT else "conversation_summaries"
    return kind in request.query.data_types and not {"injected", "superseded"} & row.payload.keys()


def _channel(request: BriefingRequest) -> str:
    return f"briefing_{request.query.date}"


async def write_text(run: Run, request: BriefingRequest, state: GeneralState) -> GeneralState:
    """Write the briefing: decisions, open questions, then the work by project and client."""
    day: ChatsOfDay = state["data"]
    if day.earlier:
        about = day.earlier["metadata"]
        run.recorder.explain(by=about["by"], why="the same messages have a briefing already")
        return {"transformed_data": about["text"]}
    task = f"{TASK} The day is {request.query.date}.{WRITE_IN[request.query.language]}"
    material = "\n\n".join(
        f"# {chat.title} (project {chat.project}, client {chat.source})\n{transcript(chat.messages)}"
        for chat in day.chats
    )
    text, by = await written_by(run.writer, run.recorder, task, material, 1500)
    language = request.query.language or language_of(message for chat in day.chats for message in chat.messages)
    text = text or compose_text(day.chats, str(request.query.date), language)
    run.recorder.explain(by=by, talks=len(day.chats), characters=len(text))
    return {"transformed_data": text, "data": replace(day, by=by)}


def compose_text(chats: list[ChatOfDay], date: str, language: str) -> str:
    words = WORDS[language]
    points = [(chat, points_of(chat.messages, language)) for chat in chats]
    for chat, found in points:
        later = _decided_later(chat, points)
        found["decided"] = [
            line for line in found.get("decided", ()) if not any(are_about_the_same(line, other) for other in later)
        ]
    lines = [f"# {words['title'].format(date=date)}"]
    for kind in ("decided", "open"):
        section = [
            f"- **{chat.project}** · {chat.source}: {line}" for chat, found in points for line in found.get(kind, ())
        ]
        lines += ["", f"## {words[kind]}", "", *section] if section else []
    lines += ["", f"## {words['worked']}"]
    project = ""
    for chat, found in points:
        if chat.project != project:
            project = chat.project
            lines += ["", f"### {project}", ""]
        lines += _work_of(chat, found, words)
    return "\n".join(lines) + "\n"


def _decided_later(chat: ChatOfDay, points: Sequence[tuple[ChatOfDay, Mapping[str, list[str]]]]) -> list[str]:
    """Return the decisions of later conversations of the same project."""
    return [
        line
        for other, found in points
        if other.project == chat.project and other.messages[0]["timestamp"] > chat.messages[0]["timestamp"]
        for line in found.get("decided", ())
    ]


def _work_of(chat: ChatOfDay, found: Mapping[str, list[str]], words: Mapping[str, str]) -> Iterator[str]:
    count = len(chat.messages)
    yield f"- {chat.title} ({chat.source}, {words['message' if count == 1 else 'messages'].format(count=count)})"
    for kind in ("asked", "told", "changed", "answered"):
        if found.get(kind):
            yield f"  - {words[kind]}: {' · '.join(found[kind])}"


async def publish(run: Run, request: BriefingRequest, state: GeneralState) -> GeneralState:
    """Deliver the briefing to each outside system once; a delivery is recorded before it starts.

    If a system cannot be reached, the graph retries; if it fails, the next run of the day does.
    """
    briefing = await run.registry.write(lambda tx: _store_briefing(tx, run, request, state))
    actions: dict[str, dict[str, str]] = briefing["metadata"]["actions"]
    about = {"id": briefing["id"], "date": briefing["metadata"]["date"], "text": state["transformed_data"]}
    for action in run.actions:
        before = actions.get(action.name)
        if before and before["status"] != "done" and (was_done := await _was_done(action, about)) is not None:
            before = ALREADY_DONE if was_done else None
            if was_done:
                await _note_outcome(run, briefing, action, ALREADY_DONE)
        status = before["status"] if before else "failed"
        if status == "failed" or (status != "done" and request.query.again):
            await _note_outcome(run, briefing, action, {"status": "started"})
            await _perform(run, briefing, action, about)
    run.recorder.explain(actions=actions, why=None if actions else "no outside system is configured")
    problems = [
        f"{name}: {one.get('error', one['status'])}" for name, one in actions.items() if one["status"] != "done"
    ]
    if problems:
        run.recorder.steps[-1].error = {"code": "PARTLY_FAILED", "message": "; ".join(problems), "details": ""}
    return {"data": briefing}


ALREADY_DONE = {"status": "done", "result": "was there already"}


async def _was_done(action: ExternalAction, about: Mapping[str, str]) -> bool | None:
    """Return True if an unfinished delivery has arrived; None if the system cannot tell."""
    try:
        return await action.was_done(about)
    except Exception:  # the action itself reports the error
        return None


async def _perform(run: Run, briefing: Mapping[str, Any], action: ExternalAction, about: Mapping[str, str]) -> None:
    try:
        outcome = {"status": "done", "result": await action.perform(about)}
    except Exception as exc:  # an error of an outside system must not lose the briefing
        outcome = {"status": "failed", "error": preview_of(f"{type(exc).__name__}: {exc}", 300)}
        attempts = sum(step.node == "external_action" for step in run.recorder.steps)
        if isinstance(exc, ConnectionError) and attempts < OUTSIDE_ATTEMPTS:
            await _note_outcome(run, briefing, action, outcome)
            raise
    await _note_outcome(run, briefing, action, outcome)


async def _note_outcome(run: Run, briefing: Mapping[str, Any], action: ExternalAction, outcome: dict[str, str]) -> None:
    briefing["metadata"]["actions"][action.name] = outcome
    await run.registry.write(lambda tx: set_metadata(tx, briefing["id"], briefing["metadata"]))


def _store_briefing(tx: WriteTransaction, run: Run, request: BriefingRequest, state: GeneralState) -> dict[str, Any]:
    """Store the briefing: its text, the ids of its messages, and its deliveries."""
    day: ChatsOfDay = state["data"]
    if earlier := find_briefing(tx, _channel(request), day.ids):
        return earlier
    result_id, text = new_id("brief"), state["transformed_data"]
    about = {"date": str(request.query.date), "text": text, "by": day.by, "actions": {}}
    delivery = {"channel": _channel(request), "items": day.ids, "result_type": "summary"}
    return {"id": result_id, "metadata": run.recorder.record_delivery(tx, result_id, "briefing", about, **delivery)}


def to_result(_tx: WriteTransaction, run: Run, _request: BriefingRequest, state: GeneralState) -> dict[str, Any]:
    """Return the answer; `publish` has stored the briefing already."""
    stored = state["data"]
    about = stored["metadata"]
    actions = [{"name": name, **outcome} for name, outcome in about["actions"].items()]
    run.recorder.explain(briefing=stored["id"])
    briefing = {"id": stored["id"], **{name: about[name] for name in ("date", "text", "by")}, "actions": actions}
    return {"briefing": briefing, "partly_failed": any(one["status"] != "done" for one in actions)}


OPERATION = Operation(
    request=BriefingRequest,
    level=Level.WRITE,
    syncs_first=True,
    steps=Steps[BriefingRequest, ChatsOfDay](query=read_day, shorten=write_text, publish=publish, write=to_result),
    labels={
        "date": ("day", "날짜"),
        "again": ("delivered again", "다시 전달"),
        "language": ("language", "언어"),
        "data_types": ("made of", "재료"),
    },
)
