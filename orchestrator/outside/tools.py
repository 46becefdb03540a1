"""Tools of other MCP servers, called with what an operation produced: where the outside begins."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from registry.settings import ActionSettings, McpServerSettings

TIMEOUT_S = 60.0
PART = 1000
"""Characters of a part of the text at most: some systems take no longer ones in one piece."""
_FIELD = re.compile(r"\{(id|date|text|part)\}")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")


Call = Callable[[str, Mapping[str, Any]], Awaitable[str]]


class Refused(Exception):
    """The tool was called, and answered that it failed."""


@asynccontextmanager
async def connected(
    name: str, server: McpServerSettings, environment: Mapping[str, str] = os.environ
) -> AsyncIterator[Call]:
    """Connect to the server, to call its tools by name. Raises ConnectionError; a call raises `Refused`."""
    from mcp import Client  # loaded only where an outside system is configured

    is_connected = False
    try:
        async with Client(_target(server, environment), read_timeout_seconds=TIMEOUT_S) as client:
            is_connected = True

            async def call(tool: str, arguments: Mapping[str, Any]) -> str:
                answer = await client.call_tool(tool, dict(arguments))
                text = " ".join(part.text for part in getattr(answer, "content", ()) if getattr(part, "text", ""))
                if getattr(answer, "is_error", False) or _reports_failure(text):
                    raise Refused(text or "the tool failed")
                return text

            yield call
    except Exception as exc:
        cause: BaseException = exc
        while isinstance(cause, BaseExceptionGroup):  # a client's tasks raise theirs as one of a group
            cause = cause.exceptions[0]
        if is_connected:
            raise cause from None
        raise ConnectionError(f"{name} cannot be reached: {type(cause).__name__}: {cause}") from exc


def _reports_failure(text: str) -> bool:
    """Some servers pass on the refusal of the system behind them as if it were an answer."""
    try:
        answer = json.loads(text) if text.startswith("{") else None
    except ValueError:
        return False
    return isinstance(answer, dict) and "error" in (answer.get("object"), answer.get("status"))


class McpAction:
    """One tool of one MCP server, as config.toml describes it."""

    def __init__(self, settings: ActionSettings, environment: Mapping[str, str] = os.environ) -> None:
        self.name = settings.name
        self._settings, self._environment = settings, environment

    async def perform(self, about: Mapping[str, str]) -> str:
        """Call the tool; its answer in words. ConnectionError where the server cannot be reached, else `Refused`."""
        async with connected(self.name, self._settings, self._environment) as call:
            return (await call(self._settings.tool, filled(self._settings.arguments, about)))[:500]

    async def was_done(self, about: Mapping[str, str]) -> bool | None:
        """Whether the outside has it already; None where nobody can tell."""
        check = self._settings.check
        if check is None:
            return None
        async with connected(self.name, self._settings, self._environment) as call:
            try:
                return str(filled(check.finds, about)) in await call(check.tool, filled(check.arguments, about))
            except Refused:
                return False


def _target(server: McpServerSettings, environment: Mapping[str, str]) -> Any:
    from mcp.client.stdio import StdioServerParameters

    if server.url:
        return _with(server.url, environment)
    command, *words = (_with(word, environment) for word in server.command)
    inherited = {name: environment[name] for name in ("PATH", "HOME") if name in environment}
    given = {name: _with(value, environment) for name, value in server.env.items()}
    return StdioServerParameters(command=command, args=words, env=inherited | given)


def filled(template: Any, about: Mapping[str, str]) -> Any:
    """A tool's arguments with {id}, {date} and {text} in their place, however deep they stand; what stands in a list
    and holds {part} comes once for each part. What is put in is not looked at again: a text may hold braces.
    """
    match template:
        case str():
            return _FIELD.sub(lambda field: about.get(field[1], field[0]), template)
        case Mapping():
            return {name: filled(value, about) for name, value in template.items()}
        case list():
            return [one for value in template for one in _repeated(value, about)]
    return template


def _repeated(value: Any, about: Mapping[str, str]) -> Iterator[Any]:
    if not _holds_part(value):
        yield filled(value, about)
        return
    for part in parts_of(about["text"]):
        yield filled(value, {**about, "part": part})


def _holds_part(value: Any) -> bool:
    """Itself, not in a list of its own."""
    if isinstance(value, Mapping):
        return any(map(_holds_part, value.values()))
    return isinstance(value, str) and "{part}" in value


def parts_of(text: str) -> Iterator[str]:
    """The text in parts of at most `PART` characters, cut behind a line or a word where there is one."""
    while len(text) > PART:
        cut = (text.rfind("\n", 0, PART) + 1) or (text.rfind(" ", 0, PART) + 1) or PART
        yield text[:cut]
        text = text[cut:]
    yield text


def _with(text: str, environment: Mapping[str, str]) -> str:
    """A setting with the variables in it replaced: secrets stand in the environment, not in a file."""
    return _VARIABLE.sub(lambda name: environment.get(name[1], ""), text)
