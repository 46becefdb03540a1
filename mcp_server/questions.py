"""Ask the user through the client, by an elicitation; a tool's arguments say what (`ToolArguments.question`)."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mcp import MCPError
from mcp.types import CallToolRequestParams, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_server.envelope import Context
from orchestrator.tool import Question

FIELD = "answer"  # the only one of the form
ANSWER_S = 45.0  # how long the user is waited for: by default the TypeScript SDK gives up a call after 60 s

Arguments = Mapping[str, Any]


def can_ask(ctx: Context) -> bool:
    """Return True if the client can show the user a form. One that names no mode of elicitation can."""
    capabilities = ctx.session.client_capabilities
    asking = capabilities.elicitation if capabilities else None
    return asking is not None and (asking.form is not None or asking.url is None)


async def asked(
    ctx: Context, params: CallToolRequestParams, question: Question
) -> Arguments | InputRequiredResult | None:
    """Return the arguments that the user's choice adds; None without a choice.

    A client of revision 2026-07-28 is sent the returned form, and repeats the call with the answer.
    """
    schema = {"type": "string", "title": "Answer", "enum": list(question.choices)}
    form = ElicitRequestFormParams(
        message=question.text, requested_schema={"type": "object", "properties": {FIELD: schema}, "required": [FIELD]}
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
