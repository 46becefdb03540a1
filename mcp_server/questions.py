"""Ask the user a tool's question (`ToolArguments.question`) through the client, by an elicitation."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mcp import MCPError
from mcp.types import CallToolRequestParams, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mcp_server.envelope import Context
from orchestrator.tool import Question

FIELD = "answer"  # the form's only field
ANSWER_S = 45.0  # longest wait for the user, in seconds: by default the TypeScript SDK ends a call after 60 s

Arguments = Mapping[str, Any]


def can_ask(ctx: Context) -> bool:
    """Return True if the client can show the user a form; a client that names no mode of elicitation can."""
    capabilities = ctx.session.client_capabilities
    asking = capabilities.elicitation if capabilities else None
    return asking is not None and (asking.form is not None or asking.url is None)


async def ask_user(
    ctx: Context, params: CallToolRequestParams, question: Question
) -> Arguments | InputRequiredResult | None:
    """Ask the user, and return the arguments of the chosen answer; None without a choice.

    For a client of revision 2026-07-28, return the form; it repeats the call with the answer.
    """
    schema = {"type": "string", "title": "Answer", "enum": list(question.choices)}
    form = ElicitRequestFormParams(
        message=question.text, requested_schema={"type": "object", "properties": {FIELD: schema}, "required": [FIELD]}
    )
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        answer: Any = None
        with suppress(MCPError, TimeoutError):  # the client cannot show forms after all, or the user does not answer
            async with asyncio.timeout(ANSWER_S):
                answer = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
    else:
        # The key is the question's text: if it has changed meanwhile, to 35 messages instead of 34, ask again.
        answer = (params.input_responses or {}).get(question.text)
        if answer is None:
            return InputRequiredResult(input_requests={question.text: ElicitRequest(params=form)})
    is_chosen = isinstance(answer, ElicitResult) and answer.action == "accept" and answer.content
    return question.choices.get(answer.content.get(FIELD)) if is_chosen else None
