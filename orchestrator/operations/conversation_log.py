"""conversation_log: store messages from a tool, a hook or another registry, each once."""

from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from itertools import count
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, SkipValidation

from orchestrator.requests.calls import UNKNOWN, named_project, source_of
from orchestrator.requests.field_types import MAX_MESSAGES, ChannelName, SourceName, Timestamp
from orchestrator.requests.messages import ROLE_KEYS, ROLES, TEXTS, as_messages
from orchestrator.requests.shapes import MessageIn, Meta, Request
from orchestrator.state import GeneralState, Operation, Run, Steps
from orchestrator.tool import Caller, Effect, Tool, ToolArguments
from registry.access import Level
from registry.domain import Message, Role, Session, format_time, now
from registry.errors import InvalidRequest
from registry.ingest.from_hook import ingest_from_hook
from registry.ingest.from_tool import ingest_from_tool
from registry.ingest.intake import restore_original_time, restore_stored_times
from registry.ingest.save import Saved
from registry.ingest.stored_messages import STORED_ID
from registry.ingest.unnamed_chat import find_unnamed_chat
from registry.project import REMEMBERED, Project
from registry.storage.conversations.channels import find_channel, get_channel
from registry.storage.conversations.messages import delete_channel
from registry.storage.conversations.references import add_alias
from registry.storage.database import WriteTransaction, acquire_lock
from registry.storage.exchange.change_feed import last_number
from registry.storage.exchange.counterparts import NOT_GROWN, grown_to
from registry.storage.exchange.edits import Edit, copied_channels, deletion_of, matching_channels
from registry.storage.exchange.forgetting_elsewhere import forget_there_again
from registry.storage.exchange.remote import (
    last_messages,
    note_copies,
    note_here,
    note_messages,
    note_of_other_person,
    numbers_of_ids,
)
from registry.storage.safety.masking import key_of
from registry.storage.safety.visibility import check_visible, check_writable_name, name_for_owner, name_for_session
from registry.storage.tables import conversation


class LogRequest(Request):
    """A conversation to log; without a channel it gets its chat's. `timestamp` dates undated messages."""

    operation = "conversation_log"
    messages: Annotated[list[MessageIn], BeforeValidator(as_messages), Field(min_length=1, max_length=MAX_MESSAGES)]
    grows: str | None = Field(None, description="id of the stored message that this one extends")
    is_pushed: bool = Field(False, description="from another registry, which may not know of a deletion yet")

    chat: str | None = Field(
        None, max_length=200, description="the tool server's name of the chat, if no channel is given"
    )
    is_from_chat: bool = Field(
        False, description="from an AI's tool call, which must not write into another chat's channel"
    )

    def summary(self) -> dict[str, Any]:
        characters = sum(len(message.text) for message in self.messages)
        return {"channel": self.channel, "messages": len(self.messages), "characters": characters}


