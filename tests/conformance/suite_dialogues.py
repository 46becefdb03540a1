"""Fixtures of the conformance suite that ask the client before they answer.

As in 2026-07-28, a tool answers with an `InputRequiredResult` and is called again with the responses. For the handshake
era see `suite_forms`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

Round = Mapping[str, InputRequest]


def ask_user(message: str, **fields: str) -> ElicitRequest:
    """Return a form with a required field for each keyword, whose value is the JSON type."""
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in fields.items()},
        "required": list(fields),
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def ask_model(prompt: str) -> CreateMessageRequest:
    """Return a question to the client's language model."""
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=100))


NAME = ask_user("What is your name?", name="string")
CONFIRM = ask_user("Please confirm", ok="boolean")
CAPITAL = ask_model("What is the capital of France?")
GREETING = ask_model("Generate a greeting")
ROOTS = ListRootsRequest()

DIALOGUES: Mapping[str, Sequence[Round]] = {
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_sampling": [{"capital_question": CAPITAL}],
    "test_input_required_result_list_roots": [{"client_roots": ROOTS}],
    "test_input_required_result_request_state": [{"confirm": CONFIRM}],
    "test_input_required_result_multiple_inputs": [{"user_name": NAME, "greeting": GREETING, "client_roots": ROOTS}],
    "test_input_required_result_multi_round": [
        {"step1": ask_user("Step 1: What is your name?", name="string")},
        {"step2": ask_user("Step 2: What is your favorite color?", color="string")},
    ],
    "test_input_required_result_tampered_state": [{"confirm": CONFIRM}],
    "test_input_required_result_capabilities": [{"user_name": NAME, "greeting": GREETING}],
    "test_missing_capability": [{"greeting": GREETING}],
    "test_streaming_elicitation": [{"user_name": NAME}],
}
PROMPT_DIALOGUE: Sequence[Round] = [{"user_context": ask_user("What context should the prompt use?", context="string")}]


def next_round(ctx: Context[Any], rounds: Sequence[Round]) -> InputRequiredResult | None:
    """Return what to ask now, None after the last round. The state counts the answered rounds.

    Raises `MCPError` if the client supports none of the requests.
    """
    answered = int(ctx.request_state or 0)
    if rounds[answered].keys() & (ctx.input_responses or {}).keys():
        answered += 1
    if answered == len(rounds):
        return None
    possible = {key: ask for key, ask in rounds[answered].items() if is_supported(ctx.client_capabilities, ask)}
    if not possible:
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "The client cannot answer",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return InputRequiredResult(input_requests=possible, request_state=str(answered))


def is_supported(capabilities: ClientCapabilities | None, ask: InputRequest) -> bool:
    """Return whether the client declares support for this kind of request."""
    if capabilities is None:
        return False
    needed = {
        "elicitation/create": capabilities.elicitation,
        "sampling/createMessage": capabilities.sampling,
        "roots/list": capabilities.roots,
    }
    return needed[ask.method] is not None


def add_dialogues(server: MCPServer[Any]) -> None:
    """Add tools and a prompt that ask before they answer."""
    for name, rounds in DIALOGUES.items():

        async def ask(ctx: Context[Any], rounds: Sequence[Round] = rounds) -> CallToolResult | InputRequiredResult:
            return next_round(ctx, rounds) or CallToolResult(content=[TextContent(text=report(ctx))])

        server.add_tool(ask, name=name, description=f"Conformance fixture {name}")

    @server.prompt()
    async def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
        """A prompt that asks for its context."""
        return next_round(ctx, PROMPT_DIALOGUE) or report(ctx)


def report(ctx: Context[Any]) -> str:
    """Return the answers of the last round as text."""
    responses = {key: value.model_dump(mode="json") for key, value in (ctx.input_responses or {}).items()}
    return f"state-ok {json.dumps(responses)}"
