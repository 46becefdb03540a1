"""fetch: return one session's messages, as an answer or a document."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from orchestrator.answer import delivery
from orchestrator.answer.digests.summaries import add_summaries
from orchestrator.answer.fitting import fit_page, piece_of
from orchestrator.export.sharing import for_others
from orchestrator.export.texts import ENDINGS, ExportFormat, document_path, export, write_new_file
from orchestrator.requests.field_types import MAX_COUNT, Limit
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import Operation, Run, Steps
from orchestrator.tool import Alias, Caller, Effect, Outcome, SessionId, Tool, ToolArguments
from registry.access import Level
from registry.domain import format_time, parse_time, preview_of
from registry.errors import InvalidRequest, NotFound
from registry.monitor.token_usage import usage_of_channel
from registry.storage.conversations.channels import ChannelRow, item_of, model_facts, title_edited_at
from registry.storage.conversations.message_windows import Window, read_window
from registry.storage.conversations.messages import MessageRow, get_message, message_position, messages_of
from registry.storage.conversations.references import aliases_of, links_of, resolve_session
from registry.storage.database import ReadTransaction
from registry.storage.paging import Page, cursor_of, decode_cursor, encode_cursor


class FetchQuery(QueryShape):
    """A part of one session: its end, or messages before a sequence number."""

    session_id: str = Field(min_length=1, max_length=300)
    message_limit: Limit | None = None
    before: int | None = Field(None, ge=1, le=MAX_COUNT)
    message_id: str | None = Field(None, description="that message, whole")
    max_tokens: int | None = Field(None, ge=1, description="what is longer comes in pages, or shortened")
    cursor: str | None = Field(None, description='next_cursor of the last answer; "" for the beginning')
    is_folded: bool = False
    is_complete: bool = Field(False, description="each message with all its stored fields")


class FetchRequest(Request):
    operation = "fetch"
    query: FetchQuery


@dataclass(frozen=True, slots=True)
class Fetched:
    """A session and the messages read from it. `has_more`: more messages follow."""

    session: dict[str, Any]
    messages: list[delivery.MessageDict]
    has_more: bool


def fetch_session(tx: ReadTransaction, run: Run, request: FetchRequest) -> Fetched:
    """Read a session's last messages, a page from its beginning or after a cursor, or one message."""
    query = request.query
    row = resolve_session(tx, query.session_id)
    run.recorder.channel = row.name
    wanted, how = _read_rows(tx, row, query)
    run.recorder.explain(channel=row.name, by=how, candidates=len(wanted.rows))
    session = _describe_whole(tx, row) if query.is_complete else _describe_session(tx, row)
    add_summaries(tx, run, [session])
    if query.max_tokens is None and not query.is_complete:
        session["usage"] = usage_of_channel(tx, row.number)
    return Fetched(session, [delivery.message_dict(message) for message in wanted.rows], wanted.later is not None)


def _read_rows(tx: ReadTransaction, row: ChannelRow, query: FetchQuery) -> tuple[Window, str]:
    if wanted := query.message_id or _piece_position(query.cursor).get("m"):
        return Window([_message_of(tx, row, wanted)]), "the message's id"
    if query.cursor is not None:
        page = read_window(tx, row.number, Page(200, query.cursor or None, "asc"))
        return page, "the session from its beginning, page by page"
    before = message_position(tx, row.number, query.before - 1) if query.before else None
    last = messages_of(tx, row.number, limit=query.message_limit, before=before)
    return Window(last), "the session's last messages"


def _piece_position(cursor: str | None) -> dict[str, Any]:
    try:
        return decode_cursor(cursor, m=str, o=int) if cursor else {}
    except InvalidRequest:
        return {}  # it is another kind of cursor, or invalid, which is reported later


def _message_of(tx: ReadTransaction, row: ChannelRow, message_id: str) -> MessageRow:
    message = get_message(tx, message_id)
    if message.channel_number != row.number:
        raise NotFound("No such message in this session", f"{message_id!r} is in channel {message.channel!r}")
    return message


def _describe_session(tx: ReadTransaction, row: ChannelRow) -> dict[str, Any]:
    return {**item_of(tx, row), **other_names(tx, row), **model_facts(row)}


def _describe_whole(tx: ReadTransaction, row: ChannelRow) -> dict[str, Any]:
    """Return a session with all fields of a document; `titled_at` is when the user gave it its title."""
    titled_at = title_edited_at(tx, row) if row.title else None
    return _describe_session(tx, row) | ({"titled_at": format_time(titled_at)} if titled_at else {})