class HookRequest(Request):
    """Messages of a session from a client's hooks. Only from our own spool."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    operation = "conversation_log"

    session: Session

    @property
    def write_target(self) -> str | None:
        return self.session.session_id

    def summary(self) -> dict[str, Any]:
        return {"session_id": self.session.session_id, "messages": len(self.session.messages)}


class PulledRequest(LogRequest):
    """Messages of a conversation from another registry. Only from our own exchange."""

    url: str
    ids: list[str]  # the id of each message there
    of_other_person: bool  # they are not of the person as whom this machine exchanges
    own_name: str  # the channel's name on the person's machines, if another person's channel there has that name


def conversation_log(
    tx: WriteTransaction, run: Run, request: LogRequest | HookRequest, _state: GeneralState
) -> dict[str, Any]:
    """Store the new messages of a conversation. Raises Unauthorized for a chat that the token cannot see."""
    if request.channel:
        check_writable_name(tx, _locked_name(tx, request, request.channel), is_log=True)
    result = _ingest(tx, run, request)
    if "not_kept" not in result:
        check_visible(tx, run.recorder.channel or "")
    return result


def _ingest(tx: WriteTransaction, run: Run, request: LogRequest | HookRequest) -> dict[str, Any]:
    if isinstance(request, HookRequest):
        channel, saved = ingest_from_hook(tx, request.source, request.session)
        return _log_result(run, channel, saved, len(request.session.messages))
    _refuse_remembered(request)
    if isinstance(request, PulledRequest):
        return _ingest_pulled(tx, run, request)
    resolved, other = _channel_for(tx, request)
    name = _locked_name(tx, request, resolved)
    if request.channel is None:
        note = "This is the chat's channel: pass it with every later call."
    elif name != request.channel:
        owner = other if name == resolved else "person" if request.is_from_chat else "person or session"
        note = f"{request.channel} is a chat of another {owner}: these messages are in {name}. Pass that from now on."
    else:
        note = ""
    if request.grows and grown_to(tx, request.grows, request.messages[0].text) is None:
        raise InvalidRequest(
            NOT_GROWN,
            f"grows: given {request.grows!r}; allowed: the id of a stored message with this text or its beginning",
        )
    messages = [_to_message(sent, request.timestamp) for sent in request.messages]
    save = _save_exchanged if request.is_pushed else _save_messages
    channel, saved = save(tx, name, request, messages)
    return {**_log_result(run, channel, saved, len(messages)), "channel": name, **({"note": note} if note else {})}


def _locked_name(tx: WriteTransaction, request: LogRequest | HookRequest, name: str) -> str:
    """Return the name of the channel for the person's messages; nobody else begins a channel of that name meanwhile."""
    own = _own_name(tx, request, name)
    if find_channel(tx, own) is not None:
        return own
    acquire_lock(tx, f"name {own}")
    return _own_name(tx, request, name)  # another person or session may have begun it before the lock


def _own_name(tx: WriteTransaction, request: LogRequest | HookRequest, name: str) -> str:
    if isinstance(request, LogRequest) and not request.is_from_chat:
        name = name_for_session(tx, name, request.source, _session_id(request))
    return name_for_owner(tx, name)


def _refuse_remembered(request: LogRequest) -> None:
    """Raise InvalidRequest for the source of remembered sentences, unless their channel is imported or exchanged."""
    is_import = not request.is_from_chat and (request.channel or "").startswith(REMEMBERED)
    if request.source == REMEMBERED and not is_import:
        allowed = (
            f"any other; the operation remember stores a sentence to remember, an import its channel {REMEMBERED}…"
        )
        raise InvalidRequest("The request is not valid.", f"source: given {REMEMBERED!r}; allowed: {allowed}")


def _channel_for(tx: WriteTransaction, request: LogRequest) -> tuple[str, str]:
    """Return the channel to write to; if the named one belongs to another client or project, also which of the two."""
    if request.channel is None:
        return f"{request.source}_session_{request.chat}"[:200] if request.chat else _new_name(tx, request), ""
    row = find_channel(tx, request.channel) if request.is_from_chat else None
    if row is None:
        return request.channel, ""
    project = Project.from_path(request.metadata.project).path if request.metadata.project else row.project_path
    is_other_client = request.source != UNKNOWN and row.source not in (UNKNOWN, request.source)
    is_other_project = row.project_path is not None and project != row.project_path
    if not (is_other_client or is_other_project):
        return request.channel, ""
    project_suffix = f"_{blake2b(str(project).encode(), digest_size=3).hexdigest()}" if is_other_project else ""
    fork = f"{request.channel}{f'_{request.source}' if is_other_client else ''}{project_suffix}"[:200]
    return fork, "client" if is_other_client else "project"


