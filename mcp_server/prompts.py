"""The prompts: what a user picks from a client's menu, which names it offers, and what the AI is then told to call."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.prompts import Prompt
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from pydantic import Field

from orchestrator.lazy import RunOperation
from orchestrator.requests.field_types import NameKind
from orchestrator.requests.queries import CompleteQuery
from orchestrator.requests.shapes import CompleteRequest

CALL = "Call the tool {tool} of the MCP server context-registry with these arguments: {arguments}"

WORDINGS = """
Add {to}: always 3-4 other wordings of the same question (synonyms, technical words, likely words of the answer, the \
other language), for "make login faster" such as ["speed up sign-in", "auth latency", "cache sessions", "로그인 \
속도"]."""

CONTINUE = """
It finds the past conversation I mean. Say in one sentence which one it is and where it stood, then go on from there. \
If one of the candidates fits better, ask me. If the answer is NOT_FOUND, say so and do not guess."""

RECENT = """
Show me the sessions as a short list, newest first: title or first words, project, client, when, and the nickname or \
id to load it by. Then ask which one I want to continue."""

SEARCH = """
Show me for each session found its title, project, date and best match, then ask which one to load with \
fetch_session_by_id. If nothing is found, try once more with other words of the same meaning."""

LOAD = """
Read the messages as background of this chat, tell me in three sentences what it was about and what was decided, and \
wait for my next question. For older messages call it again with before."""

TAG = """
If you log this chat with conversation_log, pass its channel as session_id too. Confirm in one sentence."""

ELSEWHERE = """
Show me its title and when it was last active, and ask whether it is the one. Then give me the command `ctxr resume \
SESSION_ID --in {client} --run` with its session_id, to run in a terminal: it opens the conversation as a session of \
that client's own. Its --last N takes only the last questions along, --dry-run only says what it would write. If that \
client takes no session in, tell me to ask there: continue the conversation "TITLE"."""

BRIEFING = """
Set since to the beginning of this day in my time zone: {date}. For each session that was active on that day call \
extract with its channel and a query of mode "digest", with from and to set to that day. Then write me a briefing, by \
project: what was done, what was decided, what is open. If there was nothing, say so."""


def add_prompts(server: MCPServer[Any]) -> None:
    """Publish the prompts; each names only tools of the default toolset."""
    for prompt in _made():
        server.add_prompt(prompt)


@cache
def _made() -> tuple[Prompt, ...]:
    """Once in a process, which may serve many windows: what they ask for takes 20 ms to work out."""
    return tuple(Prompt.from_function(says, says.__name__.rstrip("_"), title) for says, title in TITLES.items())


async def continue_(text: Annotated[str, Field(description="what it was about")]) -> str:
    """Take up an earlier conversation, held in any AI client."""
    return _call("extract", query={"text": text}) + WORDINGS.format(to="query.also") + CONTINUE


async def recent() -> str:
    """The latest conversations with every AI client."""
    return _call("list_sessions", project="all", limit=10) + RECENT


async def search(query: Annotated[str, Field(description="words, also tag:api or after:2026-01")]) -> str:
    """Find past conversations by what was said in them."""
    return _call("search_sessions", query=query, project="all") + WORDINGS.format(to="also") + SEARCH


async def load(nickname: Annotated[str, Field(description="nickname, id, or #1 for the latest")]) -> str:
    """Bring a past conversation into this one."""
    return _call("fetch_session_by_id", session_id=nickname) + LOAD


async def elsewhere(
    client: Annotated[str, Field(description="claude-code, codex, gemini-cli, opencode, copilot-cli or qwen-code")],
    session: Annotated[str, Field(description="nickname, id, or #1 for the latest")] = "#1",
) -> str:
    """Take a conversation along into another AI client."""
    look = _call("fetch_session_by_id", session_id=session, message_limit=2)
    return look + ELSEWHERE.format(client=_quoted(client).strip('"'))


async def tag(
    nickname: Annotated[str, Field(description="a short name to find it by")],
    tags: Annotated[str, Field(description="separated by commas")] = "",
) -> str:
    """Give this conversation a nickname and tags."""
    names = [name.strip() for name in tags.split(",") if name.strip()]
    return _call("tag_current_session", nickname=nickname, **({"tags": names} if names else {})) + TAG


async def briefing(date: Annotated[str, Field(description="a day, such as 2026-01-31")] = "today") -> str:
    """Return a prompt for what was worked on, decided and left open on a day."""
    return _call("list_sessions", project="all", limit=100) + BRIEFING.format(date=_quoted(date))


TITLES: Mapping[Callable[..., Awaitable[str]], str] = {
    continue_: "Continue a past conversation",
    recent: "What I worked on lately",
    search: "Search past conversations",
    load: "Load a past conversation",
    elsewhere: "Go on in another client",
    tag: "Name this conversation",
    briefing: "Briefing of a day",
}
"""Each prompt, as a menu shows it."""


def _call(tool: str, **arguments: object) -> str:
    return CALL.format(tool=tool, arguments=_quoted(arguments))


def _quoted(given: object) -> str:
    return json.dumps(given, ensure_ascii=False)


MOST = 100
"""The protocol takes no more."""
KINDS: dict[tuple[str | None, str], NameKind] = {
    ("load", "nickname"): "session",
    ("elsewhere", "session"): "session",
    ("tag", "tags"): "tag",
    (None, "channel"): "channel",
}
"""By prompt (None: a resource) and argument, the kind of its names."""


def add_completion(server: MCPServer[Any], run: RunOperation) -> None:
    """Publish the completion of nicknames, ids, tags and channels."""

    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        kind = KINDS.get((ref.name if isinstance(ref, PromptReference) else None, argument.name))
        if kind is None:
            return None
        before, comma, begun = argument.value.rpartition(",") if kind == "tag" else ("", "", argument.value)
        query = CompleteQuery(kind=kind, text=begun.strip(), limit=MOST)
        outcome = await run(CompleteRequest(query=query), None)
        names = outcome["names"] if outcome["success"] else []
        return Completion(values=[f"{before}{comma}{name}" for name in names], total=len(names), has_more=False)

    server.completion()(complete)  # type: ignore[no-untyped-call]