def document_of(tx: ReadTransaction, row: ChannelRow) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a session and its messages with all stored fields."""
    messages = map(delivery.message_dict, messages_of(tx, row.number))
    return _describe_whole(tx, row), [{**delivery.full_message(one), "sequence": one["seq"] + 1} for one in messages]


def other_names(tx: ReadTransaction, row: ChannelRow) -> dict[str, list[str]]:
    """Return the channel's other names and possible duplicates, without empty lists."""
    known = {"also_known_as": aliases_of(tx, row.number), "maybe_same_as": links_of(tx, row.number)}
    return {name: names for name, names in known.items() if names}


async def answer_fetch(run: Run, request: FetchRequest, data: Fetched) -> dict[str, Any]:
    """Return the messages in order with their sequence numbers; with `is_folded`, shorten tool and thinking texts."""
    query = request.query
    messages = [{**_deliver(query, message), "sequence": message["seq"] + 1} for message in data.messages]
    if query.message_id is not None or _piece_position(query.cursor):
        return {"session": data.session, **_piece_result(run, query, data.session, messages[0])}
    if query.is_folded:
        for message in messages:
            if message["role"] in ("tool", "thinking"):
                message["text"] = preview_of(message["text"], 200)
    shown = _fit_messages(run, query, data.session, messages)
    tokens = sum(delivery.tokens_in(message["text"]) for message in shown)
    run.recorder.explain(kept=len(shown), dropped=len(messages) - len(shown), reason="max_tokens", tokens=tokens)
    more: dict[str, Any] = {}
    if query.cursor is not None and (data.has_more or len(shown) < len(messages)):
        last = data.messages[len(shown) - 1]
        more["next_cursor"] = cursor_of(parse_time(last["timestamp"]), last["number"])
    return {"session": data.session, "messages": shown, **more}


def _deliver(query: FetchQuery, message: delivery.MessageDict) -> delivery.MessageDict:
    """Return the message for the answer.

    Without a size limit, or for a single small message, it has the whole tool call; without a limit, attachments, too.
    """
    if query.is_complete:
        return delivery.full_message(message)
    is_small = query.message_id is not None and delivery.length_of(message["tool"]) <= delivery.MAX_CONTEXT
    delivered = delivery.deliver(message, whole_tool=is_small or not (query.max_tokens or query.is_folded))
    names = None if query.max_tokens else message["payload"].get("attachments")
    return {**delivered, "attachments": names} if names else delivered


