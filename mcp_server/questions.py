"""Ask the user through the client, by an elicitation: before much is forgotten, and which of several conversations that
fit equally is meant. Where nobody can be asked, or does not choose, the call has its plain answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from orchestrator.tool import Tool, ToolArguments
from registry.domain import parse_time

EQUAL = 0.9  # share of the best conversation's score from which on another one fits as well
FIELD = "answer"  # the only one of the form
ANSWER_S = 45.0  # how long the user is waited for: by default the TypeScript SDK gives up a call after 60 s

Arguments = Mapping[str, Any]


class Question(NamedTuple):
    """A question to the user.

    `choices`: for each label of the form the arguments that the call gets beside its own, or None for the plain answer.
    `note`: what the plain answer then says.
    """

    text: str
    choices: Mapping[str, Arguments | None]
    note: str = ""


def can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return True if the client can show the user a form. One that names no mode of elicitation can."""
    capabilities = ctx.session.client_capabilities
    asking = capabilities.elicitation if capabilities else None
    return asking is not None and (asking.form is not None or asking.url is None)


def rehearsed(tool: Tool, arguments: ToolArguments) -> ToolArguments:
    """Return the arguments of the call whose result shows what to ask."""
    return arguments.model_copy(update={"dry_run": True}) if tool.name == "forget" else arguments


def question_about(tool: Tool, arguments: ToolArguments, result: Mapping[str, Any]) -> Question | None:
    """Return what the user has to decide; `result` is that of the rehearsed call."""
    if tool.name == "forget" and not arguments.model_dump()["dry_run"]:
        return _before_forgetting(result["receipt"])
    if tool.name == "extract":
        return _between_conversations(result)
    return None


def _before_forgetting(receipt: Mapping[str, Any]) -> Question:
    return Question(
        f"Forget this for good? Messages: {receipt['messages']}, whole conversations: {receipt['channels']}",
        {"Forget it": {}, "Keep it": None},
        "The user was asked and did not agree: nothing was forgotten.",
    )


def _between_conversations(result: Mapping[str, Any]) -> Question | None:
    others = [one for one in result.get("candidates", ()) if one.get("score", 0) >= EQUAL]
    first = {**result, "when": result["metadata"]["last_activity"]}
    named = {_label(one): {"channel": one["channel"]} for one in (first, *others)}
    return Question("Which conversation do you mean?", named) if len(named) > 1 else None


def _label(one: Mapping[str, Any]) -> str:
    day = parse_time(one["when"]).astimezone().date()
    return f"{one.get('title', one['channel'])} ({one.get('project', 'General')}, {one.get('source', '')}, {day})"


async def asked(
    ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams, question: Question
) -> Arguments | InputRequiredResult | None:
    """Return the arguments that the user's choice adds; None without a choice.

    A client of revision 2026-07-28 is sent the returned form, and repeats the call with the answer.
    """
    schema = {"type": "string", "title": "Answer", "enum": list(question.choices)}
    form = ElicitRequestFormParams(
        message=question.text,
        requested_schema={"type": "object", "properties": {FIELD: schema}, "required": [FIELD]},
    )
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        answer: Any = None
        with suppress(MCPError, TimeoutError):  # it declared what it cannot do, or the user is not there
            async with asyncio.timeout(ANSWER_S):
                answer = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
    else:
        # By its text: a question that is another one by now, with 35 messages in place of 34, is asked again.
        answer = (params.input_responses or {}).get(question.text)
        if answer is None:
            return InputRequiredResult(input_requests={question.text: ElicitRequest(params=form)})
    is_chosen = isinstance(answer, ElicitResult) and answer.action == "accept" and answer.content
    return question.choices.get(answer.content.get(FIELD)) if is_chosen else None
