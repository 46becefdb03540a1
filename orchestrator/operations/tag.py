"""tag: set a session's title, nickname, tags and pin."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field

from orchestrator.answer.digests.summaries import add_summaries
from orchestrator.requests.calls import UNKNOWN
from orchestrator.requests.field_types import Nickname, Tag, Tags, Title
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import GeneralState, Operation, Run, Steps
from orchestrator.tool import Caller, Effect, Outcome, SessionId, Tool, ToolArguments
from registry.access import Level
from registry.domain import now, preview_of
from registry.errors import InvalidRequest
from registry.storage.conversations.belonging import set_pin
from registry.storage.conversations.channels import ChannelRow, get_channel, item_of, some_channels, tags_of
from registry.storage.conversations.references import edit_channel, resolve_edited
from registry.storage.database import WriteTransaction
from registry.storage.exchange.edits import NICKNAME, PINNED, TAGGED, TITLE, record_edits, resolve_nickname_conflict
from registry.storage.safety.masking import masked


class TagQuery(QueryShape):
    """New names of a channel; missing fields stay unchanged."""

    title: Title | None = None
    nickname: Nickname | None = None
    tags: list[Tag] | None = Field(None, description="all tags of the channel")
    add_tags: list[Tag] = Field([])
    remove_tags: list[Tag] = Field([])
    pinned: bool | None = Field(None, description="list it above the others")


class TagRequest(Request):
    """New names for a channel; without a channel, for the current chat, if it is known. The channel may be new."""

    operation = "tag"
    query: TagQuery
    folder: str | None = Field(None, description="the folder that the chat works in")

    @property
    def is_about_current_chat(self) -> bool:
        return True


def tag(tx: WriteTransaction, run: Run, request: TagRequest, _state: GeneralState) -> dict[str, Any]:
    """Name a channel. An edit from another registry is ignored if a later one is known."""
    name, done_at = request.channel, request.timestamp
    target = resolve_edited(tx, name, done_at) if name else current_channel(tx, request)
    run.recorder.channel = target.name
    tags = tags_of(tx, [target.number])[target.number]
    edits = masked(tx, request.query.model_dump(exclude_unset=True, include={"title", "nickname"}))
    edits |= {} if request.query.pinned is None else {PINNED: request.query.pinned}
    query = request.query.model_copy(update=masked(tx, request.query.model_dump(include=_TAGS)))
    edits |= {TAGGED + name: is_added for name, is_added in _tag_edits(tags, query).items()}
    news = record_edits(tx, target.number, edits, request.timestamp)
    if request.timestamp and news.get(NICKNAME):
        news[NICKNAME] = resolve_nickname_conflict(tx, news[NICKNAME], target, request.timestamp)
    changes = {name: news[name] for name in (TITLE, NICKNAME) if name in news}
    row = edit_channel(tx, target.name, changes, _tags_after(tags, news))
    if PINNED in news:
        set_pin(tx, row.number, is_pinned=news[PINNED])
    run.recorder.explain(channel=target.name, changed=sorted(request.query.model_fields_set))
    session = item_of(tx, row)
    add_summaries(tx, run, [session])
    return {"channel": session}


def current_channel(tx: WriteTransaction, request: TagRequest) -> ChannelRow:
    """Return the only chat of this client and folder that was active within the hour. Raises InvalidRequest."""
    source = None if request.source == UNKNOWN else request.source
    lately = now() - timedelta(hours=1)
    found, total = some_channels(tx, source=source, project=request.folder, from_=lately, limit=3, offset=0)
    if total == 1:
        return get_channel(tx, found[0]["channel"])
    titles = [
        f"{one['channel']} ({preview_of(one['title'] or one['first_message_preview'] or '', 40)})" for one in found
    ]
    allowed = f"one of {', '.join(titles)}" if found else "the id of this chat; none was active within the hour"
    raise InvalidRequest("It is not known which chat is meant.", f"session_id: missing; allowed: {allowed}")


_TAGS = {"tags", "add_tags", "remove_tags"}


def _tag_edits(tags: Sequence[str], query: TagQuery) -> dict[str, bool]:
    all_of_them = {} if query.tags is None else {name: name in query.tags for name in (*tags, *query.tags)}
    return all_of_them | dict.fromkeys(query.add_tags, True) | dict.fromkeys(query.remove_tags, False)


def _tags_after(tags: Sequence[str], news: Mapping[str, Any]) -> list[str] | None:
    """Return all new tags of the channel; None: unchanged."""
    has_tag = {name.removeprefix(TAGGED): is_added for name, is_added in news.items() if name.startswith(TAGGED)}
    remaining = [name for name in tags if has_tag.get(name, True)]
    return [*remaining, *(name for name, is_added in has_tag.items() if is_added)] if has_tag else None


class TagArguments(ToolArguments):
    nickname: Annotated[str | None, Field(min_length=1, max_length=100)] = None
    tags: Tags | None = None
    session_id: SessionId | None = None

    def request(self, caller: Caller) -> TagRequest:
        given = {"nickname": self.nickname} if self.nickname is not None else {}
        query = TagQuery(add_tags=self.tags or [], **given)
        return TagRequest(channel=self.session_id, query=query, source=caller.source, folder=caller.project)

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        return {"session": outcome["channel"]}


TAG_TOOL = Tool(
    name="tag_current_session",
    title="Name this session",
    description="Give a session a nickname and more tags, so that the user can ask for it by name ('tag this as "
    "auth-design'). For the current chat pass its id or the channel you log it to as session_id: without one it is "
    "refused where more than one chat may be meant.",
    effect=Effect.UPDATES,
    arguments=TagArguments,
    returns=["session"],
    example={"session_id": "<id or channel of this chat>", "nickname": "auth-design", "tags": ["api"]},
)
OPERATION = Operation(
    request=TagRequest,
    level=Level.WRITE,
    steps=Steps[TagRequest, None](write=tag),
    tools=[TAG_TOOL],
    labels={
        "tags": ("tags", "태그"),
        "add_tags": ("tags added", "더한 태그"),
        "title": ("title", "제목"),
        "pinned": ("pinned", "고정"),
        "nickname": ("nickname", "별명"),
        "remove_tags": ("tags removed", "뺀 태그"),
    },
)
