"""Tools of other MCP servers, called with what an operation produced: where the outside begins."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from registry.settings import ActionSettings

TIMEOUT_S = 60.0
_FIELD = re.compile(r"\{(id|date|text)\}")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")


class Refused(Exception):
    """The tool was called, and answered that it failed."""


class McpAction:
    """One tool of one MCP server, as config.toml describes it."""

    def __init__(self, settings: ActionSettings, environment: Mapping[str, str] = os.environ) -> None:
        self.name = settings.name
        self._settings, self._environment = settings, environment

    async def perform(self, about: Mapping[str, str]) -> str:
        """Call the tool; its answer in words. ConnectionError where the server cannot be reached, else `Refused`."""
        from mcp import Client  # only who has configured an outside system needs the client

        reached = False
        try:
            async with Client(self._target(), read_timeout_seconds=TIMEOUT_S) as client:
                reached = True
                answer = await client.call_tool(self._settings.tool, filled(self._settings.arguments, about))
        except Exception as exc:
            if reached:
                raise
            raise ConnectionError(f"{self.name} cannot be reached: {_root(exc)}") from exc
        said = " ".join(part.text for part in getattr(answer, "content", ()) if getattr(part, "text", ""))
        if getattr(answer, "is_error", False):
            raise Refused(said or "the tool failed")
        return said[:500]

    def _target(self) -> Any:
        from mcp.client.stdio import StdioServerParameters

        if self._settings.url:
            return _with(self._settings.url, self._environment)
        command, *words = (_with(word, self._environment) for word in self._settings.command)
        inherited = {name: self._environment[name] for name in ("PATH", "HOME") if name in self._environment}
        given = {name: _with(value, self._environment) for name, value in self._settings.env.items()}
        return StdioServerParameters(command=command, args=words, env=inherited | given)


def filled(template: Any, about: Mapping[str, str]) -> Any:
    """A tool's arguments with {id}, {date} and {text} in their place, however deep they stand. What is put in is not
    looked at again: a text may hold braces.
    """
    match template:
        case str():
            return _FIELD.sub(lambda field: about[field[1]], template)
        case Mapping():
            return {name: filled(value, about) for name, value in template.items()}
        case list():
            return [filled(value, about) for value in template]
    return template


def _with(text: str, environment: Mapping[str, str]) -> str:
    """A setting with the variables in it replaced: secrets stand in the environment, not in a file."""
    return _VARIABLE.sub(lambda name: environment.get(name[1], ""), text)


def _root(exc: BaseException) -> str:
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return f"{type(exc).__name__}: {exc}"
