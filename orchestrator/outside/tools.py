"""Call tools of other MCP servers with the result of an operation."""

import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from registry.settings import ActionSettings, McpServerSettings

MAX_PART = 1000  # characters of a {part}: some systems refuse longer blocks
_FIELD = re.compile(r"\{(id|date|text|part)\}")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")

CallTool = Callable[[str, Mapping[str, Any]], Awaitable[str]]


class ToolRefused(Exception):
    """The tool answered that it failed."""


@asynccontextmanager
async def connected(
    name: str, server: McpServerSettings, environment: Mapping[str, str] = os.environ
) -> AsyncIterator[CallTool]:
    """Connect to the server, to call its tools by name. Raises ConnectionError; a call raises `ToolRefused`."""
    from mcp import Client  # slow to import; needed only if an outside system is configured

    is_connected = False
    try:
        async with Client(_target(server, environment), read_timeout_seconds=60) as client:
            is_connected = True

            async def call(tool: str, arguments: Mapping[str, Any]) -> str:
                answer = await client.call_tool(tool, dict(arguments))
                text = " ".join(part.text for part in getattr(answer, "content", ()) if getattr(part, "text", ""))
                if getattr(answer, "is_error", False) or _reports_failure(text):
                    raise ToolRefused(text or "the tool failed")
                return text

            yield call
    except Exception as exc:
        cause: BaseException = exc
        while isinstance(cause, BaseExceptionGroup):  # tasks of the client raise exception groups
            cause = cause.exceptions[0]
        if is_connected:
            raise cause from None
        raise ConnectionError(f"{name} cannot be reached: {type(cause).__name__}: {cause}") from exc


def _reports_failure(text: str) -> bool:
    """Return True for an error object in a successful answer: some servers forward errors like this."""
    try:
        answer = json.loads(text) if text.startswith("{") else None
    except ValueError:
        return False
    return isinstance(answer, dict) and "error" in (answer.get("object"), answer.get("status"))


class McpAction:
    """A tool of an MCP server, configured in config.toml."""

    def __init__(self, settings: ActionSettings, environment: Mapping[str, str] = os.environ) -> None:
        self.name = settings.name
        self._settings, self._environment = settings, environment

    async def perform(self, about: Mapping[str, str]) -> str:
        """Call the tool and return the text of its answer. Raises ConnectionError and `ToolRefused`."""
        async with connected(self.name, self._settings, self._environment) as call:
            return (await call(self._settings.tool, fill(self._settings.arguments, about)))[:500]

    async def was_done(self, about: Mapping[str, str]) -> bool | None:
        """Return True if the outside system has it already; None without a configured check."""
        check = self._settings.check
        if check is None:
            return None
        async with connected(self.name, self._settings, self._environment) as call:
            try:
                return str(fill(check.finds, about)) in await call(check.tool, fill(check.arguments, about))
            except ToolRefused:
                return False


def _target(server: McpServerSettings, environment: Mapping[str, str]) -> Any:
    from mcp.client.stdio import StdioServerParameters

    if server.url:
        return _with_variables(server.url, environment)
    command, *words = (_with_variables(word, environment) for word in server.command)
    inherited = {name: environment[name] for name in ("PATH", "HOME") if name in environment}
    given = {name: _with_variables(value, environment) for name, value in server.env.items()}
    return StdioServerParameters(command=command, args=words, env=inherited | given)


def fill(template: Any, about: Mapping[str, str]) -> Any:
    """Fill {id}, {date} and {text} into a tool's arguments at any depth.

    A list element with {part} is repeated for each part. Inserted text is not searched again: it may contain braces.
    """
    match template:
        case str():
            return _FIELD.sub(lambda field: about.get(field[1], field[0]), template)
        case Mapping():
            return {name: fill(value, about) for name, value in template.items()}
        case list():
            parts = [{**about, "part": part} for part in parts_of(about.get("text", ""))]
            return [fill(value, one) for value in template for one in (parts if _has_part_field(value) else [about])]
    return template


def _has_part_field(value: Any) -> bool:
    """Return True if a value contains {part}; nested lists are not searched, because `fill` repeats their elements."""
    if isinstance(value, Mapping):
        return any(map(_has_part_field, value.values()))
    return isinstance(value, str) and "{part}" in value


def parts_of(text: str) -> Iterator[str]:
    """Split a text into parts of at most `MAX_PART` characters, after a line or a word if possible."""
    while len(text) > MAX_PART:
        cut = (text.rfind("\n", 0, MAX_PART) + 1) or (text.rfind(" ", 0, MAX_PART) + 1) or MAX_PART
        yield text[:cut]
        text = text[cut:]
    yield text


def _with_variables(text: str, environment: Mapping[str, str]) -> str:
    """Replace environment variables in a setting: secrets need not be in the file."""
    return _VARIABLE.sub(lambda name: environment.get(name[1], ""), text)