def _new_name(tx: WriteTransaction, request: LogRequest) -> str:
    """Return a channel name for a chat without one, the same for two calls at once.

    A channel with more messages is another chat's, which got the same name and continued.
    """
    project = Project.from_path(request.metadata.project).path if request.metadata.project else None
    if name := find_unnamed_chat(tx, list(map(_to_message, request.messages)), request.source, project):
        return name
    said = [(message.role, message.text.split(), message.timestamp) for message in request.messages]
    calls = (repr((request.metadata.project, said, number)) for number in count())
    digests = (blake2b(call.encode(), digest_size=4, key=key_of(tx)).hexdigest() for call in calls)
    names = (f"{request.source}_session_{now():%Y%m%d_%H}00_{digest}" for digest in digests)
    return next(name for name in names if _message_count(tx, name_for_owner(tx, name)) <= len(request.messages))


def _message_count(tx: WriteTransaction, name: str) -> int:
    row = find_channel(tx, name)
    return row.message_count if row else 0


def _ingest_pulled(tx: WriteTransaction, run: Run, request: PulledRequest) -> dict[str, Any]:
    """Store messages from another registry, and their ids there in the same transaction."""
    name = _own_name(tx, request, request.channel or "")
    own = find_channel(tx, _own_name(tx, request, request.own_name))
    if own and find_channel(tx, name) is None and not copied_channels(tx, [own.number]):
        add_alias(tx, name, own.number)
    edit = Edit("", None, now(), (name,), request.source, _session_id(request))
    sent = [restore_original_time(_to_message(message), now()) for message in request.messages]
    messages = dict(zip(request.ids, sent, strict=True))
    new = note_here(tx, request.url, next(iter(matching_channels(tx, edit)), None), messages)
    result = _save_pulled(tx, run, request, name, {there: messages[there] for there in new})
    if not request.of_other_person:
        forget_there_again(tx, request.url, messages)
    return result


def _save_pulled(
    tx: WriteTransaction, run: Run, request: PulledRequest, name: str, new: dict[str, Message]
) -> dict[str, Any]:
    """Store the messages that are not here, by their ids there."""
    if not new:
        return _log_result(run, name, Saved([], 0, now(), 0), 0)
    found = find_channel(tx, name)
    context_rows = last_messages(tx, found.number) if found else []
    context = [Message(Role(row.role), row.text, row.timestamp, more={STORED_ID: row.id}) for row in context_rows]
    last = last_number(tx, conversation)
    channel, saved = _save_exchanged(tx, name, request, [*context, *new.values()])
    ids = saved.ids[len(context_rows) :]
    numbers = numbers_of_ids(tx, ids)
    note_messages(tx, request.url, {numbers[here]: there for here, there in zip(ids, new, strict=False)})
    if request.of_other_person:  # earlier messages of this machine's person stay the person's
        note_of_other_person(tx, [number for number in numbers.values() if number > last])
    return _log_result(run, channel, replace(saved, ids=ids), len(ids))


def _session_id(request: LogRequest) -> str | None:
    given = request.metadata.model_dump().get("session_id")
    return given if isinstance(given, str) else None


def _to_message(sent: MessageIn, asked_at: datetime | None = None) -> Message:
    return Message(Role(sent.role), sent.text, sent.timestamp or asked_at, sent.context, sent.model_extra or {})


def _save_messages(
    tx: WriteTransaction, name: str, request: LogRequest, messages: list[Message], *, is_exchanged: bool = False
) -> tuple[str, Saved]:
    return ingest_from_tool(
        tx,
        name,
        messages,
        source=request.source,
        metadata=request.metadata.model_dump(exclude_none=True),
        received_at=now(),
        of_other_person=isinstance(request, PulledRequest) and request.of_other_person,
        is_exchanged=is_exchanged,
    )


