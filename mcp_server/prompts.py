"""Prompts that a user picks from a client's menu, and completion of their arguments."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Annotated, get_args, get_type_hints

from mcp import MCPError, types

from mcp_server.envelope import Context
from orchestrator.lazy import RunOperation
from orchestrator.requests.field_types import WORDINGS

CALL = "Call the tool {tool} of the MCP server context-registry with these arguments: {arguments}"

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

BRIEFING = """
Set since to the beginning of this day in my time zone: {date}. For each session that was active on that day call \
extract with its channel and a query of mode "digest", with from and to set to that day. Then write me a briefing, by \
project: what was done, what was decided, what is open. If there was nothing, say so."""


def continue_conversation(text: Annotated[str, "what it was about"]) -> str:
    """Continue an earlier conversation of any AI client."""
    return _call("extract", query={"text": text}) + _with_wordings("query.also") + CONTINUE


def recent() -> str:
    """The latest conversations with every AI client."""
    return _call("list_sessions", project="all", limit=10) + RECENT


def search(query: Annotated[str, "words, also tag:api or after:2026-01"]) -> str:
    """Find past conversations by what was said in them."""
    return _call("search_sessions", query=query, project="all") + _with_wordings("also") + SEARCH


def load(nickname: Annotated[str, "nickname, id, or #1 for the latest"]) -> str:
    """Bring a past conversation into this one."""
    return _call("fetch_session_by_id", session_id=nickname) + LOAD


def tag(
    nickname: Annotated[str, "a short name to find it by"], tags: Annotated[str, "separated by commas"] = ""
) -> str:
    """Give this conversation a nickname and tags."""
    names = [name.strip() for name in tags.split(",") if name.strip()]
    return _call("tag_current_session", nickname=nickname, **({"tags": names} if names else {})) + TAG


def briefing(date: Annotated[str, "a day, such as 2026-01-31"] = "today") -> str:
    """Summarise what was worked on, decided and left open on a day."""
    return _call("list_sessions", project="all", limit=100) + BRIEFING.format(date=_quoted(date))


PROMPTS: Mapping[str, tuple[str, Callable[..., str]]] = {
    "continue": ("Continue a past conversation", continue_conversation),
    "recent": ("What I worked on lately", recent),
    "search": ("Search past conversations", search),
    "load": ("Load a past conversation", load),
    "tag": ("Name this conversation", tag),
    "briefing": ("Briefing of a day", briefing),
}
"""Prompts by name, with their titles. They name only tools of the default toolset."""


def _call(tool: str, **arguments: object) -> str:
    return CALL.format(tool=tool, arguments=_quoted(arguments))


def _with_wordings(argument: str) -> str:
    return f"\nAdd {argument}: {WORDINGS}."


def _quoted(given: object) -> str:
    return json.dumps(given, ensure_ascii=False)


async def list_prompts(_ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(
        prompts=[
            types.Prompt(name=name, title=title, description=inspect.getdoc(build), arguments=_arguments_of(build))
            for name, (title, build) in PROMPTS.items()
        ]
    )


def _arguments_of(build: Callable[..., str]) -> list[types.PromptArgument]:
    hints = get_type_hints(build, include_extras=True)
    return [
        types.PromptArgument(name=name, description=get_args(hints[name])[1], required=given.default is given.empty)
        for name, given in inspect.signature(build).parameters.items()
    ]


async def get_prompt(_ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    """Return a prompt's text. An unknown name or argument is the caller's mistake (-32602)."""
    if params.name not in PROMPTS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    _, build = PROMPTS[params.name]
    try:
        given = inspect.signature(build).bind(**(params.arguments or {}))
    except TypeError as exc:
        raise MCPError(types.INVALID_PARAMS, f"{params.name}: {exc}") from exc
    content = types.TextContent(text=build(*given.args, **given.kwargs))
    return types.GetPromptResult(
        description=inspect.getdoc(build), messages=[types.PromptMessage(role="user", content=content)]
    )


COMPLETED_KINDS: Mapping[tuple[str | None, str], str] = {
    ("load", "nickname"): "session",
    ("tag", "tags"): "tag",
    (None, "channel"): "channel",
}
"""The kind of names that complete an argument, by prompt (None: a resource) and argument."""


async def complete(run: RunOperation, _ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Return the nicknames, ids, tags or channels that begin with the typed text."""
    ref, argument = params.ref, params.argument
    kind = COMPLETED_KINDS.get((ref.name if isinstance(ref, types.PromptReference) else None, argument.name))
    before, comma, typed = argument.value.rpartition(",") if kind == "tag" else ("", "", argument.value)
    names: list[str] = []
    if kind:
        query = {"kind": kind, "text": typed.strip(), "limit": 100}  # the protocol takes no more
        outcome = await run({"operation": "complete", "query": query}, None)
        names = outcome["names"] if outcome["success"] else []
    values = [f"{before}{comma}{name}" for name in names]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))
