"""A tool as AI clients see it: its texts, its arguments as one request, and the outcome as its result."""

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

Outcome = Mapping[str, Any]


class Effect(Enum):
    """The effect of a call on what is stored: (read_only, destructive, idempotent), as the protocol's hints."""

    READS = (True, False, True)
    UPDATES = (False, False, True)
    ADDS = (False, False, False)
    REPLACES = (False, True, True)


class Caller(NamedTuple):
    """The caller of a tool: the client program, the folder it works in, and whether it is this machine's user."""

    client: str | None = None
    project: str | None = None
    is_local: bool = False
    chat: str | None = None  # a name of the chat, where the client or the connection tells one chat from another

    @property
    def source(self) -> str:
        return source_of(None, self.client)


class Question(NamedTuple):
    """A question to the user of a client that can show one; where nobody chooses, the call has its plain answer.

    `choices`: for each label of the form the arguments that the call gets beside its own, or None for the plain answer.
    `note`: what the plain answer then says.
    """

    text: str
    choices: Mapping[str, Mapping[str, Any] | None]
    note: str = ""


class ToolArguments(QueryShape):
    """The arguments of a call. A tool's own class adds the fields, and says how they are one request."""

    request_type: ClassVar[type[Request]]
    """The request of which these are the query, for a tool that has no `request` of its own."""

    @model_validator(mode="before")
    @classmethod
    def _normalised(cls, given: Any) -> Any:
        """Drop empty arguments, rename others, and parse JSON texts: models send all of these."""
        if not isinstance(given, Mapping):
            return given
        named = rename_arguments(unwrap(given), cls.names())
        return cls.reshape({name: _parse_argument(cls.model_fields.get(name), value) for name, value in named.items()})

    @classmethod
    def names(cls) -> Collection[str]:
        return cls.model_fields.keys()

    @classmethod
    def reshape(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments in the tool's own shape; a tool overrides it for shapes that models send."""
        return given

    def request(self, caller: Caller) -> Request | dict[str, Any]:
        """Return the request of this call. Raises InvalidRequest."""
        return self.request_type.model_validate({"query": self.model_dump(), "source": caller.source})

    async def result(self, outcome: Outcome, caller: Caller) -> dict[str, Any]:
        return {name: value for name, value in outcome.items() if name != "success"}

    def rehearsal(self) -> Self:
        """Return the arguments of the call whose result shows what to ask the user."""
        return self

    def question(self, result: Mapping[str, Any]) -> Question | None:
        """Return what the user has to decide, given the rehearsal's result."""
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
"""Synonyms that models use for arguments; each means the first name in its group that the tool has."""


def rename_arguments(given: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the arguments that are not empty under the tool's names for them, also those in camel case."""
    sent = {name: value for name, value in given.items() if value not in (None, "")}
    named = {name: value for name, value in sent.items() if name in names}
    for name, value in sent.items():
        if name not in names:
            snake_case = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            synonyms = [snake_case, *next((group for group in SYNONYMS if snake_case in group), ())]
            named.setdefault(next((one for one in synonyms if one in names and one not in named), name), value)
    return named


def _parse_argument(field: FieldInfo | None, value: Any) -> Any:
    """Parse an object or a list that was sent as text; take a text out of a list."""
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
        """Return a call's arguments as the tool takes them. Raises InvalidRequest."""
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
    returns: Sequence[str]  # the fields of its result, as published; some may be missing
    example: Mapping[str, Any]  # a correct call, shown to whoever makes a wrong one
    toolset: str = "default"  # `default`, `history`, or a set that the user switches on: `archive`, `admin`
    is_history: bool = True  # belongs to the toolset `history` too, unless the user has to switch its own on
    quotes: bool = False  # its answers quote what was said
    aliases: Sequence[Alias] = field(default_factory=tuple)

    @property
    def example_call(self) -> str:
        """A correct call in one line."""
        return f"{self.name}({json.dumps(self.example, ensure_ascii=False)})"

    def parse(self, given: Mapping[str, Any]) -> ToolArguments:
        """Check a call's arguments. Raises InvalidRequest."""
        if placeholders := {*placeholders_in(self.example)} & {*placeholders_in(given)}:
            shown = sorted(placeholders)[0]
            raise InvalidRequest(
                "The example's placeholder was sent.", f"given {shown!r}; allowed: a value of your own"
            )
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
    """Return the named parts of an outcome that are there."""
    return {name: outcome[name] for name in names if name in outcome}


PROJECT = "current (this client's folder), all, or a folder's path or name"
WHEN = "ISO 8601 or words: yesterday, 7d, last week, 지난주"


def _as_text(given: object) -> object:
    """A bare number is a place in the list of sessions, too."""
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
