"""Collect the operations: each file here defines one as `OPERATION`. Tables about them are derived from this list."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from orchestrator.requests.refusals import checked
from orchestrator.requests.shapes import Request
from registry.errors import InvalidRequest

if TYPE_CHECKING:  # the database comes with the operations themselves: an MCP server answers its handshake without it
    from orchestrator.state import Operation
    from orchestrator.tool import Tool


@cache
def operations() -> Mapping[str, Operation]:
    found = [import_module(f"{__name__}.{module.name}").OPERATION for module in iter_modules(__path__)]
    return {operation.name: operation for operation in found}


@cache
def aliases() -> Mapping[str, str]:
    """Return the operations' names by alias."""
    return {operation.alias: name for name, operation in operations().items() if operation.alias}


def reading() -> list[str]:
    """Return the names of operations that only read conversations, and so can be run again."""
    return [name for name, operation in operations().items() if operation.syncs_first]


@cache
def tools() -> Mapping[str, Tool]:
    return {tool.name: tool for operation in operations().values() for tool in operation.tools}


def operation_of(tool: str) -> Operation:
    return next(each for each in operations().values() if any(one.name == tool for one in each.tools))


@cache
def labels() -> Mapping[str, tuple[str, str]]:
    """Return the monitor's labels for fields of requests and records, in English and Korean."""
    shared = tomllib.loads(files(__name__).joinpath("labels.toml").read_text(encoding="utf-8"))
    special = {field: label for operation in operations().values() for field, label in operation.labels.items()}
    return {**{field: (english, korean) for field, (english, korean) in shared.items()}, **special}


def parse_request(given: Mapping[str, Any]) -> Request:
    """Parse `{operation, channel, messages|query, source, metadata}`. Raises InvalidRequest."""
    name = str(given.get("operation"))
    operation = operations().get(aliases().get(name, name))
    if operation is None or operation.is_internal:
        known = [*(name for name, each in operations().items() if not each.is_internal), *aliases()]
        raise InvalidRequest("No such operation.", f"operation: given {name!r}; allowed: {', '.join(known)}")
    with checked():
        return operation.request.model_validate({key: value for key, value in given.items() if key != "operation"})