def _piece_result(run: Run, query: FetchQuery, session: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    """Return one message, or the part of it that fits, with a cursor to the rest."""
    if query.max_tokens is None:
        return {"messages": [message]}
    offset = min(max(_piece_position(query.cursor).get("o", 0), 0), len(message["text"]))
    tokens = delivery.tokens_for(run.limit, query.max_tokens)

    def answer(text: str) -> dict[str, Any]:
        end = offset + len(text)
        is_whole = (offset, end) == (0, len(message["text"]))
        marks = {} if is_whole else {"full_length": len(message["text"]), "offset": offset}
        cursor = {} if end == len(message["text"]) else {"next_cursor": encode_cursor({"m": message["id"], "o": end})}
        return {"messages": [{**message, "text": text, **marks}], **cursor}

    def is_small(text: str) -> bool:
        sized = {"session": session, **answer(text)}
        return delivery.tokens_in(text) <= tokens and delivery.fits(run.limit, sized)

    piece = piece_of(message["text"], offset, is_small)
    run.recorder.explain(kept=1, characters=len(piece), of=len(message["text"]), offset=offset)
    return answer(piece)


def _fit_messages(
    run: Run, query: FetchQuery, session: dict[str, Any], messages: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    if query.max_tokens is None:
        return messages
    tokens = delivery.tokens_for(run.limit, query.max_tokens)
    shown = _page(query, messages, tokens)
    while tokens > 1 and not delivery.fits(run.limit, {"session": session, "messages": shown}):
        tokens = tokens * 3 // 4
        shown = _page(query, messages, tokens)
    return shown


def _page(query: FetchQuery, messages: list[dict[str, Any]], tokens: int) -> list[dict[str, Any]]:
    return fit_page(messages, tokens) if query.cursor is not None else fit_page(reversed(messages), tokens)[::-1]


class FetchArguments(ToolArguments):
    session_id: SessionId
    message_limit: Limit = 50
    before: Annotated[int | None, Field(ge=1)] = None
    message_id: Annotated[str | None, Field(min_length=1)] = None
    cursor: Annotated[str | None, Field(min_length=1)] = None
    max_tokens: Annotated[int, Field(ge=1)] = 6000

    def request(self, caller: Caller) -> FetchRequest:
        """Return the request; with a cursor, messages are not folded and have no limit."""
        is_complete = self.cursor is not None and self.message_id is None
        is_whole_message = self.message_id is not None and "max_tokens" not in self.model_fields_set
        query = FetchQuery(
            session_id=self.session_id,
            message_limit=None if is_complete else self.message_limit,
            before=self.before,
            message_id=self.message_id,
            cursor="" if self.cursor == "start" else self.cursor,
            max_tokens=1_000_000 if is_whole_message else self.max_tokens,
            is_folded=not is_complete,
        )
        return FetchRequest(query=query, source=caller.source)


class ExportArguments(ToolArguments):
    session_id: SessionId
    format: ExportFormat = "markdown"
    path: Annotated[str | None, Field(min_length=1, description="a new file in an existing folder")] = None
    share: bool = False

    def request(self, caller: Caller) -> FetchRequest:
        if self.path and not caller.is_local:
            raise InvalidRequest(
                "This server writes no files for remote callers.",
                f"path: given {self.path!r}; allowed over HTTP: none; without it, the answer contains the document",
            )
        return FetchRequest(query=FetchQuery(session_id=self.session_id, is_complete=True), source=caller.source)

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        document = await asyncio.to_thread(self._document, outcome, caller.project)
        result = {"session_id": outcome["session"]["session_id"], "format": self.format, **document}
        if not delivery.fits(caller.limit, result):
            instead = f"a new file that ends in {ENDINGS[self.format]}" if caller.is_local else _IN_PAGES
            raise InvalidRequest("The document is too long for an answer.", f"path: given none; allowed: {instead}")
        return result

    def _document(self, outcome: Outcome, folder: str | None) -> dict[str, str]:
        file = document_path(self.path, self.format, folder) if self.path else None
        if file is None and self.format == "pdf":
            raise InvalidRequest(
                "A PDF cannot be returned as text.", "path: given none; allowed: a new file that ends in .pdf"
            )
        exported = outcome["session"], outcome["messages"]
        content = export(self.format, *(for_others(*exported) if self.share else exported))
        return {"path": str(write_new_file(file, content))} if file else {"text": content.decode()}


_IN_PAGES = 'none over HTTP; fetch_session_by_id({"session_id": …, "cursor": "start"}) gives it in pages'

FETCH_TOOL = Tool(
    name="fetch_session_by_id",
    title="Read a past session",
    description="Read a PAST session, quoted, by the id that list_sessions or search_sessions gave or that the user "
    "names. Gives its last messages; for older ones pass the first sequence as before. One with "
    "full_length is shortened: pass its id as message_id, next_cursor as cursor.",
    effect=Effect.READS,
    arguments=FetchArguments,
    returns=["quoted", "session", "messages", "next_cursor"],
    example={"session_id": "#1"},
    quotes=True,
    aliases=[
        Alias("fetch_session_by_nickname", renamed={"nickname": "session_id"}),
        Alias("get_session_detail", defaults={"cursor": "start"}),
    ],
)
EXPORT_TOOL = Tool(
    name="export_session",
    title="Export a past session",
    description="A whole PAST session as a document, to keep or to hand to somebody. With path it is written to that "
    "new file and the path is returned (nothing is ever overwritten); without, you get a short one's text. share takes "
    "out secrets, folders, user names and addresses, for others to read.",
    effect=Effect.ADDS,
    arguments=ExportArguments,
    returns=["session_id", "format", "text", "path"],
    example={"session_id": "auth-design", "format": "markdown"},
    toolset="history",
)
OPERATION = Operation(
    request=FetchRequest,
    level=Level.READ,
    syncs_first=True,
    steps=Steps[FetchRequest, Fetched](query=fetch_session, answer=answer_fetch),
    tools=[FETCH_TOOL, EXPORT_TOOL],
    labels={
        "message_limit": ("most messages", "최대 메시지 수"),
        "is_folded": ("folded", "접어서 보기"),
        "message_id": ("message", "메시지"),
        "is_complete": ("with all fields", "보관된 것 전부"),
    },
)
