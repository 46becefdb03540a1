"""Define tools for AI clients: their texts, the request made from a call, and the result made from the outcome."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, ClassVar, NamedTuple, Self, get_args

from pydantic import BeforeValidator, Field, model_validator
from pydantic.fields import FieldInfo

from orchestrator.requests.calls import source_of, unwrap
from orchestrator.requests.field_types import parse_literal
from orchestrator.requests.refusals import checked, invalid_request
from orchestrator.requests.shapes import QueryShape, Request
from registry.errors import InvalidRequest
from sources.client import SizeLimit

Outcome = Mapping[str, Any]


class Effect(Enum):
    """The effect of a call on what is stored: (read_only, destructive, idempotent), as the protocol's hints."""

    READS = (True, False, True)
    UPDATES = (False, False, True)
    ADDS = (False, False, False)
    REPLACES = (False, True, True)


class Caller(NamedTuple):
    """The caller of a tool: the client program, the folder it works in, and whether it is this machine's user.

    `limit`: the longest answer that the client passes to its model.
    """

    client: str | None = None
    project: str | None = None
    is_local: bool = False
    chat: str | None = None  # a name of the chat, if the client or the connection identifies chats
    limit: SizeLimit | None = None

    @property
    def source(self) -> str:
        return source_of(None, self.client)


class Question(NamedTuple):
    """A question to the user, for clients that can show one; without a choice the call is answered as it is.

    `choices`: for each label, the arguments to add to the call; None: answer the call as it is.
    `note`: added to the answer if the user chose None.
    """

    text: str
    choices: Mapping[str, Mapping[str, Any] | None]
    note: str = ""


class ToolArguments(QueryShape):
    """The arguments of a call. Each tool's subclass adds the fields and builds the request."""

    request_type: ClassVar[type[Request]]
    """The type of the request that has these arguments as its query; unused if `request` is overridden."""

    @model_validator(mode="before")
    @classmethod
    def _normalised(cls, given: Any) -> Any:
        """Drop empty arguments, replace synonyms, and parse JSON texts: models send all of these."""
        if not isinstance(given, Mapping):
            return given
        named = rename_arguments(unwrap(given), cls.names())
        return cls.reshape({name: _parse_argument(cls.model_fields.get(name), value) for name, value in named.items()})

    @classmethod
    def names(cls) -> Collection[str]:
        return cls.model_fields.keys()

    @classmethod
    def reshape(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Convert other shapes that models send to the tool's own; overridden by tools."""
        return given

    def request(self, caller: Caller) -> Request | dict[str, Any]:
        """Return the request of this call. Raises InvalidRequest."""
        return self.request_type.model_validate({"query": self.model_dump(), "source": caller.source})

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        return {name: value for name, value in outcome.items() if name != "success"}

    def rehearsal(self) -> Self:
        """Return the arguments of a trial call; its result is passed to `question`."""
        return self

    def question(self, result: Mapping[str, Any]) -> Question | None:
        """Return the question to the user after the trial call; None: no question."""
        return None


SYNONYMS = (
    ("text", "query", "q", "search", "question", "prompt", "keywords", "content"),
    ("session_id", "channel", "session", "conversation_id", "channel_id"),
    ("session_id", "id"),
    ("limit", "message_limit", "max_results", "top_k", "count"),
    ("also", "alternatives"),
    ("from", "since", "after_date", "after", "start_date"),
    ("to", "until", "before_date", "end_date"),
    ("messages", "message", "conversation", "contents", "history", "turns"),
    ("nickname", "name"),
    ("tags", "tag"),
)
"""Synonyms that models use for arguments; each stands for the first name in its group that the tool has."""


def rename_arguments(given: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the non-empty arguments, with synonyms and camel case replaced by the tool's names."""
    sent = {name: value for name, value in given.items() if value not in (None, "")}
    named = {name: value for name, value in sent.items() if name in names}
    for name, value in sent.items():
        if name not in names:
            snake_case = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            synonyms = [snake_case, *next((group for group in SYNONYMS if snake_case in group), ())]
            named.setdefault(next((one for one in synonyms if one in names and one not in named), name), value)
    return named


def _parse_argument(field: FieldInfo | None, value: Any) -> Any:
    """Parse an object or list that was sent as text; unwrap a text from a list of one."""
    if field is None or str not in (field.annotation, *get_args(field.annotation)):
        return value if field is None else parse_literal(value)
    return value[0] if isinstance(value, list) and len(value) == 1 else value


class Alias(NamedTuple):
    """A further name of a tool: renamed arguments, required ones, and defaults."""

    name: str
    renamed: Mapping[str, str] = {}
    required: Sequence[str] = ()
    defaults: Mapping[str, Any] = {}

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return a call's arguments under the tool's names. Raises InvalidRequest."""
        if missing := [name for name in self.required if name not in given]:
            raise invalid_request([{"type": "missing", "loc": (name,)} for name in missing])
        return {**self.defaults, **{self.renamed.get(name, name): value for name, value in given.items()}}


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """A tool. `description` tells an AI when to call it."""

    name: str
    title: str
    description: str
    effect: Effect
    arguments: type[ToolArguments]
    returns: Sequence[str]  # the published fields of its result; some may be missing
    example: Mapping[str, Any]  # a correct call, shown after a wrong one
    toolset: str = "default"  # `default`, `history`, or one that the user enables: `archive`, `admin`
    is_history: bool = True  # it is in the toolset `history`, too; ignored if its own toolset has to be enabled
    quotes: bool = False  # its answers quote messages
    aliases: Sequence[Alias] = field(default_factory=tuple)

    @property
    def example_call(self) -> str:
        """A correct call in one line."""
        return f"{self.name}({json.dumps(self.example, ensure_ascii=False)})"

    def parse(self, given: Mapping[str, Any]) -> ToolArguments:
        """Check a call's arguments. Raises InvalidRequest."""
        if placeholders := {*placeholders_in(self.example)} & {*placeholders_in(given)}:
            shown = sorted(placeholders)[0]
            raise InvalidRequest("The example's placeholder was sent.", f"given {shown!r}; allowed: a real value")
        with checked(sorted(self.arguments.model_fields)):
            return self.arguments.model_validate(dict(given))


def placeholders_in(value: Any) -> Iterator[str]:
    """Yield the texts in angle brackets that stand for a value in an example."""
    if isinstance(value, str) and value[:1] == "<" and value[-1:] == ">":
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from placeholders_in(part)


def select_fields(outcome: Outcome, *names: str) -> dict[str, Any]:
    """Return the named fields that an outcome has."""
    return {name: outcome[name] for name in names if name in outcome}


PROJECT = "current (this client's folder), all, or a folder's path or name"
WHEN = "ISO 8601 or words: yesterday, 7d, last week, 지난주"


def _as_text(given: object) -> object:
    """Accept an integer: a place in the list of sessions."""
    return str(given) if isinstance(given, int) else given


ProjectName = Annotated[str, Field(description=PROJECT)]
SessionId = Annotated[
    str,
    BeforeValidator(_as_text, json_schema_input_type=str),
    Field(
        min_length=1,
        max_length=300,
        description="id or its unique beginning, channel, nickname, or #3 for the third latest",
    ),
]
