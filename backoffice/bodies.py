"""OpenAPI schemas of request bodies that the orchestrator validates itself: a refused request is an execution too."""

from functools import reduce
from operator import or_
from typing import Annotated, Any

from fastapi import Body
from pydantic import BaseModel, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue

from backoffice.schemas import CHANNEL, TIME
from orchestrator.operations import aliases, operations
from orchestrator.requests.field_types import ChannelName, SourceName, Timestamp
from orchestrator.requests.shapes import MessageIn, Meta, QueryShape


class LogBody(QueryShape):
    """The arguments of conversation_log."""

    channel: ChannelName | None = Field(None, description="omitted: a new one is created and returned")
    messages: list[MessageIn] = Field(min_length=1)
    source: SourceName | None = Field(None, description="as in `meta`")
    timestamp: Timestamp | None = Field(None, description="when it was sent; the time of messages without one")
    meta: Meta | None = None
    grows: str | None = Field(
        None,
        description="id of the stored message that the sent one extends, because its client was still writing it."
        " Refused unless a machine has sent that message, and it is the beginning of this one",
    )
    is_pushed: bool = Field(
        False, description="from another registry: new messages from before the channel's deletion are deleted, too"
    )


_OPERATIONS = [one for one in operations().values() if not (one.is_local or one.is_internal)]
_QUERIES: list[Any] = [one.request.model_fields["query"].annotation for one in _OPERATIONS if one.has_query]
_Query: Any = reduce(or_, _QUERIES)


class RunBody(BaseModel):
    """An operation of the orchestrator."""

    operation: str = Field(json_schema_extra={"enum": [*(one.name for one in _OPERATIONS), *aliases()]})
    channel: ChannelName | None = None
    source: str | None = None
    messages: list[MessageIn] | None = None
    query: _Query | None = None
    metadata: Meta | None = None


class SchemaOf:
    """Gives a body that is not validated here the schema of a model."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model

    def __get_pydantic_json_schema__(self, _: object, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(self._model.__pydantic_core_schema__)


LOG_EXAMPLES: Any = {
    "one turn": {
        "value": {
            "channel": CHANNEL,
            "messages": [
                {"role": "user", "text": "Make this recursion faster", "timestamp": TIME},
                {"role": "assistant", "text": "Use functools.cache.", "context": {"file": "fib.py"}},
            ],
            "meta": {"source": "cursor", "project": "/home/me/numbers", "title": "Fibonacci"},
        }
    }
}
RUN_EXAMPLES: Any = {
    "find a conversation": {"value": {"operation": "extract", "query": {"text": "fibonacci", "limit": 5}}},
    "search everything": {"value": {"operation": "search", "query": {"text": "memoization"}}},
    "report a day": {"value": {"operation": "daily_briefing", "query": {"date": "2025-09-29"}}},
}
LogArguments = Annotated[dict[str, Any], SchemaOf(LogBody), Body(openapi_examples=LOG_EXAMPLES)]
RunArguments = Annotated[dict[str, Any], SchemaOf(RunBody), Body(openapi_examples=RUN_EXAMPLES)]
