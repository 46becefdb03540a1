"""Asking the client's own model (MCP sampling) for other wordings, and for summaries: where the user wants it and the
client offers it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, Protocol, cast

import anyio
from mcp import MCPError
from mcp.server.mcpserver import Context, Sample
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    SamplingMessage,
    TextContent,
)

from mcp_server.envelope import client_name
from orchestrator.answer.digests.summary import SHORT_TOKENS
from orchestrator.lazy import RunOperation
from orchestrator.outside.writing import SUMMARY, SYSTEM, fenced, transcript
from orchestrator.requests.queries import ExtractQuery, Written
from orchestrator.requests.shapes import READ_MESSAGES, READ_TOKENS, ExtractRequest

logger = logging.getLogger(__name__)

ASK = """\
A user looks for an earlier conversation with these words:

{question}

Give 4 other wordings of the same question, one a line and nothing else: synonyms, the technical words that may have \
been used then, likely words of the answer, and one in the other language (Korean or English)."""
TOKENS = 300
PATIENCE_S = 10.0
SUMMARY_PATIENCE_S = 45.0
MOST, LONGEST = 4, 400
INPUT_REQUIRED = "2026-07-28"
"""From this revision on the client is asked by an answer that wants more, and not by a request of ours."""
_MARK = re.compile(r"^\s*(?:[-*•]|\d+[.)])?\s*[\"'“]?(.*?)[\"'”]?\s*$")

Asked = CreateMessageResult | Sample | None


class AsksClient(Protocol):
    """Our server, as far as asking goes: whether the client's model is asked, and the way to what is kept."""

    asks_client: bool
    run_operation: RunOperation


async def ask_for_extract(ctx: Context[Any, Any], query: ExtractQuery | None) -> Asked:
    """What the client's model says, or how to ask it; None where nobody is asked, or nobody answers."""
    return await _ask(ctx, query.text if query and not query.cursor else None, query.also if query else ())


async def ask_for_search(ctx: Context[Any, Any], query: str, also: list[str] | None) -> Asked:
    """The same for a search."""
    return await _ask(ctx, query, also or ())


def wordings_in(said: CreateMessageResult | None, question: str) -> tuple[list[str], str | None]:
    """The wordings that a model gave, a line each, and the model's name."""
    if said is None or not isinstance(said.content, TextContent):
        return [], None
    lines = (found[1].strip() for line in said.content.text.splitlines() if (found := _MARK.match(line)))
    wordings = dict.fromkeys(line for line in lines if line and len(line) <= LONGEST and line != question.strip())
    return list(wordings)[:MOST], _named(said)


async def ask_for_summary(ctx: Context[Any, Any], request: ExtractRequest) -> Asked:
    """The same for a summary of what answers the request, as much as the client lets through: quoted, not obeyed."""
    if not _can_ask(ctx):
        return None
    query = request.query
    raw = query.model_copy(update={"mode": "raw", "limit": READ_MESSAGES, "max_tokens": READ_TOKENS})
    found = await _door(ctx).run_operation(request.model_copy(update={"query": raw}), client_name(ctx))
    if not found["success"]:
        return None
    task = fenced(SUMMARY, transcript(found["messages"]))
    return await _put(ctx, task, query.max_tokens or SHORT_TOKENS, SUMMARY_PATIENCE_S, SYSTEM)


def written_by(said: CreateMessageResult | None) -> Written | None:
    """The summary that a model wrote, and the model's name."""
    if said is None or not isinstance(said.content, TextContent) or not said.content.text.strip():
        return None
    return Written(said.content.text.strip(), _named(said))


def _named(said: CreateMessageResult) -> str:
    return f"{said.model} (the client's)"


def _can_ask(ctx: Context[Any, Any]) -> bool:
    capabilities = ctx.client_capabilities
    is_offered = capabilities is not None and capabilities.sampling is not None
    return _door(ctx).asks_client and is_offered


def _door(ctx: Context[Any, Any]) -> AsksClient:
    return cast("AsksClient", ctx.mcp_server)


async def _ask(ctx: Context[Any, Any], question: str | None, also: Sequence[str]) -> Asked:
    if not (_can_ask(ctx) and question) or also:
        return None
    return await _put(ctx, ASK.format(question=question), TOKENS, PATIENCE_S)


async def _put(ctx: Context[Any, Any], text: str, tokens: int, patience_s: float, system: str | None = None) -> Asked:
    messages = [SamplingMessage(role="user", content=TextContent(text=text))]
    if (ctx.protocol_version or "") >= INPUT_REQUIRED:
        return Sample(messages, max_tokens=tokens, system_prompt=system)
    params = CreateMessageRequestParams(messages=messages, max_tokens=tokens, system_prompt=system)
    try:
        with anyio.fail_after(patience_s):
            said: CreateMessageResult = await ctx.session.send_request(
                CreateMessageRequest(params=params),
                CreateMessageResult,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
            return said
    except (MCPError, TimeoutError) as exc:  # refused by the user, or too slow: it goes on without
        logger.info("The client's model gave no answer: %s", exc)
        return None