def _save_exchanged(tx: WriteTransaction, name: str, request: LogRequest, messages: list[Message]) -> tuple[str, Saved]:
    """Store messages of another registry; a channel's deletion also deletes new ones that were said before it."""
    last = last_number(tx, conversation)
    if known := find_channel(tx, name):
        restore_stored_times(tx, known.number, messages)
    channel, saved = _save_messages(tx, name, request, messages, is_exchanged=True)
    sent_ids = [message.more.get(STORED_ID) for message in messages]
    note_copies(
        tx, {id_: here for id_, here in zip(sent_ids, saved.ids, strict=False) if id_ not in (None, here)}, last
    )
    if deletion := deletion_of(tx, saved.channel_number):
        row = get_channel(tx, channel, with_deleted=True)
        delete_channel(tx, row, soft=True, until=deletion.done_at, after=last)
    return channel, saved


def _log_result(run: Run, channel: str, saved: Saved, count: int) -> dict[str, Any]:
    run.recorder.channel = channel
    result = {"timestamp": format_time(saved.received_at), "channel": channel, "message_count": count}
    if saved.refusal:
        run.recorder.explain(channel=channel, kept_out=saved.refusal)
        note = f"This conversation is not stored: {saved.refusal}."
        return {"stored_ids": [], **result, "new_count": 0, "duplicate_count": 0, "not_kept": note}
    duplicates = count - saved.new
    run.recorder.explain(channel=channel, new=saved.new, duplicates=duplicates)
    return {"stored_ids": saved.ids, **result, "new_count": saved.new, "duplicate_count": duplicates}


class LogArguments(ToolArguments):
    channel: Annotated[ChannelName | None, Field(description="from the last answer; left out: you get one")] = None
    messages: SkipValidation[Annotated[list[MessageIn], Field(min_length=1)]]  # the request checks them
    meta: Meta | None = None
    source: SourceName | None = None
    timestamp: Timestamp | None = None

    @classmethod
    def reshape(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Accept a single message, and fields of `meta`, at the top level."""
        message = {name: given.pop(name) for name in (*ROLES, *TEXTS, *ROLE_KEYS) if name in given}
        if message and "id" in given:
            message["id"] = given.pop("id")
        meta = given.get("meta", {})
        facts = {name: given.pop(name) for name in (*Meta.model_fields,) if name in given and name != "source"}
        merged = {"meta": facts | meta} if facts and isinstance(meta, dict) else {}
        return {**({"messages": [message]} if message else {}), **given, **merged}

    def request(self, caller: Caller) -> dict[str, Any]:
        meta = self.meta or Meta()
        return {
            "operation": LogRequest.operation,
            "channel": self.channel,
            "messages": self.messages,
            "source": source_of(meta.source or self.source, caller.client, self.channel),
            "timestamp": self.timestamp,
            "metadata": {
                **meta.model_dump(exclude_none=True),
                "project": named_project(meta.project, caller.project, is_local=caller.is_local),
            },
            "chat": caller.chat,
            "is_from_chat": True,
        }


LOG_TOOL = Tool(
    name="conversation_log",
    title="Save this conversation",
    description="Save the NEW turns of this chat, so that other AI clients can continue it; only where nothing "
    "else (hooks, readers) captures this client. The first answer gives the channel: pass it with every later call of "
    "this chat. What was saved already is recognised.",
    effect=Effect.UPDATES,
    arguments=LogArguments,
    is_history=False,
    returns=["stored_ids", "channel", "message_count", "timestamp", "new_count", "duplicate_count"],
    example={
        "channel": "<channel of the last answer>",
        "messages": [{"role": "user", "text": "<what the user wrote>"}],
    },
)
OPERATION = Operation(
    request=LogRequest,
    alias="save",
    level=Level.WRITE,
    is_log=True,
    steps=Steps[LogRequest | HookRequest, None](write=conversation_log),
    tools=[LOG_TOOL],
    labels={
        "chat": ("chat", "채팅"),
        "is_from_chat": ("called by an AI", "AI가 호출"),
        "grows": ("has more words than", "이어진 메시지"),
        "is_pushed": ("from another registry", "다른 레지스트리에서 옴"),
        "messages": ("messages", "메시지"),
    },
)
