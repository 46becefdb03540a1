"""Asking the client's own model for other wordings (MCP sampling): where the user wants it and the client offers it."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

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

from orchestrator.queries import ExtractQuery

logger = logging.getLogger(__name__)

ASK = """\
A user looks for an earlier conversation with these words:

{question}

Give 4 other wordings of the same question, one a line and nothing else: synonyms, the technical words that may have \
been used then, likely words of the answer, and one in the other language (Korean or English)."""
TOKENS = 300
PATIENCE_S = 10.0
MOST, LONGEST = 4, 400
INPUT_REQUIRED = "2026-07-28"
"""From this revision on the client is asked by an answer that wants more, and not by a request of ours."""
_MARK = re.compile(r"^\s*(?:[-*•]|\d+[.)])?\s*[\"'“]?(.*?)[\"'”]?\s*$")

Asked = CreateMessageResult | Sample | None


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
    return list(wordings)[:MOST], f"{said.model} (the client's)"


async def _ask(ctx: Context[Any, Any], question: str | None, also: Sequence[str]) -> Asked:
    capabilities = ctx.client_capabilities
    is_offered = capabilities is not None and capabilities.sampling is not None
    if not (getattr(ctx.mcp_server, "asks_client", False) and is_offered and question) or also:
        return None
    messages = [SamplingMessage(role="user", content=TextContent(text=ASK.format(question=question)))]
    if (ctx.protocol_version or "") >= INPUT_REQUIRED:
        return Sample(messages, max_tokens=TOKENS)
    params = CreateMessageRequestParams(messages=messages, max_tokens=TOKENS)
    try:
        with anyio.fail_after(PATIENCE_S):
            said: CreateMessageResult = await ctx.session.send_request(
                CreateMessageRequest(params=params),
                CreateMessageResult,
                metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
            )
            return said
    except (MCPError, TimeoutError) as exc:  # refused by the user, or too slow: the question is asked as it is
        logger.info("The client's model gave no wordings: %s", exc)
        return None
