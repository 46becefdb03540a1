"""/bo/events: stored messages and finished executions as they happen, as Server-Sent Events."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import Field

from backoffice.dependencies import CurrentClient, HttpClient
from orchestrator.requests.shapes import QueryShape
from orchestrator.views import events
from orchestrator.views.events import FeedPosition
from registry.domain import as_json

KEEP_ALIVE_S = 15.0  # proxies close a connection that stays silent
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
EXAMPLE = 'event: message\ndata: {"id": "conv_…", "channel": "cursor_session_1", …}\nid: 121.48\n\n'

PLACE = r"^\d{1,18}\.\d{1,18}$"

router = APIRouter(prefix="/bo", tags=["events"])


class EventsQuery(QueryShape):
    """The position to start from, for clients that cannot send a header."""

    after: str | None = Field(
        None, pattern=PLACE, description="the `id` of the last event seen; `Last-Event-ID` has precedence"
    )


async def _start(
    client: CurrentClient,
    query: Annotated[EventsQuery, Query()],
    last_seen: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            pattern=PLACE,
            description="the `id` of the last event seen; later events are sent first",
            examples=["120.48"],
        ),
    ] = None,
) -> FeedPosition:
    """Return where the stream begins, read before the response starts, so that no event is missed."""
    return await events.start_of(client.registry, last_seen or query.after)


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"example": EXAMPLE}}, "description": "an endless stream"}},
)
async def stream_events(client: CurrentClient, start: Annotated[FeedPosition, Depends(_start)]) -> StreamingResponse:
    """Stream events `message` and `execution`; `data` is the item as the lists show it, `id` resumes the stream."""
    # Not FastAPI's own event streams: they fail when a client leaves while events are on their way.
    return StreamingResponse(_lines(client, start), headers=HEADERS, media_type="text/event-stream")


async def _lines(client: HttpClient, start: FeedPosition) -> AsyncIterator[bytes]:
    async for happened in events.follow(client.registry, start, KEEP_ALIVE_S):
        lines = (format_sse_event(event=one.kind, id=str(one.position), data_str=as_json(one.item)) for one in happened)
        # One chunk, because asyncio logs a warning for each further one if the client has left.
        yield b"".join(lines) or KEEPALIVE_COMMENT
