"""tag: a session's title, nickname, tags and pin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.answer.digests.summaries import add_summaries
from orchestrator.operation import Operation
from orchestrator.requests.field_types import Nickname, Tag, Tags
from orchestrator.requests.shapes import Request
from orchestrator.state import GeneralState, Run, Steps
from orchestrator.tool import Caller, Effect, Outcome, SessionId, Tool, ToolArguments
from registry.access import Level
from registry.storage.conversations.channels import channel_item, edit_channel, tags_of
from registry.storage.conversations.pins_and_views import set_pin
from registry.storage.conversations.references import latest_channel, resolve_session
from registry.storage.database import WriteTransaction
from registry.storage.exchange.edits import NICKNAME, PINNED, TAGGED, TITLE, nickname_of_later, standing
from registry.storage.safety.masking import masked


class TagQuery(BaseModel):
    """The new names of a channel; what is not given stays."""

    model_config = ConfigDict(extra="forbid")

    title: str | None = Field(None, max_length=300)
    nickname: Nickname | None = None
    tags: list[Tag] | None = Field(None, description="all it shall have")
    add_tags: list[Tag] = []
    remove_tags: list[Tag] = []
    pinned: bool | None = Field(None, description="whether it stands above the others")


class TagRequest(Request):
    """Without a channel the latest one of the source is meant: the chat that is going on."""

    operation = "tag"
    query: TagQuery


def tag(tx: WriteTransaction, run: Run, request: TagRequest, _state: GeneralState) -> dict[str, Any]:
    """Name a channel. What another machine says of it counts where nothing later was said."""
    meant = resolve_session(tx, request.channel) if request.channel else latest_channel(tx, request.source)
    run.recorder.channel = meant.name
    tags = tags_of(tx, [meant.number])[meant.number]
    said = masked(tx, request.query.model_dump(exclude_unset=True, include={"title", "nickname"}))
    said |= {} if request.query.pinned is None else {PINNED: request.query.pinned}
    said |= {TAGGED + name: is_held for name, is_held in _tags_said(tags, _masked_tags(tx, request.query)).items()}
    news = standing(tx, meant.number, said, request.timestamp)
    if request.timestamp and news.get(NICKNAME):
        news[NICKNAME] = nickname_of_later(tx, news[NICKNAME], meant, request.timestamp)
    changes = {name: news[name] for name in (TITLE, NICKNAME) if name in news}
    row = edit_channel(tx, meant.name, changes, _tags_after(tags, news))
    if PINNED in news:
        set_pin(tx, row.number, is_pinned=news[PINNED])
    run.recorder.explain(channel=meant.name, changed=sorted(request.query.model_fields_set))
    session = channel_item(row, tags_of(tx, [row.number])[row.number])
    add_summaries(tx, run, [session])
    return {"channel": session}


def _masked_tags(tx: WriteTransaction, query: TagQuery) -> TagQuery:
    named = query.model_dump(include={"tags", "add_tags", "remove_tags"})
    return query.model_copy(update=masked(tx, named))


def _tags_said(tags: Sequence[str], query: TagQuery) -> dict[str, bool]:
    all_of_them = {} if query.tags is None else {name: name in query.tags for name in (*tags, *query.tags)}
    return all_of_them | dict.fromkeys(query.add_tags, True) | dict.fromkeys(query.remove_tags, False)


def _tags_after(tags: Sequence[str], news: Mapping[str, Any]) -> list[str] | None:
    """All tags the channel shall have; None leaves them."""
    said = {name.removeprefix(TAGGED): is_held for name, is_held in news.items() if name.startswith(TAGGED)}
    kept = [name for name in tags if said.get(name, True)]
    return [*kept, *(name for name, is_held in said.items() if is_held)] if said else None


class TagArguments(ToolArguments):
    other_names: ClassVar = {"id": "session_id", "channel": "session_id"}
    nickname: Annotated[str | None, Field(min_length=1, max_length=100)] = None
    tags: Tags | None = None
    session_id: SessionId | None = None

    def request(self, caller: Caller) -> TagRequest:
        given = {"nickname": self.nickname} if self.nickname is not None else {}
        query = TagQuery(add_tags=self.tags or [], **given)
        return TagRequest(channel=self.session_id, query=query, source=caller.source)

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        return {"session": outcome["channel"]}


class SessionNamed(BaseModel):
    """The session as it is called now."""

    session: dict[str, Any]


TAG_TOOL = Tool(
    name="tag_current_session",
    title="Name this session",
    description="Give a session a nickname and more tags, so that the user can ask for it by name ('tag this as "
    "auth-design'). For the current chat pass the channel you log it to as session_id.",
    effect=Effect.UPDATES,
    arguments=TagArguments,
    output=SessionNamed,
    example={"nickname": "auth-design", "tags": ["api"]},
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
